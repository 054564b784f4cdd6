/**
 * Tells the site what the outbox holds, in order, for as long as it takes; and that the host lives.
 */
import * as Effect from "effect/Effect"
import type { Nats } from "../nats/connection.ts"
import type { NatsError } from "../nats/errors.ts"
import { sendHeartbeat } from "../nats/heartbeats.ts"
import { ensureReports, publishReport, publishReportAgain } from "../nats/reports.ts"
import type { HostId } from "../protocol/ids.ts"
import { HEARTBEAT_INTERVAL } from "../protocol/limits.ts"
import type { ResendReply, ResendRequest } from "../protocol/prepare.ts"
import type { Site } from "../protocol/tokens.ts"
import type { Outbox } from "./outbox.ts"

const TRY_AGAIN = 500

/** Completes as soon as there is a report that is not confirmed. */
const somethingToTell = (outbox: Outbox): Effect.Effect<void> =>
  Effect.callback((resume) => {
    if (outbox.next === undefined) outbox.onAppend(() => resume(Effect.void))
    else resume(Effect.void)
  })

/** Tells everything that is in the outbox now; it fails at the first report that the site does not take. */
export const flush = Effect.fnUntraced(function* (site: Site, outbox: Outbox): Effect.fn.Return<void, NatsError, Nats> {
  for (let report = outbox.next; report !== undefined; report = outbox.next) {
    yield* publishReport(site, report)
    outbox.confirm(report)
  }
})

/** Tells reports as they come. Never ends and never fails: what the site does not take now is told again. */
export const tellReports = Effect.fn("Reporter.tell")(function* (
  site: Site,
  outbox: Outbox
): Effect.fn.Return<never, never, Nats> {
  let complained = false
  while (true) {
    yield* somethingToTell(outbox)
    const told = yield* Effect.result(flush(site, outbox))
    if (told._tag === "Success") {
      complained = false
      continue
    }
    if (!complained) yield* Effect.logWarning(`reports wait in the outbox: ${told.failure.message}`)
    complained = true
    yield* Effect.sleep(TRY_AGAIN)
    // The stream itself may be what is missing: a site that began anew.
    yield* Effect.ignore(ensureReports(site))
  }
})

/** A heartbeat every second; one that gets lost is only a lost one. */
export const beat = Effect.fn("Reporter.beat")(function* (
  site: Site,
  host: HostId,
  outbox: Outbox,
  sessions: () => number
): Effect.fn.Return<never, never, Nats> {
  while (true) {
    yield* Effect.ignore(
      sendHeartbeat(site, { host, incarnation: outbox.incarnation, n: outbox.last, sessions: sessions() })
    )
    yield* Effect.sleep(HEARTBEAT_INTERVAL)
  }
})

/** Answers the router's wish to hear reports again. */
export const resend = Effect.fn("Reporter.resend")(function* (
  site: Site,
  outbox: Outbox,
  request: ResendRequest
): Effect.fn.Return<ResendReply, never, Nats> {
  if (request.incarnation !== outbox.incarnation) return { sent: 0 }
  // What is not confirmed yet comes by itself.
  const reports = outbox.from(request.from).filter(({ n }) => outbox.isConfirmed(n))
  let sent = 0
  for (const report of reports) {
    const told = yield* Effect.result(publishReportAgain(site, report))
    if (told._tag === "Failure") break
    sent += 1
  }
  return { sent }
})

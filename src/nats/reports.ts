/**
 * Reports of hosts: a limits stream, read in order from an offset. The same stream for those who publish and those
 * who read; either makes it.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { jsonCodec } from "../protocol/codec.ts"
import { Malformed } from "../protocol/errors.ts"
import { MAX_MESSAGE_BYTES } from "../protocol/limits.ts"
import { Report, reportKey } from "../protocol/reports.ts"
import { reportStream, reportSubject } from "../protocol/subjects.ts"
import type { Site } from "../protocol/tokens.ts"
import { Nats } from "./connection.ts"
import { type NatsError, natsError } from "./errors.ts"
import { readStream } from "./messages.ts"
import { ensureStream, wantedReports } from "./streams.ts"

export const reportCodec = jsonCodec("report", Report)

/** Makes the site's report stream if it is missing; hosts and routers both do so at their start. */
export const ensureReports = (site: Site) => Effect.asVoid(ensureStream(wantedReports(site)))

/**
 * Publishes one report and succeeds once it is stored. A host publishes its reports one after another, in order, and
 * keeps each in its outbox until then; publishing one twice is harmless.
 */
export const publishReport = Effect.fn("Reports.publish")(function* (site: Site, report: Report) {
  const nats = yield* Nats
  yield* Effect.tryPromise({
    try: () =>
      nats.jetstream.publish(reportSubject(site, report.host), reportCodec.encode(report), {
        msgID: reportKey(report),
        expect: { streamName: reportStream(site) },
        timeout: 2_000
      }),
    catch: natsError(`report ${report.body._tag}`)
  })
})

/**
 * Publishes one report again, for a router that asks for it: without the id that would make the server drop it as a
 * duplicate of one that the router has lost.
 */
export const publishReportAgain = Effect.fn("Reports.publishAgain")(function* (site: Site, report: Report) {
  const nats = yield* Nats
  yield* Effect.tryPromise({
    try: () => nats.jetstream.publish(reportSubject(site, report.host), reportCodec.encode(report), { timeout: 2_000 }),
    catch: natsError(`report ${report.body._tag} again`)
  })
})

/** A report and its sequence in the report stream; `report` is undefined where the message cannot be read. */
export interface ReportMessage {
  readonly offset: number
  readonly report: Report | undefined
}

/** Reports after an offset, following what comes. Old ones may have expired; the hosts' numbers tell what is missing. */
export const readReports = (site: Site, after: number): Stream.Stream<ReportMessage, NatsError, Nats> =>
  readStream({ stream: reportStream(site), from: after + 1, follow: true, contiguous: false }).pipe(
    Stream.mapEffect(({ body, sequence, subject }): Effect.Effect<ReportMessage> => {
      const decoded =
        body.length > MAX_MESSAGE_BYTES
          ? Result.fail(new Malformed({ what: "report", detail: `it has ${body.length} bytes` }))
          : reportCodec.decode(body)
      // A host reports only of itself: the server's permissions bind its subject, not what it writes.
      if (Result.isSuccess(decoded) && reportSubject(site, decoded.success.host) === subject) {
        return Effect.succeed({ offset: sequence, report: decoded.success })
      }
      const why = Result.isFailure(decoded) ? decoded.failure.message : "it is not of the host it names"
      return Effect.as(Effect.logWarning(`the report ${sequence} on ${subject} was dropped: ${why}`), {
        offset: sequence,
        report: undefined
      })
    })
  )

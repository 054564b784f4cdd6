/**
 * Leading: from the taken lease to its loss.
 *
 *   take the lease ─▶ fold to the log's end ─▶ append RouterElected(epoch) ─▶ serve ─▶ until deposed
 *
 * The lease says who should lead; the append says who does. Whoever cannot append no longer leads, whatever the lease
 * says.
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { Nats } from "../nats/connection.ts"
import type { NatsError } from "../nats/errors.ts"
import { EventLog } from "../nats/event-log.ts"
import { listenHeartbeats } from "../nats/heartbeats.ts"
import { Lease } from "../nats/lease.ts"
import { readReports } from "../nats/reports.ts"
import { serveMicro } from "../nats/requests.ts"
import type { Entry } from "../protocol/commit.ts"
import type { CommitTooLarge, Malformed } from "../protocol/errors.ts"
import { mintCommandId, mintSessionId, type RouterId } from "../protocol/ids.ts"
import { QUEUE_LEASE } from "../protocol/limits.ts"
import { commandPattern, SERVICE_NAME } from "../protocol/subjects.ts"
import type { Site } from "../protocol/tokens.ts"
import { VERSION } from "../protocol/version.ts"
import { type Api, makeApi } from "./api.ts"
import { type Committer, makeCommitter } from "./committer.ts"
import { type Driver, makeDriver } from "./driver.ts"
import { Liveness } from "./liveness.ts"
import { countCommit, countConflict } from "./metrics.ts"
import type { Replica } from "./replica.ts"
import { copyState } from "./state.ts"

export interface LeadOptions {
  readonly site: Site
  readonly router: RouterId
  readonly code: string
  readonly replica: Replica
  readonly onLeading: (leading: boolean) => void
}

/** How often the leader looks at silence, at the queue and at what may have been left undone. */
const TICK = 500
/** A writer that takes nothing in for so long (ms), on a connection that stands, is given up. */
const WRITER_PATIENCE = 15_000

/** Waits for the lease, leads, and succeeds once it no longer does. */
export const leadOnce = (options: LeadOptions) =>
  Effect.scoped(
    Effect.gen(function* () {
      const lease = yield* Lease
      const held = yield* lease.hold(options.router)
      const leading = Effect.ensuring(
        lead(options),
        Effect.sync(() => options.onLeading(false))
      )
      yield* Effect.raceFirst(
        Effect.andThen(held.lost, Effect.logWarning("the lease is lost")),
        Effect.catch(leading, (error) =>
          Effect.andThen(
            isConflict(error) ? countConflict : Effect.void,
            Effect.logWarning(`no longer leading: ${error.message}`)
          )
        )
      )
    })
  )

const isConflict = (error: NatsError | CommitTooLarge | Malformed): boolean =>
  error._tag === "NatsError" && error.reason._tag === "WrongLastSequence"

const lead = Effect.fnUntraced(function* (
  options: LeadOptions
): Effect.fn.Return<void, NatsError | CommitTooLarge | Malformed, EventLog | Nats | Scope.Scope> {
  const { replica, router, site } = options
  const log = yield* EventLog
  const extent = yield* log.extent
  yield* replica.reach(extent.last)

  // The driver is made once the epoch is known, which is after the committer's first commit.
  let driver: Driver | undefined
  const committer: Committer = yield* makeCommitter({
    log,
    state: copyState(replica.state),
    code: options.code,
    bytes: extent.bytes,
    onStored: (entries: ReadonlyArray<Entry>) =>
      Effect.andThen(countCommit(committer.state, entries), driver?.onStored(entries) ?? Effect.void)
  })
  const writing = yield* Effect.forkScoped(committer.run)
  const run = Effect.gen(function* () {
    yield* committer.submit({ _tag: "router.elect", id: mintCommandId(), router, version: VERSION })
    const epoch = committer.state.epoch
    driver = yield* makeDriver({ site, epoch, committer })
    yield* serveLeader(options, committer, driver, extent.maxBytes)
    options.onLeading(true)
    yield* Effect.logInfo(`leading the site "${site}" in epoch ${epoch}`)
    yield* replica.deposed(epoch)
    yield* Effect.logWarning("another router has been elected")
  })
  // The writer never succeeds: if it ends, it has lost the log to another.
  yield* Effect.raceFirst(run, Effect.raceFirst(Fiber.join(writing), standingStill(committer)))
})

/** Completes when the writer takes nothing in although NATS is there: whoever leads must not stand in the way. */
const standingStill = Effect.fnUntraced(function* (committer: Committer) {
  const nats = yield* Nats
  let connectedAt = nats.connectedAt()
  while (true) {
    yield* Effect.sleep(WRITER_PATIENCE / 2)
    // A command about no session is decided like any other and stores nothing.
    const probe = committer.submit({
      _tag: "session.expire",
      id: mintCommandId(),
      session: mintSessionId(),
      reason: "client-lost"
    })
    const done = yield* Effect.timeoutOption(probe, WRITER_PATIENCE)
    const stayed = nats.isConnected() && nats.connectedAt() === connectedAt
    connectedAt = nats.connectedAt()
    if (done._tag === "None" && stayed) {
      yield* Effect.logError(`the writer has taken nothing in for ${WRITER_PATIENCE / 1_000} s`)
      return
    }
  }
})

const serveLeader = Effect.fnUntraced(function* (
  { replica, router, site }: LeadOptions,
  committer: Committer,
  driver: Driver,
  maxBytes: number
): Effect.fn.Return<void, NatsError, Nats | Scope.Scope> {
  const nats = yield* Nats
  const liveness = new Liveness(performance.now())
  const api = makeApi({ site, committer, driver, replica, maxBytes })

  yield* listenHeartbeats(site, (heartbeat) => Effect.sync(() => liveness.heartbeat(heartbeat, performance.now())))
  yield* Effect.forkScoped(
    readReports(site, committer.state.reportOffset).pipe(Stream.runForEach(committer.offerReport))
  )
  yield* serveMicro({
    name: SERVICE_NAME,
    version: VERSION,
    description: `commands of the site ${site}`,
    metadata: { site, router },
    endpoints: [
      { subject: commandPattern(site, "session.request"), handler: api.request },
      { subject: commandPattern(site, "session.release"), handler: api.release }
    ]
  })
  yield* driver.reconcile
  yield* Effect.forkScoped(
    Effect.gen(function* () {
      let connectedAt = nats.connectedAt()
      while (true) {
        yield* Effect.sleep(TICK)
        if (nats.connectedAt() !== connectedAt) liveness.restart(performance.now())
        connectedAt = nats.connectedAt()
        if (!nats.isConnected()) continue
        yield* tick(committer, driver, api, liveness)
      }
    })
  )
})

const tick = Effect.fnUntraced(function* (committer: Committer, driver: Driver, api: Api, liveness: Liveness) {
  const { state } = committer
  const now = performance.now()
  for (const command of liveness.commands(state, now, Date.now())) yield* committer.submit(command)
  for (const resend of liveness.resends(state, now)) yield* driver.resend(resend)
  for (const id of [...state.queue]) {
    const session = state.sessions.get(id)
    if (session === undefined) continue
    const silentSince = api.silentSince(id)
    const reason =
      Date.now() >= session.queuedUntil
        ? "wait-over"
        : silentSince !== undefined && now - silentSince > QUEUE_LEASE
          ? "client-lost"
          : undefined
    if (reason !== undefined) {
      yield* committer.submit({ _tag: "session.expire", id: mintCommandId(), session: id, reason })
    }
  }
  yield* driver.reconcile
})

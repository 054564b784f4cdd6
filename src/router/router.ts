/**
 * The router: one replica of the site's fold that answers reads, and that leads whenever it holds the lease.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import { Nats } from "../nats/connection.ts"
import { isTransient, NatsError } from "../nats/errors.ts"
import { EventLog, layerEventLog } from "../nats/event-log.ts"
import { layerLease } from "../nats/lease.ts"
import { ensureReports } from "../nats/reports.ts"
import { NoJetStream } from "../protocol/errors.ts"
import { mintRouterId, type RouterId } from "../protocol/ids.ts"
import type { Site } from "../protocol/tokens.ts"
import { codeHash } from "./code-hash.ts"
import { leadOnce } from "./leader.ts"
import { type MonitorFailed, type MonitorOptions, serveMonitor } from "./monitor.ts"
import { serveReads } from "./reads.ts"
import { type LogFault, makeReplica } from "./replica.ts"

export interface RouterOptions {
  readonly site: Site
  /** Minted by default. */
  readonly router?: RouterId
  /** Bytes that the log's first segment may take when this router makes it. */
  readonly logBytes?: number
  /** Serves health and metrics over HTTP, where given. */
  readonly monitor?: MonitorOptions
  /** Called when this router begins and stops to lead. */
  readonly onLeading?: (leading: boolean) => void
}

/**
 * A server that was reached and then does not answer, or has no JetStream yet, is restarting: at its start a router
 * tries as many times. Once it runs it waits for ever.
 */
const RETRY_EVERY = 500
const START_TRIES = 20

/** A pause between two leaderships, so that a fault that ends one at once does not spin. */
const PAUSE = 250

const serve = (options: RouterOptions) =>
  Effect.scoped(
    Effect.gen(function* () {
      const nats = yield* Nats
      const log = yield* EventLog
      const router = options.router ?? mintRouterId()
      const code = yield* codeHash
      const replica = yield* makeReplica
      let leading = false
      let ready = false
      if (options.monitor !== undefined) {
        const isReady = () => ready
        const isLeading = () => leading
        const port = yield* serveMonitor({ ...options.monitor, site: options.site, replica, isReady, isLeading })
        yield* Effect.logInfo(`health and metrics on port ${port}`)
      }

      const work = Effect.gen(function* () {
        const { last } = yield* Effect.retry(log.extent, { while: isTransient, schedule: Schedule.spaced(RETRY_EVERY) })
        yield* replica.reach(last)
        yield* serveReads({ site: options.site, router, replica, isLeading: () => leading })
        ready = true
        yield* Effect.logInfo(`router ${router} of the site "${options.site}" has read ${last} commits`)
        const lead = leadOnce({
          site: options.site,
          router,
          code,
          replica,
          onLeading: (now) => {
            leading = now
            options.onLeading?.(now)
          }
        })
        return yield* Effect.forever(Effect.andThen(lead, Effect.sleep(PAUSE)))
      })
      return yield* Effect.raceFirst(work, Effect.raceFirst(nats.closed, replica.failed))
    })
  ).pipe(Effect.annotateLogs({ site: options.site }))

/**
 * Runs a router until it is interrupted. Fails when NATS has no JetStream, keeps a stream otherwise than it must, or
 * closes the connection for good, and when the log cannot be read on.
 */
export const runRouter = (options: RouterOptions): Effect.Effect<never, LogFault | NoJetStream | MonitorFailed, Nats> =>
  Effect.scoped(
    Effect.gen(function* () {
      const services = yield* Effect.retry(Layer.build(Layer.fresh(layerStreams(options))), {
        while: isTransient,
        schedule: Schedule.spaced(RETRY_EVERY),
        times: START_TRIES
      })
      return yield* Effect.provideContext(serve(options), services)
    })
  ).pipe(
    Effect.catchIf(
      (error) => error instanceof NatsError && error.reason._tag === "NoJetStreamHere",
      () => Effect.flatMap(Nats, ({ servers }) => Effect.fail(new NoJetStream({ server: servers })))
    )
  )

/** What a router keeps in NATS, made where it is missing and checked where it is there. */
const layerStreams = (options: RouterOptions) =>
  Layer.mergeAll(
    layerEventLog({
      site: options.site,
      ...(options.logBytes === undefined ? {} : { maxBytes: options.logBytes })
    }),
    layerLease(options.site),
    Layer.effectDiscard(ensureReports(options.site))
  )

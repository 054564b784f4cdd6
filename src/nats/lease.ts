/**
 * The lease: who should lead. It is for liveness only; safety is the log's (see event-log.ts).
 *
 * One key in a bucket of its own, whose time to live is the bucket's. The leader renews it by compare-and-set at the
 * revision that it last wrote. Servers before 2.11 announce no expiry, so standbys poll: they try to create the key.
 */
import { Kvm } from "@nats-io/kv"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { RouterId } from "../protocol/ids.ts"
import { LEASE_RENEW, LEASE_TTL } from "../protocol/limits.ts"
import { LEASE_KEY, leaseBucket } from "../protocol/subjects.ts"
import type { Site } from "../protocol/tokens.ts"
import { Nats } from "./connection.ts"
import { NatsError, natsError, WrongConfiguration } from "./errors.ts"

export interface Held {
  /** Completes when the lease is lost: taken by another, or not renewed for so long that it may have been. */
  readonly lost: Effect.Effect<void>
}

export class Lease extends Context.Service<
  Lease,
  {
    /**
     * Waits until the lease is free and takes it, for as long as the scope is open; then it is given back. Renewed
     * every LEASE_RENEW.
     */
    readonly hold: (owner: RouterId) => Effect.Effect<Held, NatsError, Scope.Scope>
    /** Who holds it now. */
    readonly holder: Effect.Effect<RouterId | undefined, NatsError>
  }
>()("juice/nats/Lease") {}

const NANOS_PER_MS = 1_000_000

const make = Effect.fnUntraced(function* (site: Site) {
  const nats = yield* Nats
  const bucketName = leaseBucket(site)
  const bucket = yield* Effect.tryPromise({
    try: () => new Kvm(nats.jetstream).create(bucketName, { ttl: LEASE_TTL, history: 1, replicas: 1 }),
    catch: natsError(`open the bucket ${bucketName}`)
  })
  const status = yield* Effect.tryPromise({ try: () => bucket.status(), catch: natsError("look at the lease") })
  const kept = status.streamInfo.config.max_age
  if (kept !== LEASE_TTL * NANOS_PER_MS) {
    return yield* new NatsError({
      operation: `keep the bucket ${bucketName}`,
      reason: new WrongConfiguration({
        stream: `KV_${bucketName}`,
        field: "max_age",
        wanted: String(LEASE_TTL * NANOS_PER_MS),
        got: String(kept),
        server: nats.connection.info?.version ?? "of unknown version"
      })
    })
  }

  const call = <A>(operation: string, action: () => Promise<A>): Effect.Effect<A, NatsError> =>
    Effect.tryPromise({ try: action, catch: natsError(operation) })

  /** The revision when the key was free and is ours now. */
  const take = (owner: RouterId) =>
    call("take the lease", () => bucket.create(LEASE_KEY, owner)).pipe(
      Effect.catchIf(
        (error) => error.reason._tag === "WrongLastSequence",
        () => Effect.succeed(undefined)
      )
    )

  const hold = Effect.fn("Lease.hold")(function* (owner: RouterId) {
    const acquire = Effect.gen(function* () {
      while (true) {
        const revision = yield* take(owner).pipe(
          Effect.tapError((error) => Effect.logDebug(`the lease cannot be asked for: ${error.message}`)),
          Effect.catch(() => Effect.succeed(undefined))
        )
        if (revision !== undefined) return { revision }
        yield* Effect.sleep(LEASE_RENEW / 2)
      }
    })
    // Waiting may be interrupted, but a lease that was taken is always given back.
    const held = yield* Effect.acquireRelease(
      acquire,
      ({ revision }) =>
        call("give the lease back", () => bucket.delete(LEASE_KEY, { previousSeq: revision })).pipe(
          Effect.timeoutOption(1_000),
          Effect.ignore
        ),
      { interruptible: true }
    )
    const lost = yield* Deferred.make<void>()
    let renewedAt = Date.now()
    const renew = Effect.gen(function* () {
      while (true) {
        yield* Effect.sleep(LEASE_RENEW)
        const sentAt = Date.now()
        const renewed = yield* call("renew the lease", () =>
          bucket.update(LEASE_KEY, owner, held.revision, LEASE_RENEW)
        ).pipe(Effect.result)
        if (renewed._tag === "Success") {
          held.revision = renewed.success
          renewedAt = sentAt
        } else if (renewed.failure.reason._tag === "WrongLastSequence") {
          // Taken by another, or expired; or an answer was lost and the renewal is our own.
          const entry = yield* Effect.result(call("read the lease", () => bucket.get(LEASE_KEY)))
          const ours =
            entry._tag === "Success" &&
            entry.success !== null &&
            entry.success.operation === "PUT" &&
            entry.success.string() === owner
          if (!ours) return
          held.revision = entry.success.revision
          renewedAt = sentAt
        } else if (Date.now() - renewedAt > LEASE_TTL - LEASE_RENEW / 2) {
          return
        }
      }
    })
    yield* Effect.forkScoped(Effect.andThen(renew, Deferred.succeed(lost, undefined)))
    return { lost: Deferred.await(lost) }
  })

  return Lease.of({
    hold,
    holder: call("read the lease", () => bucket.get(LEASE_KEY)).pipe(
      Effect.map((entry) => (entry === null || entry.operation !== "PUT" ? undefined : (entry.string() as RouterId)))
    )
  })
})

export const layerLease = (site: Site) => Layer.effect(Lease, make(site))

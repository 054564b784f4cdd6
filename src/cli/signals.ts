/** Signals that ask a service to stop: the first in order, the second at once. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

const STOP = ["SIGINT", "SIGTERM", "SIGHUP"] as const

export interface StopSignals {
  /** Completes with the first signal. */
  readonly first: Effect.Effect<NodeJS.Signals>
  readonly second: Effect.Effect<NodeJS.Signals>
}

/** Catches the signals for as long as the scope is open. */
export const catchStopSignals: Effect.Effect<StopSignals, never, Scope.Scope> = Effect.gen(function* () {
  const first = yield* Deferred.make<NodeJS.Signals>()
  const second = yield* Deferred.make<NodeJS.Signals>()
  const onSignal = (signal: NodeJS.Signals) => {
    if (!Deferred.doneUnsafe(first, Effect.succeed(signal))) Deferred.doneUnsafe(second, Effect.succeed(signal))
  }
  yield* Effect.acquireRelease(
    Effect.sync(() => {
      for (const signal of STOP) process.on(signal, onSignal)
    }),
    () =>
      Effect.sync(() => {
        for (const signal of STOP) process.removeListener(signal, onSignal)
      })
  )
  return { first: Deferred.await(first), second: Deferred.await(second) }
})

/** Who gets a signal to `juice`: itself until there is a program, from then on the program. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { Interrupted } from "./errors.ts"
import type { Program } from "./program.ts"
import { catchSignals, isForwarded } from "./signals.ts"

export interface SignalDesk {
  /** Fails as soon as a signal comes before there is a program. */
  readonly interrupted: Effect.Effect<never, Interrupted>
  readonly forwardTo: (program: Program) => void
}

/** Catches signals for the life of the scope. */
export const signalDesk = Effect.fnUntraced(function* (
  terminal: boolean
): Effect.fn.Return<SignalDesk, never, Scope.Scope> {
  const interrupted = yield* Deferred.make<never, Interrupted>()
  let program: Program | undefined
  yield* Effect.acquireRelease(
    Effect.sync(() =>
      catchSignals((signal) => {
        if (program === undefined) Deferred.doneUnsafe(interrupted, Effect.fail(new Interrupted({ signal })))
        else if (isForwarded(signal, terminal)) program.kill(signal)
      })
    ),
    (stop) => Effect.sync(stop)
  )
  return {
    interrupted: Deferred.await(interrupted),
    forwardTo: (started) => {
      program = started
    }
  }
})

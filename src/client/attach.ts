/**
 * `juice attach`: gets a session, runs the program with it, and gives it back whatever way the program ends.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Addon } from "../native/addon.ts"
import type { NativeMissing } from "../native/errors.ts"
import type { NativeFiles } from "../native/files.ts"
import { Nats } from "../nats/connection.ts"
import type { HostVanished } from "../protocol/errors.ts"
import type { Exit } from "../protocol/events.ts"
import { BROKER_KEY_LABEL, deriveKey } from "../protocol/seal.ts"
import { type Broker, openBroker } from "./broker.ts"
import type { HostNotProven, HostRefused, Interrupted } from "./errors.ts"
import { type Lane, openLane } from "./lane.ts"
import { awaitEnded, type Lease, type LeaseError, type LeaseRequest, releaseLease, requestLease } from "./lease.ts"
import { driverEnvironment, type ProgramExit, startProgram } from "./program.ts"
import { signalDesk } from "./signal-desk.ts"
import { beforeStop, hasTerminal } from "./signals.ts"

export interface AttachOptions {
  readonly request: LeaseRequest
  /** The program and its arguments. */
  readonly argv: readonly [string, ...Array<string>]
  readonly env: NodeJS.ProcessEnv
  readonly addon: Pick<Addon, "watchProcess" | "peerCredentials">
  readonly files: NativeFiles
  /** For what the user must know: that the host is lost while the program runs. */
  readonly warn: (sentence: string) => void
}

export type AttachError = LeaseError | HostVanished | HostNotProven | HostRefused | NativeMissing | Interrupted | Error

const exitOf = (exit: ProgramExit): Exit => (exit.signal === null ? { code: exit.code } : { signal: exit.signal })

/** Everything up to a running broker; torn down with the scope. */
const prepare = Effect.fnUntraced(function* (
  options: AttachOptions
): Effect.fn.Return<
  { readonly lane: Lane; readonly broker: Broker; readonly lease: Lease },
  AttachError,
  Nats | Scope.Scope
> {
  const { log, site } = options.request
  const nats = yield* Nats
  let settled = false
  // Interruptible while it waits: the request itself gives back what it has asked for.
  const lease = yield* Effect.acquireRelease(
    requestLease(options.request),
    ({ session }) =>
      Effect.gen(function* () {
        if (!settled && nats.isConnected()) yield* releaseLease(site, session, log)
      }),
    { interruptible: true }
  )
  const { grant, session, sessionKey } = lease
  const models = grant.gpus.length === 1 ? "1 GPU" : `${grant.gpus.length} GPUs`
  log(`session ${session}: ${models} of host ${grant.host} at ${grant.endpoint.host}:${grant.endpoint.port}`)
  const lane = yield* openLane({
    host: grant.host,
    endpoint: grant.endpoint,
    session,
    brokerKey: deriveKey(sessionKey, session, BROKER_KEY_LABEL)
  })
  yield* Effect.addFinalizer(() =>
    Effect.gen(function* () {
      settled = yield* lane.farewell
      // The host has freed all of it; that the site knows is worth a moment, but no more where NATS is gone.
      if (settled && nats.isConnected()) yield* awaitEnded(site, session)
    })
  )
  const broker = yield* openBroker({
    addon: options.addon,
    lane,
    session,
    sessionKey,
    endpoint: grant.endpoint,
    log
  })
  return { lane, broker, lease }
})

/** Runs the program with a GPU elsewhere. Succeeds with how it ended, whatever happened to the host meanwhile. */
export const attach = Effect.fn("attach")(function* (
  options: AttachOptions
): Effect.fn.Return<ProgramExit, AttachError, Nats> {
  return yield* Effect.scoped(
    Effect.gen(function* () {
      const terminal = hasTerminal()
      const desk = yield* signalDesk(terminal)
      const { broker, lane, lease } = yield* Effect.raceFirst(prepare(options), desk.interrupted)
      const program = yield* startProgram({
        launcher: options.files.launcher,
        argv: options.argv,
        env: { ...driverEnvironment(options.env, options.files.shimDirectory), JUICE_BROKER: broker.path },
        ownGroup: !terminal
      })
      desk.forwardTo(program)
      broker.programStarted(program.pid)
      if (terminal) {
        yield* Effect.acquireRelease(
          Effect.sync(() => beforeStop((stop) => lane.pause(stop))),
          (stop) => Effect.sync(stop)
        )
      }
      yield* lane.over.pipe(
        Effect.andThen(({ reason }) =>
          Effect.sync(() => {
            options.warn(
              `the GPU host "${lease.grant.host}" is gone (${reason}): the program's CUDA calls fail from now on`
            )
          })
        ),
        Effect.forkScoped
      )
      const exit = yield* program.exit
      broker.programEnded(exitOf(exit))
      return exit
    })
  )
})

/**
 * One worker process, as the host holds it: started, ready, bound to one client process, gone.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type { Addon, SpawnedWorker, WorkerUsage } from "../native/addon.ts"
import { ControlKind, claimPayload, endPayload, type FromWorker, readFromWorker } from "../native/control.ts"
import type { GoodbyeReason } from "../native/preface.ts"
import { WorkerFailed } from "./errors.ts"

const SIGKILL = 9

/** How a worker's process ended. */
export interface WorkerExit {
  readonly code: number | null
  readonly signal: number | null
}

export interface WorkerReady {
  readonly snapshot: Buffer
  /** GPU memory that a context costs, in bytes. */
  readonly contextBytes: number
}

export interface WorkerListener {
  readonly onMessage: (message: FromWorker) => void
  /** Once, after the last message. */
  readonly onExit: (exit: WorkerExit) => void
}

export interface Worker {
  readonly pid: number
  /** Succeeds when the driver is up; fails with why it is not. */
  readonly ready: Effect.Effect<WorkerReady, WorkerFailed>
  readonly isGone: () => boolean
  /** Completes when its process has ended and is reaped. */
  readonly gone: Effect.Effect<void>
  /** Who gets its messages and its exit from here on. */
  readonly listen: (listener: WorkerListener) => void
  /** Binds it to a client process. `memoryLimit` in bytes, 0 for none. */
  readonly claim: (claim: {
    readonly session: string
    readonly process: bigint
    readonly key: Uint8Array
    readonly memoryLimit: number
  }) => void
  /** Hands a connection over, with the preface that it began with. */
  readonly passLane: (fd: number, preface: Buffer) => void
  /** Has it take leave of its client and end. */
  readonly end: (reason: GoodbyeReason, sentence: string) => void
  readonly kill: () => void
  readonly usage: () => WorkerUsage
}

export interface WorkerCommand {
  readonly path: string
  readonly args: ReadonlyArray<string>
  readonly env: Record<string, string>
}

/** How a process's end reads in a sentence. */
export const exitText = ({ code, signal }: WorkerExit): string =>
  signal === null ? `it exited with ${code}` : `signal ${signal} ended it`

/** Starts a worker. Fails when the system cannot; what the driver makes of it, `ready` tells. */
export const startWorker = Effect.fnUntraced(function* (
  addon: Pick<Addon, "spawnWorker" | "closeFd">,
  command: WorkerCommand
): Effect.fn.Return<Worker, WorkerFailed> {
  const ready = yield* Deferred.make<WorkerReady, WorkerFailed>()
  const gone = yield* Deferred.make<void>()
  let listener: WorkerListener | undefined
  let exit: WorkerExit | undefined

  const onMessage = (kind: number, payload: Buffer) => {
    const message = readFromWorker(kind, payload)
    if (message === undefined) {
      Deferred.doneUnsafe(
        ready,
        Effect.fail(new WorkerFailed({ detail: "it and this host are of different versions" }))
      )
      return spawned.kill(SIGKILL)
    }
    if (message._tag === "ready") Deferred.doneUnsafe(ready, Effect.succeed(message))
    if (message._tag === "failed") {
      Deferred.doneUnsafe(ready, Effect.fail(new WorkerFailed({ detail: message.sentence })))
    }
    listener?.onMessage(message)
  }
  const onExit = (code: number | null, signal: number | null) => {
    exit = { code, signal }
    Deferred.doneUnsafe(ready, Effect.fail(new WorkerFailed({ detail: exitText(exit) })))
    listener?.onExit(exit)
    spawned.close()
    Deferred.doneUnsafe(gone, Effect.void)
  }
  const spawned: SpawnedWorker = yield* Effect.try({
    try: () => addon.spawnWorker(command, onMessage, onExit),
    catch: (error) => new WorkerFailed({ detail: (error as Error).message })
  })

  /** A worker that is gone takes no message; its exit tells all that there is to tell. */
  const send = (kind: number, payload: Buffer, fd?: number) => {
    if (exit !== undefined) {
      if (fd !== undefined) addon.closeFd(fd)
      return
    }
    try {
      spawned.send(kind, payload, fd)
    } catch {
      spawned.kill(SIGKILL)
    }
  }

  return {
    pid: spawned.pid,
    ready: Deferred.await(ready),
    isGone: () => exit !== undefined,
    gone: Deferred.await(gone),
    listen: (who) => {
      listener = who
      if (exit !== undefined) who.onExit(exit)
    },
    claim: (claim) => send(ControlKind.claim, claimPayload(claim)),
    passLane: (fd, preface) => send(ControlKind.lane, preface, fd),
    end: (reason, sentence) => send(ControlKind.end, endPayload(reason, sentence)),
    kill: () => {
      if (exit === undefined) spawned.kill(SIGKILL)
    },
    usage: () => spawned.usage()
  }
})

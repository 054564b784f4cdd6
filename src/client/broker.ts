/**
 * The broker: `juice attach` as its program's shims see it, on a Unix socket in a private folder. It gives each client
 * process its number, its own derived key and the device snapshot, and watches the processes that it has named.
 */
import { rmSync } from "node:fs"
import { createServer, type Server, type Socket } from "node:net"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Addon, ProcessWatch } from "../native/addon.ts"
import type { Exit } from "../protocol/events.ts"
import type { Endpoint } from "../protocol/gpu.ts"
import type { ProcessNumber, SessionId } from "../protocol/ids.ts"
import { deriveKey, KEY_BYTES, processKeyLabel } from "../protocol/seal.ts"
import type { Lane } from "./lane.ts"
import { makePrivateFolder, SOCKET, sweepBeside } from "./private-folder.ts"
import {
  answerMessage,
  MAX_REQUEST,
  messageLength,
  readRequest,
  refusalMessage,
  type ShimRequest
} from "./shim-messages.ts"

/** CUDA_ERROR_DEVICE_UNAVAILABLE, CUDA_ERROR_OPERATING_SYSTEM: what a program sees when it gets no identity. */
const DEVICE_UNAVAILABLE = 46
const OPERATING_SYSTEM = 304
/** A shim sends its whole request within this (ms). */
const REQUEST_TIMEOUT = 5_000

export interface BrokerOptions {
  readonly addon: Pick<Addon, "watchProcess" | "peerCredentials">
  readonly lane: Lane
  readonly session: SessionId
  /** 32 bytes; it never leaves this process. */
  readonly sessionKey: Uint8Array
  /** The host's data port, as the shims reach it. */
  readonly endpoint: Endpoint
  /** Where the private folder is made: XDG_RUNTIME_DIR, else the system's temporary folder. */
  readonly folder?: string
  readonly log: (sentence: string) => void
}

export interface Broker {
  /** What JUICE_BROKER names. */
  readonly path: string
  /** Names the program itself: its end is reported by programEnded, with its exit status, and not before. */
  readonly programStarted: (pid: number) => void
  readonly programEnded: (exit: Exit) => void
}

/** The descriptor of a connected socket: Node keeps it in its handle and offers no other way to it. */
const descriptorOf = (socket: Socket): number =>
  (socket as unknown as { readonly _handle?: { readonly fd?: number } })._handle?.fd ?? -1

const listenOn = (server: Server, path: string): Effect.Effect<void, Error> =>
  Effect.callback((resume) => {
    server.once("error", (error) => resume(Effect.fail(error)))
    server.listen(path, () => resume(Effect.void))
  })

/** Opens the broker's socket; socket and folder go with the scope. */
export const openBroker = Effect.fn("Broker.open")(function* (
  options: BrokerOptions
): Effect.fn.Return<Broker, Error, Scope.Scope> {
  const folder = yield* Effect.acquireRelease(
    Effect.try({ try: () => makePrivateFolder(options.folder), catch: (error) => error as Error }),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  )
  const path = join(folder, SOCKET)
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const watches = new Map<ProcessNumber, ProcessWatch>()
  const numbers = new Map<number, ProcessNumber>()
  let programPid: number | undefined
  let minted = 0

  const ended = (process: ProcessNumber, pid: number) => {
    watches.delete(process)
    if (pid === programPid) return
    numbers.delete(pid)
    options.lane.processEnded(process)
  }

  const identify = Effect.fnUntraced(function* (pid: number) {
    const previous = numbers.get(pid)
    if (previous !== undefined) {
      // It has replaced itself by another program: the same process here, another one to CUDA.
      watches.get(previous)?.stop()
      watches.delete(previous)
      options.lane.processEnded(previous)
    }
    const process = ++minted as ProcessNumber
    // Watched before it is announced, so that no end goes unseen.
    const watch = yield* Effect.try({
      try: () => options.addon.watchProcess(pid, () => ended(process, pid)),
      catch: (error) => error as Error
    })
    watches.set(process, watch)
    numbers.set(pid, process)
    yield* options.lane.admit(process, pid).pipe(
      Effect.tapError(() =>
        Effect.sync(() => {
          watch.stop()
          watches.delete(process)
          numbers.delete(pid)
        })
      )
    )
    return process
  })

  const answer = Effect.fnUntraced(function* (request: ShimRequest, pid: number) {
    const process = request.kind === "process" ? yield* identify(pid) : 0
    const key =
      process === 0
        ? new Uint8Array(KEY_BYTES)
        : deriveKey(options.sessionKey, options.session, processKeyLabel(process as ProcessNumber))
    return answerMessage({
      session: options.session,
      process,
      key,
      endpoint: options.endpoint,
      snapshot: options.lane.snapshot
    })
  })

  const serve = (socket: Socket) => {
    const peer = options.addon.peerCredentials(descriptorOf(socket))
    let received = Buffer.alloc(0)
    socket.setTimeout(REQUEST_TIMEOUT, () => socket.destroy())
    socket.on("error", () => socket.destroy())
    socket.on("data", (chunk) => {
      received = Buffer.concat([received, chunk])
      const length = messageLength(received)
      if (length === undefined || (length <= MAX_REQUEST && received.length < length)) return
      socket.removeAllListeners("data")
      socket.setTimeout(0)
      const request = received.length === length ? readRequest(received) : undefined
      if (peer.uid !== process.getuid!()) {
        return socket.end(refusalMessage(OPERATING_SYSTEM, "the GPU belongs to a session of another user"))
      }
      if (request === undefined) {
        return socket.end(refusalMessage(OPERATING_SYSTEM, "shim and `juice attach` are of different versions"))
      }
      run(
        answer(request, peer.pid).pipe(
          Effect.catch((error) => {
            options.log(`process ${peer.pid} got no GPU: ${error.message}`)
            return Effect.succeed(refusalMessage(DEVICE_UNAVAILABLE, error.message))
          }),
          Effect.andThen((message) => Effect.sync(() => socket.end(message)))
        )
      )
    })
  }

  const server = createServer((socket) => {
    try {
      serve(socket)
    } catch (error) {
      options.log(`a local connection was turned away: ${(error as Error).message}`)
      socket.destroy()
    }
  })
  yield* Effect.acquireRelease(listenOn(server, path), () =>
    Effect.sync(() => {
      server.close()
      for (const watch of watches.values()) watch.stop()
    })
  )
  void sweepBeside(folder)
  return {
    path,
    programStarted: (pid) => {
      programPid = pid
    },
    programEnded: (exit) => {
      const process = programPid === undefined ? undefined : numbers.get(programPid)
      if (process !== undefined) options.lane.processEnded(process, exit)
    }
  }
})

/**
 * The broker's end of its lane: the connection to the host that is the session's lease. Over it the broker gets the
 * device snapshot, announces processes and tells of their ends; when it is gone, so is the session.
 */
import { createConnection, type Socket } from "node:net"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import { BROKER_LANE, makePreface, welcomeProof } from "../native/preface.ts"
import { HostVanished } from "../protocol/errors.ts"
import type { Exit } from "../protocol/events.ts"
import type { Endpoint } from "../protocol/gpu.ts"
import type { HostId, ProcessNumber, SessionId } from "../protocol/ids.ts"
import {
  type FromBroker,
  type FromHost,
  fromBrokerCodec,
  fromHostCodec,
  LANE_SILENCE,
  LineSplitter,
  PING_INTERVAL
} from "../protocol/lane.ts"
import { HostNotProven, HostRefused } from "./errors.ts"

/** Milliseconds for the connection, and for the host's welcome: its first worker may still be starting. */
const CONNECT_TIMEOUT = 4_000
const WELCOME_TIMEOUT = 9_000
/** After its farewell the broker waits this long for the host's last word. */
const FAREWELL_TIMEOUT = 1_500

/** How the session ended while the lane was open: the host said so, or it vanished. */
export interface LaneEnd {
  readonly by: "host" | "silence" | "close"
  readonly reason: string
}

export interface Lane {
  /** What there is to know of the session's GPUs (native/link/snapshot.h). */
  readonly snapshot: Buffer
  /** Announces a process; succeeds once the host takes its connections, fails with the host's sentence. */
  readonly admit: (process: ProcessNumber, pid: number) => Effect.Effect<void, HostRefused>
  readonly processEnded: (process: ProcessNumber, exit?: Exit) => void
  /** Tells the host that silence will follow, then calls `done`. */
  readonly pause: (done: () => void) => void
  /** Completes when the session is over before we said so. */
  readonly over: Effect.Effect<LaneEnd>
  /** Says that the program has ended. Succeeds with whether the host confirmed that all is freed. */
  readonly farewell: Effect.Effect<boolean>
}

export interface LaneOptions {
  readonly host: HostId
  readonly endpoint: Endpoint
  readonly session: SessionId
  readonly brokerKey: Uint8Array
}

type OpenError = HostVanished | HostNotProven | HostRefused

const connectTo = (endpoint: Endpoint): Effect.Effect<Socket, Error> =>
  Effect.callback<Socket, Error>((resume) => {
    const socket = createConnection({ host: endpoint.host, port: endpoint.port, noDelay: true, keepAlive: true })
    socket.once("error", (error) => resume(Effect.fail(error)))
    socket.once("connect", () => {
      socket.removeAllListeners("error")
      resume(Effect.succeed(socket))
    })
    return Effect.sync(() => socket.destroy())
  })

/** Opens the lane; it is closed with the scope. */
export const openLane = Effect.fn("Lane.open")(function* (
  options: LaneOptions
): Effect.fn.Return<Lane, OpenError, Scope.Scope> {
  const endpoint = `${options.endpoint.host}:${options.endpoint.port}`
  const vanished = new HostVanished({ host: options.host, endpoint })
  const socket = yield* Effect.acquireRelease(
    connectTo(options.endpoint).pipe(
      Effect.timeoutOrElse({ duration: CONNECT_TIMEOUT, orElse: () => Effect.fail(vanished) }),
      Effect.mapError(() => vanished)
    ),
    (socket) => Effect.sync(() => socket.destroy())
  )
  const preface = makePreface({ session: options.session, process: 0n, lane: BROKER_LANE }, options.brokerKey)
  const welcome = yield* Deferred.make<Buffer, OpenError>()
  const over = yield* Deferred.make<LaneEnd>()
  const admissions = new Map<ProcessNumber, Deferred.Deferred<void, HostRefused>>()
  const splitter = new LineSplitter()
  let heard = Date.now()

  const send = (message: FromBroker, done?: () => void) => {
    socket.write(Buffer.concat([fromBrokerCodec.encode(message), Buffer.from("\n")]), done)
  }
  const end = (lane: LaneEnd) => {
    Deferred.doneUnsafe(welcome, Effect.fail(lane.by === "host" ? refused(lane.reason) : vanished))
    for (const admission of admissions.values()) Deferred.doneUnsafe(admission, Effect.fail(refused(lane.reason)))
    Deferred.doneUnsafe(over, Effect.succeed(lane))
    socket.destroy()
  }
  const refused = (reason: string) => new HostRefused({ host: options.host, reason })

  const receive = (message: FromHost) => {
    switch (message.type) {
      case "welcome": {
        const proven = message.proof === welcomeProof(options.brokerKey, preface.nonce)
        return Deferred.doneUnsafe(
          welcome,
          proven
            ? Effect.succeed(Buffer.from(message.snapshot, "base64"))
            : Effect.fail(new HostNotProven({ host: options.host, endpoint }))
        )
      }
      case "process": {
        const admission = admissions.get(message.process)
        admissions.delete(message.process)
        if (admission === undefined) return
        return Deferred.doneUnsafe(admission, message.ok ? Effect.void : Effect.fail(refused(message.error)))
      }
      case "end":
        return end({ by: "host", reason: message.reason })
      case "ping":
        return
    }
  }

  socket.on("data", (chunk) => {
    heard = Date.now()
    const lines = splitter.push(chunk)
    const messages = Result.flatMap(lines, (found) => Result.all(found.map((line) => fromHostCodec.decode(line))))
    if (Result.isFailure(messages)) return end({ by: "close", reason: messages.failure.message })
    for (const message of messages.success) receive(message)
  })
  socket.on("error", (error) => end({ by: "close", reason: error.message }))
  socket.on("close", () => end({ by: "close", reason: "the connection was closed" }))
  socket.write(preface.bytes)

  let ticked = Date.now()
  const timer = setInterval(() => {
    const now = Date.now()
    // After we ourselves were stopped (Ctrl-Z, a suspended machine) the host's words may still be on their way.
    if (now - ticked > LANE_SILENCE / 2) heard = now
    ticked = now
    if (now - heard > LANE_SILENCE) return end({ by: "silence", reason: "it has been silent for 10 s" })
    send({ type: "ping" })
  }, PING_INTERVAL)
  yield* Effect.addFinalizer(() => Effect.sync(() => clearInterval(timer)))

  const snapshot = yield* Deferred.await(welcome).pipe(
    Effect.timeoutOrElse({ duration: WELCOME_TIMEOUT, orElse: () => Effect.fail(vanished) })
  )

  return {
    snapshot,
    admit: (process, pid) =>
      Effect.gen(function* () {
        const ended = Deferred.isDoneUnsafe(over)
        if (ended) return yield* refused((yield* Deferred.await(over)).reason)
        const admission = yield* Deferred.make<void, HostRefused>()
        admissions.set(process, admission)
        send({ type: "process", process, pid })
        return yield* Deferred.await(admission)
      }),
    processEnded: (process, exit) => send({ type: "processEnded", process, ...(exit === undefined ? {} : { exit }) }),
    pause: (done) => (socket.destroyed ? done() : send({ type: "pause" }, done)),
    over: Deferred.await(over),
    farewell: Effect.gen(function* () {
      if (Deferred.isDoneUnsafe(over)) return (yield* Deferred.await(over)).by === "host"
      send({ type: "bye" })
      const last = yield* Deferred.await(over).pipe(Effect.timeoutOption(FAREWELL_TIMEOUT))
      return last._tag === "Some" && last.value.by === "host"
    })
  }
})

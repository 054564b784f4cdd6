import { once } from "node:events"
import { connect, type Socket } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { type Lane, openLane } from "../client/lane.ts"
import { makePreface } from "../native/preface.ts"
import { snapshotDevices } from "../native/snapshot.ts"
import type { GpuGrant } from "../protocol/gpu.ts"
import { type HostId, mintIncarnation, mintSessionId, type ProcessNumber, type SessionId } from "../protocol/ids.ts"
import type { PrepareReply, PrepareRequest } from "../protocol/prepare.ts"
import type { ReportBody } from "../protocol/reports.ts"
import { BROKER_KEY_LABEL, deriveKey, generateSealKeyPair, openSealed, processKeyLabel } from "../protocol/seal.ts"
import type { Principal } from "../protocol/tokens.ts"
import { makePool } from "./pool.ts"
import type { SessionTimes } from "./session.ts"
import { Sessions } from "./sessions.ts"
import { FakeAddon, GPU_MEMORY } from "./test/fake-addon.ts"
import { startWorker } from "./worker.ts"

const GPU = ["GPU-00000000-0000-0000-0000-000000000001", "GPU-00000000-0000-0000-0000-000000000002"] as const
const incarnation = mintIncarnation()
const times: SessionTimes = { prepared: 150, linger: 40, silence: 5_000, patience: 60, mercy: 60 }

/** A host without NATS: sessions over a pool of fake workers, behind a real port. */
const makeHost = Effect.fnUntraced(function* (options?: { readonly times?: Partial<SessionTimes> }) {
  const addon = new FakeAddon()
  const reports: Array<ReportBody> = []
  const pool = yield* makePool({
    size: 1,
    stocked: GPU,
    start: (uuids) => startWorker(addon, { path: "worker", args: [], env: { CUDA_VISIBLE_DEVICES: uuids.join(",") } })
  })
  for (const uuid of GPU) yield* pool.look([uuid])
  let confirmed = 0
  const listener = addon.listen({ host: "", port: 0 }, (fd, preface, peer) => sessions.accept(fd, preface, peer))
  const sessions: Sessions = new Sessions({
    incarnation,
    endpoint: { host: "127.0.0.1", port: listener.port },
    gpus: GPU.map((uuid) => ({ uuid, model: "Fake", vram: GPU_MEMORY, computeCapability: "9.0", kind: "software" })),
    addon,
    outbox: {
      append: (body) => ({ host: "h" as HostId, incarnation, n: reports.push(body), at: 0, body }),
      isConfirmed: (n) => n <= confirmed
    },
    world: {
      pool,
      times: { ...times, ...options?.times },
      adopt: addon.adopt,
      log: () => {},
      run: (effect) => {
        Effect.runFork(effect)
      }
    }
  })
  yield* Effect.addFinalizer(() => Effect.sync(() => listener.close()))
  const tags = () => reports.map((body) => ("reason" in body ? `${body._tag}(${body.reason})` : body._tag))
  return { addon, port: listener.port, reports, sessions, tags, confirmAll: () => (confirmed = reports.length) }
})
type Host = Effect.Success<ReturnType<typeof makeHost>>

const whole = (uuid: string): GpuGrant => ({ uuid, vram: GPU_MEMORY, exclusive: true })
const share = (uuid: string, vram: number): GpuGrant => ({ uuid, vram, exclusive: false })

const keyPair = generateSealKeyPair()
const request = (fields?: Partial<PrepareRequest>): PrepareRequest => ({
  session: mintSessionId(),
  principal: "dev" as Principal,
  incarnation,
  attempt: 1,
  epoch: 1,
  gpus: [whole(GPU[0])],
  publicKey: keyPair.publicKey,
  ...fields
})
const outcome = (reply: PrepareReply): string => (reply._tag === "Prepared" ? "prepared" : reply.reason)

const until = (condition: () => boolean): Effect.Effect<void> =>
  Effect.gen(function* () {
    while (!condition()) yield* Effect.sleep(2)
  }).pipe(Effect.timeoutOrElse({ duration: 10_000, orElse: () => Effect.die(new Error(`never: ${condition}`)) }))

/** Prepares a session and opens its broker's lane. */
const hold = Effect.fnUntraced(function* (host: Host, fields?: Partial<PrepareRequest>) {
  const asked = request(fields)
  const reply = host.sessions.prepare(asked)
  if (reply._tag === "PrepareRefused") return yield* Effect.die(new Error(reply.reason))
  const { attempt, session } = asked
  const sessionKey = Result.getOrThrow(openSealed({ sealed: reply.sealed, session, attempt, keyPair }))
  const brokerKey = deriveKey(sessionKey, session, BROKER_KEY_LABEL)
  const lane = yield* openLane({ host: "h" as HostId, endpoint: reply.endpoint, session, brokerKey })
  return { session, sessionKey, lane, reply }
})
interface Held {
  readonly session: SessionId
  readonly sessionKey: Uint8Array
  readonly lane: Lane
}

/** Opens a process's command lane, as a shim would. */
const openProcess = (host: Host, held: Held, process: number, announced = process): Effect.Effect<Socket> =>
  Effect.promise(async () => {
    const key = deriveKey(held.sessionKey, held.session, processKeyLabel(announced as ProcessNumber))
    const socket = connect(host.port, "127.0.0.1")
    socket.on("error", () => {})
    socket.write(makePreface({ session: held.session, process: BigInt(process), lane: 0 }, key).bytes)
    return socket
  })

/** A process that the broker has announced, with its worker attached. */
const attached = Effect.fnUntraced(function* (host: Host, held: Held, process = 1) {
  yield* held.lane.admit(process as ProcessNumber, 100 + process)
  const socket = yield* openProcess(host, held, process)
  yield* Effect.promise(() => once(socket, "data"))
  return socket
})

describe("a host's sessions", () => {
  it.live("are prepared once, however often they are asked for", () =>
    Effect.gen(function* () {
      const host = yield* makeHost()
      const asked = request()
      assert.equal(outcome(host.sessions.prepare(asked)), "prepared")
      assert.equal(outcome(host.sessions.prepare({ ...asked, epoch: 2 })), "prepared")
      assert.equal(host.sessions.size, 1)
      const other = generateSealKeyPair().publicKey
      assert.equal(outcome(host.sessions.prepare({ ...asked, epoch: 2, publicKey: other })), "bad-key")
    }).pipe(Effect.scoped)
  )

  it.live("are refused when they do not fit, are out of date or not meant for us", () =>
    Effect.gen(function* () {
      const host = yield* makeHost()
      const ask = (fields: Partial<PrepareRequest>) => outcome(host.sessions.prepare(request(fields)))
      assert.equal(ask({ epoch: 5 }), "prepared")
      assert.equal(ask({ epoch: 5 }), "does-not-fit")
      assert.equal(ask({ epoch: 5, gpus: [share(GPU[0], 1)] }), "does-not-fit")
      assert.equal(ask({ epoch: 5, gpus: [share(GPU[1], 600_000)] }), "prepared")
      assert.equal(ask({ epoch: 5, gpus: [share(GPU[1], 600_000)] }), "does-not-fit")
      assert.equal(ask({ epoch: 5, gpus: [share(GPU[1], 400_000)] }), "prepared")
      assert.equal(ask({ epoch: 5, gpus: [whole("GPU-none")] }), "unknown-gpu")
      assert.equal(ask({ epoch: 4 }), "older-epoch")
      assert.equal(ask({ epoch: 5, incarnation: mintIncarnation() }), "other-incarnation")
      assert.equal(ask({ epoch: 5, gpus: [share(GPU[1], 1)], publicKey: "A".repeat(43) }), "bad-key")
    }).pipe(Effect.scoped)
  )

  it.live("end when no client comes, and do not start anew", () =>
    Effect.gen(function* () {
      const host = yield* makeHost()
      const asked = request()
      host.sessions.prepare(asked)
      yield* until(() => host.sessions.size === 0)
      assert.deepEqual(host.tags(), ["session.ended(never-connected)"])
      assert.equal(outcome(host.sessions.prepare(asked)), "older-attempt")
      assert.equal(outcome(host.sessions.prepare({ ...asked, attempt: 2 })), "prepared")
    }).pipe(Effect.scoped)
  )

  it.live("show their client the device snapshot, limited to its share", () =>
    Effect.gen(function* () {
      const host = yield* makeHost()
      const held = yield* hold(host, { gpus: [share(GPU[1], 5_000)] })
      assert.deepEqual(
        snapshotDevices(held.lane.snapshot)?.map(({ totalMemory, uuid }) => [uuid, totalMemory]),
        [[GPU[1], 5_000]]
      )
      yield* attached(host, held)
      assert.deepEqual(
        host.addon.workers.filter(({ claimed }) => claimed).map(({ memoryLimit }) => memoryLimit),
        [5_000]
      )
    }).pipe(Effect.scoped)
  )

  it.live("serve a process with a ready worker, and report its end with its figures", () =>
    Effect.gen(function* () {
      const host = yield* makeHost()
      const held = yield* hold(host)
      const socket = yield* attached(host, held)
      socket.write("goodbye\n")
      held.lane.processEnded(1 as ProcessNumber, { code: 3 })
      yield* until(() => host.reports.length === 2)
      assert.deepEqual(host.reports[1], {
        _tag: "process.ended",
        session: held.session,
        process: 1,
        reason: "exit",
        exit: { code: 3 },
        usage: { calls: 1, bytesIn: 8, bytesOut: 0, launches: 0, peakMemory: 64 }
      } as ReportBody)
      // Farewell is confirmed once all is freed.
      assert.isTrue(yield* held.lane.farewell)
      assert.equal(host.sessions.size, 0)
      assert.deepEqual(host.tags(), ["process.attached", "process.ended(exit)", "session.ended(client-exit)"])
      // The taken worker has been replaced.
      yield* until(() => host.addon.alive.length === 2)
    }).pipe(Effect.scoped)
  )

  it.live("tell apart how a process ended", () =>
    Effect.gen(function* () {
      const host = yield* makeHost()
      const held = yield* hold(host)
      const end = Effect.fnUntraced(function* (process: number, act: (socket: Socket) => void, told: boolean) {
        const socket = yield* attached(host, held, process)
        act(socket)
        if (told) held.lane.processEnded(process as ProcessNumber)
        const before = host.reports.length
        yield* until(() => host.reports.length > before)
        const body = host.reports.at(-1)!
        return body._tag === "process.ended" ? [body.reason, body.error?.name] : [body._tag]
      })
      assert.deepEqual(yield* end(1, (socket) => socket.destroy(), true), ["killed", undefined])
      assert.deepEqual(yield* end(2, (socket) => socket.destroy(), false), ["client-lost", undefined])
      assert.deepEqual(yield* end(3, (socket) => socket.write("crash\n"), false), ["worker-crashed", undefined])
      assert.deepEqual(yield* end(4, (socket) => socket.write("violate\n"), true), ["protocol-violation", undefined])
      assert.deepEqual(yield* end(5, (socket) => socket.write("fault\n"), true), [
        "error",
        "CUDA_ERROR_ILLEGAL_ADDRESS"
      ])
    }).pipe(Effect.scoped)
  )

  it.live("kill the worker of a dead process that does not notice by itself", () =>
    Effect.gen(function* () {
      const host = yield* makeHost()
      const held = yield* hold(host)
      yield* attached(host, held)
      const worker = host.addon.workers.find(({ claimed }) => claimed)!
      held.lane.processEnded(1 as ProcessNumber)
      yield* until(() => worker.gone)
    }).pipe(Effect.scoped)
  )

  it.live("turn away connections that prove no key, of unknown processes, and those seen before", () =>
    Effect.gen(function* () {
      const host = yield* makeHost()
      const held = yield* hold(host)
      const refused = Effect.fnUntraced(function* (socket: Socket) {
        const [data] = yield* Effect.promise(() => once(socket, "data") as Promise<[Buffer]>)
        return data.readUInt8(4) === 3 ? data.readUInt16LE(40) : -1
      })
      assert.equal(yield* refused(yield* openProcess(host, held, 1)), 3)
      yield* held.lane.admit(1 as ProcessNumber, 5)
      assert.equal(yield* refused(yield* openProcess(host, held, 1, 2)), 3)
      const key = deriveKey(held.sessionKey, held.session, processKeyLabel(1 as ProcessNumber))
      const { bytes } = makePreface({ session: held.session, process: 1n, lane: 0 }, key)
      const first = connect(host.port, "127.0.0.1")
      first.write(bytes)
      yield* Effect.promise(() => once(first, "data"))
      const again = connect(host.port, "127.0.0.1")
      again.write(bytes)
      assert.equal(yield* refused(again), 3)
      first.destroy()
    }).pipe(Effect.scoped)
  )

  it.live("admit no process number twice", () =>
    Effect.gen(function* () {
      const host = yield* makeHost()
      const held = yield* hold(host)
      yield* held.lane.admit(2 as ProcessNumber, 5)
      const again = yield* Effect.flip(held.lane.admit(2 as ProcessNumber, 6))
      assert.match(again.message, /this process number has been used/)
    }).pipe(Effect.scoped)
  )

  it.live("live on for a moment when their client is gone, then end", () =>
    Effect.gen(function* () {
      const host = yield* makeHost()
      yield* Effect.scoped(hold(host))
      assert.equal(host.sessions.size, 1)
      yield* until(() => host.sessions.size === 0)
      assert.deepEqual(host.tags(), ["session.ended(client-exit)"])
    }).pipe(Effect.scoped)
  )

  it.live("end what a killed client left running", () =>
    Effect.gen(function* () {
      const host = yield* makeHost()
      let socket: Socket | undefined
      yield* Effect.scoped(
        Effect.gen(function* () {
          socket = yield* attached(host, yield* hold(host))
        })
      )
      yield* until(() => host.sessions.size === 0)
      assert.deepEqual(host.tags(), ["process.attached", "process.ended(session-ended)", "session.ended(client-lost)"])
      socket?.destroy()
    }).pipe(Effect.scoped)
  )

  it.live("end on release, and say whether a report follows", () =>
    Effect.gen(function* () {
      const host = yield* makeHost()
      const held = yield* hold(host)
      const release = (epoch: number) =>
        host.sessions.release({ session: held.session, attempt: 1, epoch, reason: "released" }).outcome
      yield* attached(host, held)
      assert.equal(release(0), "refused")
      assert.equal(release(1), "releasing")
      yield* until(() => host.sessions.size === 0)
      assert.equal((yield* held.lane.over).reason, "it was released (released)")
      assert.equal(release(1), "releasing")
      host.confirmAll()
      assert.equal(release(1), "unknown")
      assert.equal(host.tags().at(-1), "session.ended(released)")
    }).pipe(Effect.scoped)
  )

  it.live("go back unused, and finish used, when the host drains", () =>
    Effect.gen(function* () {
      const host = yield* makeHost()
      const held = yield* hold(host)
      host.sessions.prepare(request({ gpus: [whole(GPU[1])] }))
      let empty = false
      host.sessions.drain(() => {
        empty = true
      })
      assert.deepEqual(host.tags(), ["session.refused(draining)"])
      assert.equal(outcome(host.sessions.prepare(request({ gpus: [whole(GPU[1])] }))), "draining")
      assert.isFalse(empty)
      yield* held.lane.farewell
      assert.isTrue(empty)
    }).pipe(Effect.scoped)
  )

  it.live("end with a sentence when no worker starts", () =>
    Effect.gen(function* () {
      const host = yield* makeHost()
      host.addon.failure = "libcuda says no"
      const error = yield* Effect.flip(hold(host, { gpus: [whole(GPU[0]), whole(GPU[1])] }))
      assert.match(error.message, /libcuda says no/)
      yield* until(() => host.sessions.size === 0)
      assert.deepEqual(host.tags(), ["session.ended(host-failed)"])
    }).pipe(Effect.scoped)
  )
})

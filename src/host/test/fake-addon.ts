/**
 * An addon without native code, for tests of what is above it. Its descriptors are numbers of its own for in-process
 * sockets, its workers live in this process: they serve a link that consists of words.
 *
 *   goodbye   the client leaves in order
 *   fault     a sticky CUDA error 700
 *   violate   the client breaks the protocol
 *   crash     the worker dies by signal 11
 */
import { type AddressInfo, createServer, type Server, type Socket } from "node:net"
import type { Addon, Inventory, PeerCredentials, SpawnedWorker, WorkerUsage } from "../../native/addon.ts"
import { Writer } from "../../native/codec.ts"
import { ControlKind, Ending } from "../../native/control.ts"
import { PREFACE_BYTES } from "../../native/preface.ts"

export const CONTEXT_BYTES = 1_000
export const GPU_MEMORY = 1_000_000

/** A snapshot of devices with these UUIDs. */
export const fakeSnapshot = (uuids: ReadonlyArray<string>): Buffer => {
  const out = new Writer().u32(2).i32(13000).text("fake").u32(uuids.length)
  for (const uuid of uuids) {
    out.text("Fake GPU").raw(Buffer.from(uuid.replace(/^GPU-/, "").replaceAll("-", ""), "hex"))
    out.u64(GPU_MEMORY).text("0000:01:00.0")
    out.u32(2).i32(75).i32(9).i32(76).i32(0).u32(0).i32(0).i32(-5)
    out.bytes(Buffer.alloc(0)).bytes(Buffer.alloc(0))
  }
  return out.bytes(Buffer.alloc(uuids.length ** 2)).done()
}

export class FakeWorker implements SpawnedWorker {
  readonly pid: number
  readonly uuids: ReadonlyArray<string>
  readonly usageNow: { -readonly [Key in keyof WorkerUsage]: WorkerUsage[Key] } = {
    calls: 0,
    bytesIn: 0,
    bytesOut: 0,
    launches: 0,
    memoryNow: 0,
    memoryPeak: 0,
    clientPid: 0,
    lastError: 0,
    ending: 0
  }
  claimed = false
  memoryLimit = 0
  gone = false
  readonly #addon: FakeAddon
  readonly #onMessage: (kind: number, payload: Buffer) => void
  readonly #onExit: (code: number | null, signal: number | null) => void
  readonly #lanes: Array<Socket> = []

  constructor(
    addon: FakeAddon,
    pid: number,
    uuids: ReadonlyArray<string>,
    onMessage: (kind: number, payload: Buffer) => void,
    onExit: (code: number | null, signal: number | null) => void
  ) {
    this.#addon = addon
    this.pid = pid
    this.uuids = uuids
    this.#onMessage = onMessage
    this.#onExit = onExit
    setTimeout(() => this.#start(), addon.startMs)
  }

  #start(): void {
    if (this.gone) return
    const failure = this.#addon.failure
    if (failure !== undefined) {
      this.#onMessage(ControlKind.failed, new Writer().text(failure).done())
      this.exit(1, null)
      return
    }
    const ready = new Writer().i32(13000).bytes(fakeSnapshot(this.uuids)).u64(CONTEXT_BYTES).done()
    this.#onMessage(ControlKind.ready, ready)
  }

  send(kind: number, payload: Buffer, fd?: number): void {
    if (kind === ControlKind.claim) {
      this.claimed = true
      this.memoryLimit = Number(payload.readBigUInt64LE(16 + 8 + 32))
    }
    if (kind === ControlKind.end) this.#say(Ending.open, 0)
    if (kind !== ControlKind.lane) return
    const socket = this.#addon.adopt(fd!)
    if (this.gone) {
      socket.destroy()
      return
    }
    const first = this.#lanes.length === 0
    this.#lanes.push(socket)
    if (!first) return
    this.#onMessage(ControlKind.attached, new Writer().u32(4711).done())
    socket.write("welcome\n")
    socket.on("error", () => socket.destroy())
    socket.on("close", () => this.#say(Ending.closed, 0))
    socket.on("data", (data) => {
      this.usageNow.calls += 1
      this.usageNow.bytesIn += data.length
      this.usageNow.memoryPeak = 64
      for (const word of data.toString().split("\n")) {
        if (word === "goodbye") this.#say(Ending.goodbye, 0)
        if (word === "fault") this.#say(Ending.goodbye, 700)
        if (word === "violate") this.#say(Ending.violation, 0)
        if (word === "crash") this.exit(null, 11)
      }
    })
  }

  #say(ending: number, sticky: number): void {
    if (this.gone) return
    this.#onMessage(ControlKind.ended, new Writer().u8(ending).i32(sticky).text("").done())
    this.exit(0, null)
  }

  exit(code: number | null, signal: number | null): void {
    if (this.gone) return
    this.gone = true
    for (const lane of this.#lanes) lane.destroy()
    setImmediate(() => this.#onExit(code, signal))
  }

  usage(): WorkerUsage {
    return this.usageNow
  }
  kill(signal: number): void {
    this.exit(null, signal)
  }
  close(): void {
    this.exit(0, null)
  }
}

export class FakeAddon implements Addon {
  readonly workers: Array<FakeWorker> = []
  /** What inventory() answers; without it there is no NVIDIA driver. */
  real: Inventory | undefined
  /** Milliseconds until a worker is ready. */
  startMs = 1
  /** With it, drivers do not start. */
  failure: string | undefined
  readonly watched = new Map<number, () => void>()
  readonly #sockets = new Map<number, Socket>()
  #nextFd = 1_000_000

  inventory(): Inventory {
    if (this.real !== undefined) return this.real
    throw Object.assign(new Error("no NVIDIA driver"), { code: "NVML_UNAVAILABLE" })
  }

  /** Listens on all addresses: only so does Node tell at once which port it got. */
  listen(
    options: { readonly host: string; readonly port: number },
    onPreface: (fd: number, preface: Buffer, peer: string) => void
  ): { readonly port: number; close(): void } {
    const server: Server = createServer((socket) => {
      let bytes = Buffer.alloc(0)
      socket.on("error", () => socket.destroy())
      const collect = (chunk: Buffer) => {
        bytes = Buffer.concat([bytes, chunk])
        if (bytes.length < PREFACE_BYTES) return
        socket.off("data", collect)
        socket.pause()
        if (bytes.length > PREFACE_BYTES) socket.unshift(bytes.subarray(PREFACE_BYTES))
        onPreface(this.register(socket), bytes.subarray(0, PREFACE_BYTES), "test")
      }
      socket.on("data", collect)
    })
    server.listen(options.port)
    return { port: (server.address() as AddressInfo).port, close: () => server.close() }
  }

  register(socket: Socket): number {
    this.#nextFd += 1
    this.#sockets.set(this.#nextFd, socket)
    return this.#nextFd
  }

  readonly adopt = (fd: number): Socket => {
    const socket = this.#sockets.get(fd)!
    this.#sockets.delete(fd)
    setImmediate(() => socket.resume())
    return socket
  }

  closeFd(fd: number): void {
    this.adopt(fd).destroy()
  }

  spawnWorker(
    options: { readonly env: Record<string, string> },
    onMessage: (kind: number, payload: Buffer) => void,
    onExit: (code: number | null, signal: number | null) => void
  ): SpawnedWorker {
    const uuids = options.env.CUDA_VISIBLE_DEVICES!.split(",")
    const worker = new FakeWorker(this, 10_000 + this.workers.length, uuids, onMessage, onExit)
    this.workers.push(worker)
    return worker
  }

  watchProcess(pid: number, onExit: () => void): { stop(): void } {
    this.watched.set(pid, onExit)
    return { stop: () => this.watched.delete(pid) }
  }

  peerCredentials(_fd: number): PeerCredentials {
    return { pid: process.pid, uid: process.getuid!(), gid: process.getgid!() }
  }

  /** Workers that have not ended. */
  get alive(): ReadonlyArray<FakeWorker> {
    return this.workers.filter(({ gone }) => !gone)
  }
}

/**
 * What shim and broker say to each other on the broker's Unix socket; docs/architecture.md has the table. One request
 * and one answer a connection, each a u32 length and then a body as native/link/codec.h writes it.
 */
import { Reader, Writer } from "../native/codec.ts"
import type { Endpoint } from "../protocol/gpu.ts"

const VERSION = 1
const KIND = { snapshot: 1, process: 2 } as const
/** A request is 12 bytes; a longer one is not the shim's. */
export const MAX_REQUEST = 64

export interface ShimRequest {
  readonly kind: keyof typeof KIND
  /** The process as it sees itself; the socket's credentials say who it is here. */
  readonly pid: number
}

export interface ShimAnswer {
  /** 32 hex digits. */
  readonly session: string
  /** 0 in the answer to a request for the snapshot. */
  readonly process: number
  /** 32 bytes; zeros in the answer to a request for the snapshot. */
  readonly key: Uint8Array
  readonly endpoint: Endpoint
  readonly snapshot: Uint8Array
}

/** Bytes of the whole first message, its length included; undefined until the length itself is there. */
export const messageLength = (bytes: Buffer): number | undefined =>
  bytes.length < 4 ? undefined : 4 + bytes.readUInt32LE(0)

const framed = (body: Buffer): Buffer => new Writer().bytes(body).done()

/** The request in a whole message, or undefined when it is none that this version knows. */
export const readRequest = (message: Buffer): ShimRequest | undefined => {
  const reader = new Reader(message.subarray(4))
  const [version, kind, pid] = [reader.u32(), reader.u32(), reader.u32()]
  if (!reader.done || version !== VERSION) return undefined
  if (kind === KIND.snapshot) return { kind: "snapshot", pid }
  if (kind === KIND.process) return { kind: "process", pid }
  return undefined
}

/** As a shim sends it. */
export const requestMessage = (request: ShimRequest): Buffer =>
  framed(new Writer().u32(VERSION).u32(KIND[request.kind]).u32(request.pid).done())

export const answerMessage = (answer: ShimAnswer): Buffer =>
  framed(
    new Writer()
      .u32(VERSION)
      .i32(0)
      .raw(Buffer.from(answer.session, "hex"))
      .u64(answer.process)
      .raw(answer.key)
      .text(answer.endpoint.host)
      .u16(answer.endpoint.port)
      .bytes(answer.snapshot)
      .done()
  )

/** `result`: the CUresult that the program sees. */
export const refusalMessage = (result: number, sentence: string): Buffer =>
  framed(new Writer().u32(VERSION).i32(result).text(sentence).done())

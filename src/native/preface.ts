/**
 * The part of the data plane's wire format that Node takes part in: the preface of every connection and the frame
 * with which a host turns one away. The whole format stands in native/link/wire.h.
 */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto"
import { Reader, Writer } from "./codec.ts"

export const MAGIC = Buffer.from([0x4a, 0x55, 0x49, 0x43, 0x45, 0, 0, 1])
export const WIRE_VERSION = 1
export const PREFACE_BYTES = 64
const PROVEN_BYTES = 48
const NONCE_BYTES = 8
const PROOF_BYTES = 16

/** The lane of `juice attach` itself; it never reaches a worker. */
export const BROKER_LANE = 0xffff
/** Command lane 0 and bulk lanes 1 to 8. */
export const MAX_BULK_LANES = 8

export interface Preface {
  readonly version: number
  readonly lane: number
  readonly flags: number
  /** 16 raw bytes, as lower-case hex. */
  readonly session: string
  /** The client process's number in its session, from 1; 0 on the broker's lane. */
  readonly process: bigint
  /** 8 bytes. */
  readonly nonce: Buffer
}

const proofOf = (key: Uint8Array, proven: Uint8Array): Buffer =>
  createHmac("sha256", key).update("preface").update(proven).digest().subarray(0, PROOF_BYTES)

/** The 64 bytes that open a connection, proven with the key of whoever opens it. */
export const makePreface = (
  options: { readonly session: string; readonly process: bigint; readonly lane: number; readonly nonce?: Uint8Array },
  key: Uint8Array
): { readonly bytes: Buffer; readonly nonce: Buffer } => {
  const nonce = Buffer.from(options.nonce ?? randomBytes(NONCE_BYTES))
  const proven = new Writer()
    .raw(MAGIC)
    .u16(WIRE_VERSION)
    .u16(options.lane)
    .u32(0)
    .raw(Buffer.from(options.session, "hex"))
    .u64(options.process)
    .raw(nonce)
    .done()
  return { bytes: Buffer.concat([proven, proofOf(key, proven)]), nonce }
}

/** The fields of a preface, or undefined when these are not 64 bytes with the magic. The proof is checked apart. */
export const readPreface = (bytes: Buffer): Preface | undefined => {
  if (bytes.length !== PREFACE_BYTES || !bytes.subarray(0, MAGIC.length).equals(MAGIC)) return undefined
  const reader = new Reader(bytes.subarray(MAGIC.length))
  return {
    version: reader.u16(),
    lane: reader.u16(),
    flags: reader.u32(),
    session: reader.take(16).toString("hex"),
    process: reader.u64(),
    nonce: Buffer.from(reader.take(NONCE_BYTES))
  }
}

/** Whether a preface of PREFACE_BYTES was made by someone who holds the key. */
export const provesKey = (bytes: Buffer, key: Uint8Array): boolean =>
  timingSafeEqual(bytes.subarray(PROVEN_BYTES, PREFACE_BYTES), proofOf(key, bytes.subarray(0, PROVEN_BYTES)))

/** What the host proves its key to the broker with: hex HMAC-SHA256(broker key, "welcome" + nonce). */
export const welcomeProof = (brokerKey: Uint8Array, nonce: Uint8Array): string =>
  createHmac("sha256", brokerKey).update("welcome").update(nonce).digest("hex")

/** Why a connection ends: wire::GoodbyeReason. */
export const GoodbyeReason = {
  done: 0,
  protocol: 1,
  version: 2,
  proof: 3,
  arena: 4,
  workerFailed: 5,
  sessionEnded: 6
} as const
export type GoodbyeReason = (typeof GoodbyeReason)[keyof typeof GoodbyeReason]

const GOODBYE_KIND = 3

/** A whole goodbye frame: what a host answers on a process's lane that it cannot hand to a worker. */
export const goodbyeFrame = (reason: GoodbyeReason, sentence: string): Buffer => {
  const payload = new Writer().u16(reason).text(sentence).done()
  return new Writer()
    .u32(payload.length)
    .u8(GOODBYE_KIND)
    .u8(0)
    .u16(0)
    .u32(0)
    .u32(0)
    .u64(0)
    .u64(0)
    .u32(0)
    .u32(0)
    .raw(payload)
    .done()
}

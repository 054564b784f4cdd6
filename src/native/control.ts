/**
 * Messages between a host and one of its workers; native/link/control.h describes the channel. The addon carries the
 * kind apart, so these are payloads only.
 */
import { Reader, Writer } from "./codec.ts"
import type { GoodbyeReason } from "./preface.ts"

export const ControlKind = {
  ready: 1,
  failed: 2,
  claim: 3,
  lane: 4,
  attached: 5,
  ended: 6,
  end: 7
} as const

/** How a worker's client went, as its link saw it: juice::Ending. */
export const Ending = { open: 0, goodbye: 1, closed: 2, reset: 3, violation: 4 } as const
export type Ending = (typeof Ending)[keyof typeof Ending]

export type FromWorker =
  /** The driver is up. `snapshot`: native/link/snapshot.h; `contextBytes`: GPU memory that a context costs. */
  | {
      readonly _tag: "ready"
      readonly driverVersion: number
      readonly snapshot: Buffer
      readonly contextBytes: number
    }
  /** The driver did not start; the worker exits. */
  | { readonly _tag: "failed"; readonly sentence: string }
  /** The handshake on lane 0 succeeded. */
  | { readonly _tag: "attached"; readonly clientPid: number }
  /** Last word. `sticky`: the CUresult that no context survived, or 0. */
  | { readonly _tag: "ended"; readonly ending: Ending; readonly sticky: number; readonly sentence: string }

/** A worker's message, or undefined when the payload is not what the kind promises. */
export const readFromWorker = (kind: number, payload: Buffer): FromWorker | undefined => {
  const reader = new Reader(payload)
  const message = ((): FromWorker | undefined => {
    switch (kind) {
      case ControlKind.ready:
        return {
          _tag: "ready",
          driverVersion: reader.i32(),
          snapshot: Buffer.from(reader.bytes()),
          contextBytes: Number(reader.u64())
        }
      case ControlKind.failed:
        return { _tag: "failed", sentence: reader.text() }
      case ControlKind.attached:
        return { _tag: "attached", clientPid: reader.u32() }
      case ControlKind.ended: {
        const ending = reader.u8()
        if (ending > Ending.violation) return undefined
        return { _tag: "ended", ending: ending as Ending, sticky: reader.i32(), sentence: reader.text() }
      }
      default:
        return undefined
    }
  })()
  return reader.done ? message : undefined
}

/** Binds a worker to one client process for its whole life. `memoryLimit` in bytes, 0 for none. */
export const claimPayload = (claim: {
  readonly session: string
  readonly process: bigint
  readonly key: Uint8Array
  readonly memoryLimit: number
}): Buffer =>
  new Writer().raw(Buffer.from(claim.session, "hex")).u64(claim.process).raw(claim.key).u64(claim.memoryLimit).done()

export const endPayload = (reason: GoodbyeReason, sentence: string): Buffer =>
  new Writer().u16(reason).text(sentence).done()

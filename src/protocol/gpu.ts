/**
 * GPUs as the control plane sees them: what a host has, what a client wants, what a session got, what was used.
 */
import * as Schema from "effect/Schema"
import { MAX_GPUS } from "./limits.ts"

const Positive = Schema.Int.check(Schema.isGreaterThan(0))

export const GpuUuid = Schema.String.check(
  Schema.isPattern(/^[A-Za-z0-9-]{1,64}$/, { expected: "a GPU UUID such as GPU-…" })
)

/** A GPU of a host. `vram` is what sessions can have of it, in bytes. */
export const Gpu = Schema.Struct({
  uuid: GpuUuid,
  /** The product name as the driver gives it, for example "NVIDIA H200". */
  model: Schema.String.check(Schema.isMaxLength(128)),
  vram: Positive,
  /** "9.0" */
  computeCapability: Schema.String.check(Schema.isPattern(/^\d{1,2}\.\d{1,2}$/)),
  kind: Schema.Literals(["nvidia", "software"])
})
export type Gpu = typeof Gpu.Type

/**
 * What a client wants. Neither `vram` nor `share`: whole GPUs, for this session alone. `vram` (bytes of each GPU) or
 * `share` (part of each GPU's memory, above 0 up to 1): a share, and other sessions may have the rest.
 */
export const GpuRequest = Schema.Struct({
  count: Positive.check(Schema.isLessThanOrEqualTo(MAX_GPUS)),
  vram: Schema.optionalKey(Positive),
  share: Schema.optionalKey(Schema.Finite.check(Schema.isGreaterThan(0), Schema.isLessThanOrEqualTo(1))),
  /** A part of the model's name, in any case: "h200". */
  model: Schema.optionalKey(Schema.NonEmptyString.check(Schema.isMaxLength(128))),
  /** These very GPUs; as many as `count`, or more to choose from. */
  uuid: Schema.optionalKey(Schema.NonEmptyArray(GpuUuid)),
  /** At least this compute capability. */
  computeCapability: Schema.optionalKey(Schema.String.check(Schema.isPattern(/^\d{1,2}\.\d{1,2}$/)))
})
export type GpuRequest = typeof GpuRequest.Type

/** A GPU as a session holds it: `vram` bytes reserved, all of it and nobody else's when `exclusive`. */
export const GpuGrant = Schema.Struct({ uuid: GpuUuid, vram: Positive, exclusive: Schema.Boolean })
export type GpuGrant = typeof GpuGrant.Type

/** What a process, or all of a session's processes, used. `peakMemory` is the highest device memory in bytes. */
export const Usage = Schema.Struct({
  calls: Schema.Natural,
  bytesIn: Schema.Natural,
  bytesOut: Schema.Natural,
  launches: Schema.Natural,
  peakMemory: Schema.Natural
})
export type Usage = typeof Usage.Type

export const NO_USAGE: Usage = { calls: 0, bytesIn: 0, bytesOut: 0, launches: 0, peakMemory: 0 }

const LabelName = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$/))

/** Labels of a host: facts about the machine, chosen by its operator; and what a client demands of them. */
export const Labels = Schema.Record(Schema.String, Schema.String.check(Schema.isMaxLength(63))).check(
  Schema.isPropertyNames(LabelName)
)
export type Labels = typeof Labels.Type

/** Where a host's data plane listens. */
export const Endpoint = Schema.Struct({
  host: Schema.NonEmptyString.check(Schema.isMaxLength(255)),
  port: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 65535 }))
})
export type Endpoint = typeof Endpoint.Type

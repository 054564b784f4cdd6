/**
 * The GPUs that a host offers: which were asked for, which are there, and how a worker gets hold of them.
 */
import { createHash } from "node:crypto"
import * as Effect from "effect/Effect"
import type { Addon, Inventory } from "../native/addon.ts"
import type { NativeFiles } from "../native/files.ts"
import type { Gpu } from "../protocol/gpu.ts"
import type { HostId } from "../protocol/ids.ts"
import { MAX_GPUS } from "../protocol/limits.ts"
import { BadGpuChoice, NoGpus } from "./errors.ts"

export type GpuChoice =
  /** The real ones, or one software GPU where there is none. */
  | { readonly _tag: "auto" }
  /** All real ones. */
  | { readonly _tag: "all" }
  | { readonly _tag: "none" }
  | { readonly _tag: "soft"; readonly count: number }
  /** These real ones; a UUID may be shortened as long as it names one GPU. */
  | { readonly _tag: "uuids"; readonly uuids: ReadonlyArray<string> }

/** auto, all, none, soft, soft:N or UUIDs separated by commas. */
export const parseGpuChoice = (text: string): Effect.Effect<GpuChoice, BadGpuChoice> => {
  if (text === "auto" || text === "all" || text === "none") return Effect.succeed({ _tag: text })
  const soft = /^soft(?::(\d{1,2}))?$/.exec(text)
  if (soft !== null) {
    const count = Number(soft[1] ?? 1)
    return count >= 1 && count <= MAX_GPUS
      ? Effect.succeed({ _tag: "soft", count })
      : Effect.fail(new BadGpuChoice({ text }))
  }
  const uuids = text.split(",").map((part) => part.trim())
  return uuids.every((uuid) => /^GPU-[0-9a-fA-F-]+$/.test(uuid))
    ? Effect.succeed({ _tag: "uuids", uuids })
    : Effect.fail(new BadGpuChoice({ text }))
}

/** GPUs of one driver, before any worker has seen them. */
export interface Offer {
  /** What the worker loads. */
  readonly driver: string
  readonly kind: Gpu["kind"]
  /** All GPUs of the offer. What else there is to know of them, their first worker tells. */
  readonly uuids: ReadonlyArray<string>
  /** For people: "NVIDIA driver 580.159.04". */
  readonly driverText: string
}

/** Software GPUs keep their UUIDs across restarts: they follow from the host's name. */
export const softGpuUuid = (host: HostId, index: number): string => {
  const bytes = createHash("sha256").update(`juice software gpu ${index} of ${host}`).digest().subarray(0, 16)
  // UUID version 8: of our own making.
  bytes[6] = (bytes[6]! & 0x0f) | 0x80
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  const hex = bytes.toString("hex")
  return `GPU-${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

const softOffer = (host: HostId, count: number, files: NativeFiles): Offer => ({
  driver: files.softGpuDriver,
  kind: "software",
  uuids: Array.from({ length: count }, (_, index) => softGpuUuid(host, index)),
  driverText: "software"
})

const realOffer = (inventory: Inventory, uuids: ReadonlyArray<string>): Offer => ({
  driver: "libcuda.so.1",
  kind: "nvidia",
  uuids,
  driverText: `NVIDIA driver ${inventory.driverText}`
})

/** The GPUs that the choice means on this machine; undefined for none. Fails when those asked for are not here. */
export const takeInventory = Effect.fn("Inventory.take")(function* (options: {
  readonly choice: GpuChoice
  readonly host: HostId
  readonly addon: Pick<Addon, "inventory">
  readonly files: NativeFiles
}): Effect.fn.Return<Offer | undefined, NoGpus> {
  const { choice, files, host } = options
  if (choice._tag === "none") return undefined
  if (choice._tag === "soft") return softOffer(host, choice.count, files)
  const real = yield* Effect.result(
    Effect.try({ try: () => options.addon.inventory(), catch: (error) => error as Error })
  )
  const found = real._tag === "Success" ? real.success.gpus : []
  if (real._tag === "Failure" || found.length === 0) {
    if (choice._tag === "auto") return softOffer(host, 1, files)
    const detail = real._tag === "Failure" ? real.failure.message : "the NVIDIA driver shows no GPU"
    return yield* new NoGpus({ detail })
  }
  if (choice._tag !== "uuids") {
    return realOffer(
      real.success,
      found.map(({ uuid }) => uuid)
    )
  }
  const wanted: Array<string> = []
  for (const uuid of choice.uuids) {
    const matching = found.filter((gpu) => gpu.uuid.toLowerCase().startsWith(uuid.toLowerCase()))
    if (matching.length !== 1) {
      const detail = matching.length === 0 ? `this machine has no ${uuid}` : `${uuid} names several GPUs`
      return yield* new NoGpus({ detail })
    }
    if (!wanted.includes(matching[0]!.uuid)) wanted.push(matching[0]!.uuid)
  }
  return realOffer(real.success, wanted)
})

/** Variables of the host's environment that a worker gets: what the loader, the driver and sanitizers read. */
const PASSED = /^(?:PATH|HOME|LANG|TMPDIR|LD_LIBRARY_PATH|CUDA_.*|NVIDIA_.*|JUICE_SOFTGPU_.*|[AUL]SAN_OPTIONS)$/

/** The environment of a worker that is to see exactly these GPUs of the offer, in this order. */
export const workerEnvironment = (
  offer: Offer,
  uuids: ReadonlyArray<string>,
  env: NodeJS.ProcessEnv
): Record<string, string> => {
  const passed = Object.entries(env).filter(
    (pair): pair is [string, string] => PASSED.test(pair[0]) && pair[1] !== undefined
  )
  const software =
    offer.kind === "software"
      ? { JUICE_SOFTGPU_UUIDS: offer.uuids.join(","), JUICE_SOFTGPU_DEVICES: String(offer.uuids.length) }
      : {}
  return {
    ...Object.fromEntries(passed),
    ...software,
    CUDA_DEVICE_ORDER: "PCI_BUS_ID",
    CUDA_VISIBLE_DEVICES: uuids.join(",")
  }
}

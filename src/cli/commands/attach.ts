/** `juice attach`: runs a program with a GPU that is somewhere else. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { attach } from "../../client/attach.ts"
import { findProgram, type ProgramExit } from "../../client/program.ts"
import { loadAddon } from "../../native/addon.ts"
import { NativeMissing } from "../../native/errors.ts"
import { findNativeFiles, requireFiles } from "../../native/files.ts"
import { GpuRequest } from "../../protocol/gpu.ts"
import { MAX_WAIT } from "../../protocol/limits.ts"
import { VERSION } from "../../protocol/version.ts"
import { Usage } from "../errors.ts"
import { checked, parseBytes, parseLabels } from "../flags.ts"
import { type Common, natsLayer, siteOf } from "../nats.ts"
import { tell } from "../output.ts"

export interface AttachInput extends Common {
  readonly gpus: number
  readonly vram: Option.Option<string>
  readonly share: Option.Option<number>
  readonly wait: number
  readonly gpuModel: Option.Option<string>
  readonly gpuUuid: Option.Option<string>
  readonly label: Option.Option<string>
  readonly verbose: boolean
  readonly program: ReadonlyArray<string>
}

const gpuRequest = Effect.fnUntraced(function* (input: AttachInput) {
  if (Option.isSome(input.vram) && Option.isSome(input.share)) {
    return yield* new Usage({ detail: "--vram and --share exclude each other: one is an amount, the other a part" })
  }
  const vram = Option.isSome(input.vram) ? { vram: yield* parseBytes(input.vram.value) } : {}
  const share = Option.isSome(input.share) ? { share: input.share.value } : {}
  const model = Option.isSome(input.gpuModel) ? { model: input.gpuModel.value } : {}
  const uuids = Option.map(input.gpuUuid, (text) => text.split(",").map((uuid) => uuid.trim()))
  const uuid = Option.isSome(uuids) ? { uuid: uuids.value } : {}
  const count = { count: Option.isSome(uuids) ? Math.max(input.gpus, 1) : input.gpus }
  return yield* checked("gpus", GpuRequest, { ...count, ...vram, ...share, ...model, ...uuid })
})

/** The native parts that a client needs. */
const nativeParts = Effect.try({
  try: () => {
    const files = findNativeFiles()
    requireFiles(`${files.shimDirectory}/libcuda.so.1`, files.launcher)
    return { files, addon: loadAddon(files) }
  },
  catch: (error) => (error instanceof NativeMissing ? error : new NativeMissing({ path: String(error) }))
})

/** Succeeds with how the program ended. */
export const runAttach = Effect.fnUntraced(function* (input: AttachInput): Effect.fn.Return<ProgramExit, Error> {
  const [program, ...args] = input.program
  if (program === undefined) {
    return yield* new Usage({ detail: "which program? Write it last, for example `juice attach -- python3 train.py`" })
  }
  if (input.wait < 0 || input.wait * 1_000 > MAX_WAIT) {
    return yield* new Usage({ detail: `--wait ${input.wait}: write seconds, from 0 to ${MAX_WAIT / 1_000}` })
  }
  // Cheap checks first: a mistyped name costs no GPU.
  yield* findProgram(program)
  const { addon, files } = yield* nativeParts
  const request = {
    site: yield* siteOf(input),
    gpus: yield* gpuRequest(input),
    labels: Option.isSome(input.label) ? yield* parseLabels(input.label.value) : {},
    waitMs: input.wait * 1_000,
    version: VERSION,
    log: input.verbose ? tell : () => {}
  }
  const run = attach({ request, argv: [program, ...args], env: process.env, addon, files, warn: tell }).pipe(
    Effect.provide(natsLayer(input, "juice attach"))
  )
  if (!input.verbose) return yield* run
  const { layerVerbose } = yield* Effect.promise(() => import("../log.ts"))
  return yield* Effect.provide(run, layerVerbose)
})

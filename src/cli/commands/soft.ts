/** `juice soft`: runs a program on the software GPU, on this machine and in one process. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { findProgram, type ProgramExit } from "../../client/program.ts"
import { type SoftGpu, soft } from "../../client/soft.ts"
import { NativeMissing } from "../../native/errors.ts"
import { findNativeFiles, requireFiles } from "../../native/files.ts"
import { Usage } from "../errors.ts"
import { parseBytes } from "../flags.ts"

export interface SoftInput {
  readonly gpus: Option.Option<number>
  readonly memory: Option.Option<string>
  readonly watchdog: Option.Option<number>
  readonly program: ReadonlyArray<string>
}

/** As many as the software GPU can be (native/softgpu/driver/settings.cc). */
const MAX_GPUS = 64

const within = (flag: string, value: Option.Option<number>, most: number, what: string) =>
  Option.isNone(value) || (value.value >= 0 && value.value <= most)
    ? Effect.succeed(Option.getOrUndefined(value))
    : Effect.fail(new Usage({ detail: `--${flag} ${value.value}: write ${what}, from 0 to ${most}` }))

const softGpu = Effect.fnUntraced(function* (input: SoftInput): Effect.fn.Return<SoftGpu, Usage> {
  const gpus = yield* within("gpus", input.gpus, MAX_GPUS, "a number")
  const watchdog = yield* within("watchdog", input.watchdog, 86_400, "seconds")
  const memory = Option.isSome(input.memory) ? yield* parseBytes(input.memory.value) : undefined
  return {
    ...(gpus === undefined ? {} : { gpus }),
    ...(memory === undefined ? {} : { memory }),
    ...(watchdog === undefined ? {} : { watchdog })
  }
})

const nativeFiles = Effect.try({
  try: () => {
    const files = findNativeFiles()
    requireFiles(files.softGpuDriver, files.launcher)
    return files
  },
  catch: (error) => (error instanceof NativeMissing ? error : new NativeMissing({ path: String(error) }))
})

/** Succeeds with how the program ended. */
export const runSoft = Effect.fnUntraced(function* (input: SoftInput): Effect.fn.Return<ProgramExit, Error> {
  const [program, ...args] = input.program
  if (program === undefined) {
    return yield* new Usage({ detail: "which program? Write it last, for example `juice soft -- ./vector_add`" })
  }
  const gpu = yield* softGpu(input)
  yield* findProgram(program)
  return yield* soft({ gpu, argv: [program, ...args], env: process.env, files: yield* nativeFiles })
})

/**
 * `juice soft`: runs the program on the software GPU, in the program's own process: no site, no network.
 */
import { dirname } from "node:path"
import * as Effect from "effect/Effect"
import type { NativeMissing } from "../native/errors.ts"
import type { NativeFiles } from "../native/files.ts"
import type { Interrupted } from "./errors.ts"
import { driverEnvironment, type ProgramExit, startProgram } from "./program.ts"
import { signalDesk } from "./signal-desk.ts"
import { hasTerminal } from "./signals.ts"

/** What is asked of the software GPU; what is left out stays as the environment or the driver has it. */
export interface SoftGpu {
  readonly gpus?: number
  /** Bytes of each GPU. */
  readonly memory?: number
  /** Seconds that a kernel may run. */
  readonly watchdog?: number
}

/** The variables that the driver reads (native/softgpu/driver/settings.h). */
export const softGpuVariables = ({ gpus, memory, watchdog }: SoftGpu): Record<string, string> => ({
  ...(gpus === undefined ? {} : { JUICE_SOFTGPU_DEVICES: String(gpus) }),
  ...(memory === undefined ? {} : { JUICE_SOFTGPU_MEMORY: String(memory) }),
  ...(watchdog === undefined ? {} : { JUICE_SOFTGPU_WATCHDOG: String(watchdog) })
})

export interface SoftOptions {
  readonly gpu: SoftGpu
  /** The program and its arguments. */
  readonly argv: readonly [string, ...Array<string>]
  readonly env: NodeJS.ProcessEnv
  readonly files: NativeFiles
}

/** Succeeds with how the program ended. */
export const soft = Effect.fn("soft")(function* (
  options: SoftOptions
): Effect.fn.Return<ProgramExit, NativeMissing | Interrupted> {
  return yield* Effect.scoped(
    Effect.gen(function* () {
      const terminal = hasTerminal()
      const desk = yield* signalDesk(terminal)
      const program = yield* Effect.raceFirst(
        startProgram({
          launcher: options.files.launcher,
          argv: options.argv,
          env: {
            ...driverEnvironment(options.env, dirname(options.files.softGpuDriver)),
            ...softGpuVariables(options.gpu)
          },
          ownGroup: !terminal
        }),
        desk.interrupted
      )
      desk.forwardTo(program)
      return yield* program.exit
    })
  )
})

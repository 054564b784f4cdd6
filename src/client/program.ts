/**
 * Runs the user's program: with our standard streams, ending with us, its end passed on as it was.
 */
import { spawn } from "node:child_process"
import { accessSync, constants, statSync } from "node:fs"
import { delimiter, join } from "node:path"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { NativeMissing } from "../native/errors.ts"
import { ProgramNotExecutable, ProgramNotFound } from "./errors.ts"

/** How the program ended: by exit code or by signal, never both. */
export type ProgramExit =
  | { readonly code: number; readonly signal: null }
  | { readonly code: null; readonly signal: NodeJS.Signals }

export interface Program {
  readonly pid: number
  readonly exit: Effect.Effect<ProgramExit>
  /** Sends a signal to the program: to its whole group where it has one of its own. */
  readonly kill: (signal: NodeJS.Signals) => void
}

type Verdict = "missing" | "directory" | "not executable" | "fine"

const verdict = (path: string): Verdict => {
  try {
    if (statSync(path).isDirectory()) return "directory"
  } catch {
    return "missing"
  }
  try {
    accessSync(path, constants.X_OK)
    return "fine"
  } catch {
    return "not executable"
  }
}

/**
 * Finds the program as execvp will, so that a wrong name costs no GPU. Succeeds with its path.
 */
export const findProgram = (
  program: string,
  searchPath = process.env.PATH ?? "/usr/local/bin:/usr/bin:/bin"
): Effect.Effect<string, ProgramNotFound | ProgramNotExecutable> => {
  const candidates = program.includes("/")
    ? [program]
    : searchPath.split(delimiter).map((folder) => join(folder === "" ? "." : folder, program))
  const verdicts = candidates.map((path) => ({ path, is: verdict(path) }))
  const fine = verdicts.find(({ is }) => is === "fine")
  if (fine !== undefined && program !== "") return Effect.succeed(fine.path)
  const there = verdicts.find(({ is }) => is === "not executable" || (is === "directory" && program.includes("/")))
  return there === undefined || program === ""
    ? Effect.fail(new ProgramNotFound({ program: program === "" ? '""' : program }))
    : Effect.fail(
        new ProgramNotExecutable({
          program,
          detail: there.is === "directory" ? "it is a directory" : "it has no execute permission"
        })
      )
}

/** The program's environment: it finds the driver in this directory before any other. */
export const driverEnvironment = (env: NodeJS.ProcessEnv, directory: string): NodeJS.ProcessEnv => ({
  ...env,
  LD_LIBRARY_PATH: env.LD_LIBRARY_PATH ? `${directory}:${env.LD_LIBRARY_PATH}` : directory,
  // Triton looks for the driver by itself, and not where the dynamic linker does.
  TRITON_LIBCUDA_PATH: directory
})

/**
 * Starts the program through the launcher, which asks the kernel to kill it when we die. `ownGroup`: it leads a
 * session of its own; for when there is no terminal whose signals it must get. If it still runs when the scope closes,
 * it is killed.
 */
export const startProgram = (options: {
  readonly launcher: string
  readonly argv: ReadonlyArray<string>
  readonly env: NodeJS.ProcessEnv
  readonly ownGroup: boolean
}): Effect.Effect<Program, NativeMissing, Scope.Scope> =>
  Effect.gen(function* () {
    const exit = yield* Deferred.make<ProgramExit>()
    const start = Effect.callback<Program, NativeMissing>((resume) => {
      const child = spawn(options.launcher, [String(process.pid), "--", ...options.argv], {
        stdio: "inherit",
        detached: options.ownGroup,
        env: options.env
      })
      child.once("error", (error) =>
        resume(Effect.fail(new NativeMissing({ path: options.launcher, detail: error.message })))
      )
      child.once("exit", (code, signal) =>
        Deferred.doneUnsafe(
          exit,
          Effect.succeed(signal === null ? { code: code ?? 0, signal: null } : { code: null, signal })
        )
      )
      child.once("spawn", () => {
        const pid = child.pid!
        resume(
          Effect.succeed({
            pid,
            exit: Deferred.await(exit),
            kill: (signal) => {
              try {
                process.kill(options.ownGroup ? -pid : pid, signal)
              } catch {
                // It has ended in this moment: there is nobody left to tell.
              }
            }
          })
        )
      })
    })
    return yield* Effect.acquireRelease(start, (program) =>
      Effect.sync(() => {
        if (!Deferred.isDoneUnsafe(exit)) program.kill("SIGKILL")
      })
    )
  })

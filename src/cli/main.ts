/**
 * The `juice` command: reads its words, runs one subcommand, and ends as that ended.
 *
 * Subcommands are loaded when they run, so that the help is quick and `attach` carries no router.
 */
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import { ExitCode } from "../protocol/errors.ts"
import { splitProgram } from "./argv.ts"
import { juice } from "./commands.ts"
import { runCommandLine } from "./help.ts"
import { explain, type Outcome } from "./outcome.ts"
import { tell } from "./output.ts"
import { readSettings } from "./settings.ts"

/** Ends this process: with a code, or by the signal that ended the program. */
const finish = async (outcome: Outcome): Promise<void> => {
  if (outcome.signal === undefined) {
    process.exitCode = outcome.code
    // Whatever still lingers (a socket being closed, a worker of a library) must not hold up the end.
    process.stdout.write("", () => process.exit(outcome.code))
    return
  }
  const { dieBy } = await import("../client/signals.ts")
  dieBy(outcome.signal)
}

const main = async (words: ReadonlyArray<string>): Promise<void> => {
  // A reader that has seen enough (`juice events | head`) is no fault.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(0)
    throw error
  })
  const settings = readSettings(process.env)
  if (Result.isFailure(settings)) {
    tell(settings.failure.message)
    return finish({ code: ExitCode.usage })
  }
  const { head, program } = splitProgram(words)
  let outcome: Outcome = { code: 0 }
  const command = juice({
    program,
    onOutcome: (found) => {
      outcome = found
    }
  })
  const exit = await Effect.runPromiseExit(
    runCommandLine(command, head).pipe(
      Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown(settings.success))
    )
  )
  return finish(Exit.isSuccess(exit) ? outcome : explain(exit.cause, tell))
}

await main(process.argv.slice(2))

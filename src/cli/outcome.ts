/** How `juice` ends, and what it says about an error. */
import * as Cause from "effect/Cause"
import type * as CliError from "effect/cli/CliError"
import * as Runtime from "effect/Runtime"
import { ExitCode } from "../protocol/errors.ts"

/** With a code, or by the signal that its program ended by. */
export type Outcome =
  | { readonly code: number; readonly signal?: undefined }
  | { readonly signal: NodeJS.Signals; readonly code?: undefined }

/** The exit code of an error: its own, else that of a fault of ours. */
const codeOf = (error: unknown): number => {
  const code = (error as { readonly [Runtime.errorExitCode]?: number } | undefined)?.[Runtime.errorExitCode]
  return typeof code === "number" ? code : ExitCode.software
}

/** Says what went wrong, in one sentence, and gives the exit code. */
export const explain = (cause: Cause.Cause<unknown>, tell: (sentence: string) => void): Outcome => {
  const error = Cause.squash(cause)
  const tag = (error as { readonly _tag?: string })._tag
  if (tag === "Interrupted") return { signal: (error as unknown as { readonly signal: NodeJS.Signals }).signal }
  // Wrong usage has been explained together with the help.
  if (tag === "ShowHelp") {
    return { code: (error as CliError.ShowHelp).errors.length > 0 ? ExitCode.usage : 0 }
  }
  if (tag !== undefined && error instanceof Error) {
    tell(error.message)
    return { code: codeOf(error) }
  }
  tell(`an internal fault, please report it: ${Cause.pretty(cause)}`)
  return { code: ExitCode.software }
}

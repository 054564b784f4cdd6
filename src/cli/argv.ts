/**
 * Where the flags of `juice attach` or `juice soft` end and the program begins: at the first operand, or after `--`. The
 * program's own flags are never ours (as in env, sudo, srun), so the parser is given only what comes before it.
 */

/** The flags that take a value in the next word, by the command that runs a program. */
export const VALUE_FLAGS: Readonly<Record<string, ReadonlySet<string>>> = {
  attach: new Set([
    "--nats",
    "--site",
    "--creds",
    "--gpus",
    "--vram",
    "--share",
    "--wait",
    "--gpu-model",
    "--gpu-uuid",
    "--label",
    "--completions"
  ]),
  soft: new Set(["--gpus", "--memory", "--watchdog", "--completions"])
}

/** Common flags may also stand before the command, where it is not known yet. */
const ANY_VALUE_FLAG: ReadonlySet<string> = new Set(Object.values(VALUE_FLAGS).flatMap((flags) => [...flags]))

export interface Split {
  /** For the parser: flags and the subcommand. */
  readonly head: ReadonlyArray<string>
  /** The program and its arguments; empty when none was given, or when this command runs none. */
  readonly program: ReadonlyArray<string>
}

/** Splits the words after `juice`. */
export const splitProgram = (words: ReadonlyArray<string>): Split => {
  let command: string | undefined
  for (let at = 0; at < words.length; at++) {
    const word = words[at]!
    if (word === "--") {
      return command === undefined
        ? { head: words, program: [] }
        : { head: words.slice(0, at), program: words.slice(at + 1) }
    }
    if (word.startsWith("-") && word !== "-") {
      // `--flag=value` is one word; after `--flag` alone the value is the next.
      if ((command === undefined ? ANY_VALUE_FLAG : VALUE_FLAGS[command]!).has(word)) at += 1
    } else if (command === undefined) {
      command = word
      if (!Object.hasOwn(VALUE_FLAGS, command)) return { head: words, program: [] }
    } else {
      return { head: words.slice(0, at), program: words.slice(at) }
    }
  }
  return { head: words, program: [] }
}

/**
 * Where the flags of `juice attach` end and the program begins: at the first operand, or after `--`. The program's own
 * flags are never ours (as in env, sudo, srun), so the parser is given only what comes before it.
 */

/** The flags of `attach` that take a value in the next word. The common ones may also stand before `attach`. */
export const ATTACH_VALUE_FLAGS: ReadonlySet<string> = new Set([
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
])

export interface Split {
  /** For the parser: flags and the subcommand. */
  readonly head: ReadonlyArray<string>
  /** The program and its arguments; empty when none was given, or when this is not `attach`. */
  readonly program: ReadonlyArray<string>
}

/** Splits the words after `juice`. */
export const splitProgram = (words: ReadonlyArray<string>): Split => {
  let command: string | undefined
  for (let at = 0; at < words.length; at++) {
    const word = words[at]!
    if (word === "--") {
      return command === "attach"
        ? { head: words.slice(0, at), program: words.slice(at + 1) }
        : { head: words, program: [] }
    }
    if (word.startsWith("-") && word !== "-") {
      // `--flag=value` is one word; after `--flag` alone the value is the next.
      if (ATTACH_VALUE_FLAGS.has(word)) at += 1
    } else if (command === undefined) {
      command = word
      if (command !== "attach") return { head: words, program: [] }
    } else {
      return { head: words.slice(0, at), program: words.slice(at) }
    }
  }
  return { head: words, program: [] }
}

/** Processes and files of this machine, as /proc shows them, and waiting for what they do. */
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs"

/** Deadlines (ms) are generous: what is said to happen within seconds may take longer on a busy machine. */
export const DEADLINE = 30_000

/** Looks until what it sees is not undefined, false or null. */
export const until = async <T>(
  what: string,
  look: () => T | Promise<T>,
  deadline = DEADLINE
): Promise<NonNullable<T>> => {
  const end = Date.now() + deadline
  while (true) {
    const seen = await look()
    if (seen !== undefined && seen !== false && seen !== null) return seen as NonNullable<T>
    if (Date.now() > end) throw new Error(`not within ${deadline / 1000} s: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 30))
  }
}

const slurp = (path: string): string => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return ""
  }
}

const pids = (): ReadonlyArray<number> =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)

/** One that only waits to be reaped is not. */
export const isAlive = (pid: number): boolean => slurp(`/proc/${pid}/cmdline`) !== ""

/** Files under the folder, as paths. */
export const filesUnder = (directory: string): ReadonlyArray<string> =>
  existsSync(directory) ? readdirSync(directory, { recursive: true }).map(String) : []

/** The files that a process has mapped. */
export const mappedFiles = (pid: number): ReadonlyArray<string> => [
  ...new Set(
    slurp(`/proc/${pid}/maps`)
      .split("\n")
      .map((line) => line.slice(line.indexOf("/")).trim())
      .filter((path) => path.startsWith("/"))
  )
]

/** The program that an attach runs: its only child, once that is no longer the launcher. */
export const programOf = (attach: number): number | undefined => {
  const child = Number(slurp(`/proc/${attach}/task/${attach}/children`).trim().split(" ")[0])
  if (!(child > 0)) return undefined
  try {
    return readlinkSync(`/proc/${child}/exe`).endsWith("/juice-exec") ? undefined : child
  } catch {
    return undefined
  }
}

/** Processes that were started with this text in their environment: a site's own mark on all that it starts. */
export const processesMarked = (text: string): ReadonlyArray<number> =>
  pids().filter((pid) => isAlive(pid) && slurp(`/proc/${pid}/environ`).includes(text))

/** Its command line, for the message of a test that fails. */
export const commandLine = (pid: number): string => slurp(`/proc/${pid}/cmdline`).replaceAll("\0", " ").trim()

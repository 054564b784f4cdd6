/**
 * A service's own folder, and the mark in it that one running process owns it: two outboxes in one folder would mix
 * their reports, two NATS servers their streams.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { DataDirectoryBroken, DataDirectoryInUse } from "./errors.ts"

/** When a process started, in clock ticks since boot: with its pid, it names a process for good. Undefined: gone. */
const startOf = (pid: number): string | undefined => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
    // The name, in parentheses, may hold anything; after it the first field is the state, the 20th the start time.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
    // A zombie owns nothing any more; where nobody reaps, as in many containers, it stays for ever.
    return fields[0] === "Z" ? undefined : fields[19]
  } catch {
    return undefined
  }
}

const ownerOf = (path: string): number | undefined => {
  try {
    const [pid, start] = readFileSync(path, "utf8").trim().split(" ")
    return start !== undefined && startOf(Number(pid)) === start ? Number(pid) : undefined
  } catch {
    return undefined
  }
}

/** Makes the folder if it is missing and owns it for as long as the scope is open. */
export const ownDataDirectory = Effect.fn("DataDirectory.own")(function* (
  directory: string
): Effect.fn.Return<void, DataDirectoryInUse | DataDirectoryBroken, Scope.Scope> {
  const path = join(directory, "juice.lock")
  const broken = (error: unknown) => new DataDirectoryBroken({ directory, detail: (error as Error).message })
  const owner = yield* Effect.try({
    try: () => {
      mkdirSync(directory, { recursive: true, mode: 0o700 })
      return ownerOf(path)
    },
    catch: broken
  })
  if (owner !== undefined) return yield* new DataDirectoryInUse({ directory, pid: owner })
  yield* Effect.acquireRelease(
    Effect.try({ try: () => writeFileSync(path, `${process.pid} ${startOf(process.pid)}\n`), catch: broken }),
    () => Effect.sync(() => rmSync(path, { force: true }))
  )
})

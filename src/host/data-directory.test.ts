import { spawn } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { ownDataDirectory } from "./data-directory.ts"

const temporary = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "juice-own-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
)

describe("a data folder", () => {
  it.effect("has one owner at a time", () =>
    Effect.gen(function* () {
      const folder = join(yield* temporary, "deep/inside")
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* ownDataDirectory(folder)
          const error = yield* Effect.flip(Effect.scoped(ownDataDirectory(folder)))
          assert.match(error.message, new RegExp(`process ${process.pid}.*--data-dir`))
        })
      )
      yield* Effect.scoped(ownDataDirectory(folder))
    }).pipe(Effect.scoped)
  )
  it.effect("is free when its owner is dead, whoever has its pid now", () =>
    Effect.gen(function* () {
      const folder = yield* temporary
      writeFileSync(join(folder, "juice.lock"), `${process.pid} 1\n`)
      yield* ownDataDirectory(folder)
    }).pipe(Effect.scoped)
  )
  it.effect("is free when its owner is dead and nobody has reaped it", () =>
    Effect.gen(function* () {
      const folder = yield* temporary
      // The shell becomes a sleep, which never asks after its child.
      const child = spawn("sh", ["-c", "sleep 0 & echo $!; exec sleep 30"], { stdio: ["ignore", "pipe", "inherit"] })
      yield* Effect.addFinalizer(() => Effect.sync(() => child.kill()))
      const text = yield* Effect.promise(() => new Promise<Buffer>((resolve) => child.stdout.once("data", resolve)))
      const stat = () => readFileSync(`/proc/${text.toString().trim()}/stat`, "utf8")
      while (!stat().includes(") Z ")) yield* Effect.promise(() => setTimeout(10))
      const start = stat()
        .slice(stat().lastIndexOf(")") + 2)
        .split(" ")[19]
      writeFileSync(join(folder, "juice.lock"), `${text.toString().trim()} ${start}\n`)
      yield* ownDataDirectory(folder)
    }).pipe(Effect.scoped)
  )
  it.effect("that cannot be made is an error that names it", () =>
    Effect.gen(function* () {
      const file = join(yield* temporary, "file")
      writeFileSync(file, "")
      const error = yield* Effect.flip(Effect.scoped(ownDataDirectory(join(file, "x"))))
      assert.match(error.message, /file\/x cannot be used/)
    }).pipe(Effect.scoped)
  )
})

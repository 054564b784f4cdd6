import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { afterAll } from "vitest"
import { driverEnvironment, findProgram } from "./program.ts"

const folder = mkdtempSync(join(tmpdir(), "juice-program-"))
afterAll(() => rmSync(folder, { recursive: true }))
const file = (name: string, mode: number) => {
  mkdirSync(join(folder, "bin"), { recursive: true })
  writeFileSync(join(folder, "bin", name), "")
  chmodSync(join(folder, "bin", name), mode)
}
file("runs", 0o755)
file("does-not", 0o644)
const path = `${folder}:${folder}/bin`

describe("finding the program", () => {
  it.effect("looks along the PATH, or where a slash says", () =>
    Effect.gen(function* () {
      assert.equal(yield* findProgram("runs", path), join(folder, "bin/runs"))
      assert.equal(yield* findProgram(join(folder, "bin/runs"), ""), join(folder, "bin/runs"))
    })
  )
  it.effect("tells what is not there from what cannot be executed", () =>
    Effect.gen(function* () {
      const failure = (program: string) => Effect.map(Effect.flip(findProgram(program, path)), ({ _tag }) => _tag)
      assert.equal(yield* failure("nothing"), "ProgramNotFound")
      assert.equal(yield* failure(""), "ProgramNotFound")
      assert.equal(yield* failure("does-not"), "ProgramNotExecutable")
      assert.equal(yield* failure(join(folder, "bin")), "ProgramNotExecutable")
      // A directory on the PATH with the program's name is passed over, as a shell does.
      assert.equal(yield* failure("bin"), "ProgramNotFound")
    })
  )
})

describe("the program's environment", () => {
  it("puts the driver before every other library", () => {
    assert.deepEqual(driverEnvironment({ LD_LIBRARY_PATH: "/opt/lib", HOME: "/h" }, "/native/shim"), {
      HOME: "/h",
      LD_LIBRARY_PATH: "/native/shim:/opt/lib",
      TRITON_LIBCUDA_PATH: "/native/shim"
    })
    assert.equal(driverEnvironment({}, "/s").LD_LIBRARY_PATH, "/s")
  })
})

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Result from "effect/Result"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { readSettings } from "./settings.ts"
import { parseToml } from "./toml.ts"

let home: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "juice-settings-"))
  mkdirSync(join(home, "juice"))
})
afterEach(() => rmSync(home, { recursive: true }))

const read = (env: Record<string, string>) => Result.getOrThrow(readSettings({ XDG_CONFIG_HOME: home, ...env }))

describe("settings", () => {
  it("come from the file, under the names of the environment", () => {
    writeFileSync(join(home, "juice/config.toml"), "nats = \"nats://a:1\" # ours\n[host]\ndata-dir = '/x'\npool = 2\n")
    assert.deepEqual(read({}), { JUICE_NATS: "nats://a:1", JUICE_HOST_DATA_DIR: "/x", JUICE_HOST_POOL: "2" })
  })
  it("may be a JSON file", () => {
    writeFileSync(join(home, "juice/config.json"), '{"nats":"nats://a:1","attach":{"wait":5}}')
    assert.deepEqual(read({}), { JUICE_NATS: "nats://a:1", JUICE_ATTACH_WAIT: "5" })
  })
  it("of the environment win over the file's, and JUICE_NATS over NATS_URL", () => {
    writeFileSync(join(home, "juice/config.toml"), 'nats = "nats://file:1"\n')
    assert.equal(read({ NATS_URL: "nats://url:1" }).JUICE_NATS, "nats://url:1")
    assert.equal(read({ NATS_URL: "nats://url:1", JUICE_NATS: "nats://env:1" }).JUICE_NATS, "nats://env:1")
  })
  it("that cannot be read are an error that names the file and the line", () => {
    writeFileSync(join(home, "juice/config.toml"), "nats = \n")
    const result = readSettings({ XDG_CONFIG_HOME: home })
    assert.isTrue(Result.isFailure(result))
    if (Result.isFailure(result)) assert.match(result.failure.message, /config\.toml:1: "nats =" is not/)
  })
})

describe("the TOML of settings", () => {
  it("keeps a # and escapes inside strings", () => {
    const tables = Result.getOrThrow(parseToml('a = "x#\\"y\\\\" # c\nb = 1_000\nc = true\nd = 1.5', "f"))
    assert.deepEqual(tables[""], { a: 'x#"y\\', b: 1000, c: true, d: 1.5 })
  })
  it("refuses what it does not know", () => {
    for (const text of ["a = [1]", "[a.b]", "just words", "a = 'x"]) {
      assert.isTrue(Result.isFailure(parseToml(text, "f")), text)
    }
  })
})

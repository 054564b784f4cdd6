import { createHash } from "node:crypto"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { buildRules } from "./code-hash.ts"

describe("the decide-and-fold bundle", () => {
  it("is the same bytes every time, and its name is their hash", async () => {
    const [first, second] = [await buildRules(), await buildRules()]
    assert.strictEqual(first.text, second.text)
    assert.strictEqual(first.hash, createHash("sha256").update(first.text).digest("hex"))
  })

  it("stands alone: it decides and folds with nothing else around it", async () => {
    const { text } = await buildRules()
    assert.notMatch(text, /\bimport\s*[{"'*]|require\(/)
    const folder = await mkdtemp(join(fileURLToPath(new URL("../../node_modules", import.meta.url)), ".rules-"))
    try {
      const file = join(folder, "rules.mjs")
      await writeFile(file, text)
      const rules = await import(file)
      const state = rules.emptyState(1, "head")
      const decision = rules.decide(state, { _tag: "router.elect", id: "id", router: "r", version: "1" }, 5, 0)
      rules.foldEntry(state, { command: { id: "id" }, events: decision.events })
      assert.strictEqual(state.epoch, 1)
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})

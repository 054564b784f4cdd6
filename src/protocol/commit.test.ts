import { readdirSync, readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { Command } from "./commands.ts"
import * as commit from "./commit.ts"
import { Event } from "./events.ts"
import { ReportBody } from "./reports.ts"

const folder = new URL("../../test/data/log/", import.meta.url)
const golden = (format: number) => new Uint8Array(readFileSync(new URL(`format-${format}.json`, folder)))
const tags = (
  members: ReadonlyArray<{ readonly fields: { readonly _tag: { readonly schema: { readonly literal: string } } } }>
) => members.map((member) => member.fields._tag.schema.literal).sort()

describe("commits", () => {
  it("of every format ever written decode", () => {
    const formats = readdirSync(folder).flatMap((name) => /^format-(\d+)\.json$/.exec(name)?.[1] ?? [])
    assert.deepStrictEqual(
      formats.map(Number).sort(),
      Array.from({ length: commit.FORMAT }, (_, index) => index + 1)
    )
    for (const format of formats) {
      const decoded = Result.getOrThrow(commit.decodeCommit(golden(Number(format))))
      assert.strictEqual(decoded.format, commit.FORMAT)
      assert.strictEqual(decoded.epoch, 3)
      assert.strictEqual(decoded.reportOffset, 9)
      assert.strictEqual(decoded.prev, commit.genesis("JUICE_LOG_LOCAL_1"))
      assert.isAbove(decoded.entries.length, 0)
    }
  })

  it("of the present format come out again byte for byte", () => {
    const body = golden(commit.FORMAT)
    assert.deepStrictEqual(Result.getOrThrow(commit.encodeCommit(Result.getOrThrow(commit.decodeCommit(body)))), body)
  })

  it("have a golden example of every command, report and event", () => {
    const { entries } = Result.getOrThrow(commit.decodeCommit(golden(commit.FORMAT)))
    const seen = (values: ReadonlyArray<string>) => [...new Set(values)].sort()
    assert.deepStrictEqual(
      seen(entries.flatMap((e) => ("command" in e ? [e.command._tag] : []))),
      tags(Command.members)
    )
    assert.deepStrictEqual(
      seen(entries.flatMap((e) => ("report" in e ? [e.report.body._tag] : []))),
      tags(ReportBody.members)
    )
    assert.deepStrictEqual(seen(entries.flatMap((e) => e.events.map((event) => event._tag))), tags(Event.members))
  })

  it("chain by the hash of the stored body, whatever it decodes to", () => {
    assert.strictEqual(commit.chainHash(golden(1)), "1cf04c5a2bcdba4172bd39e868cd6638c75c6890c671bb3fd1d8959db2ac5dbc")
  })

  it("of an unknown format stop the reader with the format it needs", () => {
    const body = new TextEncoder().encode(JSON.stringify({ format: 99, entries: "whatever" }))
    const error = Result.getOrThrow(Result.flip(commit.decodeCommit(body)))
    assert.strictEqual(error._tag, "UnknownFormat")
    assert.include(error.message, "format 99")
  })

  it("that are no JSON, or no commits, are malformed", () => {
    for (const text of ["", "{", "null", "[]", "{}", '{"format":1}', '{"format":"1"}']) {
      const error = Result.getOrThrow(Result.flip(commit.decodeCommit(new TextEncoder().encode(text))))
      assert.strictEqual(error._tag, "Malformed", text)
    }
  })

  it("over the size limit are not encoded", () => {
    const example = Result.getOrThrow(commit.decodeCommit(golden(commit.FORMAT)))
    const entries = Array.from({ length: 20 }, () => example.entries).flat()
    assert.strictEqual(
      Result.getOrThrow(Result.flip(commit.encodeCommit({ ...example, entries })))._tag,
      "CommitTooLarge"
    )
  })

  it("fit when their entries and the envelope do by count", () => {
    const example = Result.getOrThrow(commit.decodeCommit(golden(commit.FORMAT)))
    const counted = example.entries.reduce((sum, entry) => sum + commit.entryBytes(entry), commit.ENVELOPE_BYTES)
    assert.isAtMost(golden(commit.FORMAT).length, counted)
  })

  it("give every event an id of its own, derived from its cause", () => {
    const { entries } = Result.getOrThrow(commit.decodeCommit(golden(commit.FORMAT)))
    const ids = entries.flatMap((entry) => commit.identified(entry).map(({ id }) => id))
    assert.strictEqual(new Set(ids).size, ids.length)
  })
})

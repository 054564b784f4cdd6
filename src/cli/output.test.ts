import * as Effect from "effect/Effect"
import { assert, describe, it } from "vitest"
import type { SessionId } from "../protocol/ids.ts"
import { parseSince } from "./commands/events.ts"
import { parseBytes, parseLabels } from "./flags.ts"
import { bytesText, durationText, table } from "./output.ts"
import { eventText, subjectText } from "./story.ts"

const usage = { calls: 19, bytesIn: 2048, bytesOut: 0, launches: 1, peakMemory: 2 ** 30 }
const session = `${"0".repeat(24)}612a5ec3` as SessionId

describe("text output", () => {
  it("gives amounts and times in one unit", () => {
    assert.deepEqual([17, 1536, 785 * 1024, 2 ** 30, 1.5e15].map(bytesText), [
      "17 B",
      "1.5 KiB",
      "785 KiB",
      "1 GiB",
      "1.3 PiB"
    ])
    assert.deepEqual([0, 227, 61_000, 600_000, 7.2e6, 2.6e8].map(durationText), [
      "0 ms",
      "227 ms",
      "61 s",
      "10 min",
      "2 h",
      "3 d"
    ])
  })
  it("lines columns up and pads no last one", () => {
    assert.equal(
      table(
        ["A", "B"],
        [
          ["long", "x"],
          ["", "yy"]
        ]
      ),
      "A     B\nlong  x\n      yy"
    )
  })
  it("tells events as a story", () => {
    const event = {
      _tag: "ProcessEnded",
      aggregate: "session",
      session,
      process: 1,
      reason: "error",
      exit: { code: 1 },
      error: { code: 700, name: "CUDA_ERROR_ILLEGAL_ADDRESS" },
      usage
    } as const
    assert.equal(subjectText(event), "session 612a5ec3")
    assert.equal(
      eventText(event),
      "process 1 failed with CUDA_ERROR_ILLEGAL_ADDRESS (700) with exit code 1; 19 calls, 1 launch, 2 KiB in, 0 B out, 1 GiB peak"
    )
    const ended = { _tag: "SessionEnded", aggregate: "session", session, reason: "wait-over" } as const
    assert.equal(eventText({ ...ended, usage: { ...usage, calls: 0 } }), "ended: the wait for capacity was over")
  })
})

describe("values of flags", () => {
  it("are memory in powers of 1024", async () => {
    const bytes = (text: string) => Effect.runPromise(parseBytes(text))
    assert.equal(await bytes("8G"), 8 * 2 ** 30)
    assert.equal(await bytes("1.5GiB"), 1.5 * 2 ** 30)
    assert.equal(await bytes("512mb"), 512 * 2 ** 20)
    for (const text of ["", "0", "G", "8 apples", "-1G"]) {
      assert.match((await Effect.runPromise(Effect.flip(parseBytes(text)))).message, /write for example 8G/)
    }
  })
  it("are labels", async () => {
    assert.deepEqual(await Effect.runPromise(parseLabels("zone=a, rack = 7")), { zone: "a", rack: "7" })
    assert.match((await Effect.runPromise(Effect.flip(parseLabels("zone")))).message, /KEY=VALUE/)
  })
  it("are a place in the log: how long ago, a time, or a commit", async () => {
    const since = (text: string) => Effect.runPromise(parseSince(text, 1_000_000))
    assert.deepEqual(await since("#42"), { sequence: 42 })
    assert.deepEqual(await since("10m"), { time: 400_000 })
    assert.deepEqual(await since("2026-11-30T12:00:00Z"), { time: Date.UTC(2026, 10, 30, 12) })
    assert.match((await Effect.runPromise(Effect.flip(parseSince("yesterday")))).message, /--since yesterday/)
  })
})

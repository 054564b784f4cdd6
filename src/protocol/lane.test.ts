import * as Result from "effect/Result"
import { assert, describe, it } from "vitest"
import { type FromBroker, fromBrokerCodec, fromHostCodec, LineSplitter, MAX_LINE } from "./lane.ts"

describe("the broker's lane", () => {
  it("cuts a stream into lines wherever its chunks end", () => {
    const splitter = new LineSplitter()
    assert.deepEqual(Result.getOrThrow(splitter.push(Buffer.from("ab"))).map(String), [])
    assert.deepEqual(Result.getOrThrow(splitter.push(Buffer.from("c\nd\n\ne"))).map(String), ["abc", "d", ""])
    assert.deepEqual(Result.getOrThrow(splitter.push(Buffer.from("f\n"))).map(String), ["ef"])
  })
  it("refuses a line that never ends", () => {
    const splitter = new LineSplitter()
    assert.isTrue(Result.isSuccess(splitter.push(Buffer.alloc(MAX_LINE - 1, 97))))
    assert.isTrue(Result.isFailure(splitter.push(Buffer.alloc(1, 97))))
  })
  it("reads back every message of a broker", () => {
    const messages: ReadonlyArray<FromBroker> = [
      { type: "process", process: 1, pid: 77 },
      { type: "processEnded", process: 1 },
      { type: "processEnded", process: 2, exit: { code: 3 } },
      { type: "ping" },
      { type: "bye" }
    ]
    for (const message of messages) {
      assert.deepEqual(Result.getOrThrow(fromBrokerCodec.decode(fromBrokerCodec.encode(message))), message)
    }
  })
  it("tells a refused process from a welcome one", () => {
    const decode = (json: unknown) => fromHostCodec.decode(Buffer.from(JSON.stringify(json)))
    assert.isTrue(Result.isSuccess(decode({ type: "process", process: 1, ok: true })))
    assert.isTrue(Result.isSuccess(decode({ type: "process", process: 1, ok: false, error: "full" })))
    assert.isTrue(Result.isFailure(decode({ type: "process", process: 1, ok: false })))
    assert.isTrue(Result.isFailure(decode({ type: "process", process: 0, ok: true })))
  })
})

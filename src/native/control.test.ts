import { assert, describe, it } from "vitest"
import { Writer } from "./codec.ts"
import { ControlKind, claimPayload, readFromWorker } from "./control.ts"

describe("control messages", () => {
  it("of a worker are read strictly", () => {
    const ready = new Writer().i32(13000).bytes(Buffer.from("snap")).u64(500).done()
    assert.deepEqual(readFromWorker(ControlKind.ready, ready), {
      _tag: "ready",
      driverVersion: 13000,
      snapshot: Buffer.from("snap"),
      contextBytes: 500
    })
    assert.isUndefined(readFromWorker(ControlKind.ready, ready.subarray(1)))
    assert.isUndefined(readFromWorker(ControlKind.ready, Buffer.concat([ready, Buffer.from([0])])))
    assert.isUndefined(readFromWorker(ControlKind.ended, new Writer().u8(9).i32(0).text("").done()))
    assert.isUndefined(readFromWorker(ControlKind.claim, Buffer.alloc(0)))
  })
  it("bind a worker with session, process, key and memory limit in this order", () => {
    const payload = claimPayload({ session: "ab".repeat(16), process: 3n, key: Buffer.alloc(32, 1), memoryLimit: 256 })
    assert.equal(payload.toString("hex"), `${"ab".repeat(16)}0300000000000000${"01".repeat(32)}0001000000000000`)
  })
})

import { assert, describe, it } from "vitest"
import { Writer } from "./codec.ts"
import { limitMemory, snapshotDevices } from "./snapshot.ts"

const device = (out: Writer, name: string, memory: number) => {
  out.text(name).raw(Buffer.from("00112233445566778899aabbccddeeff", "hex")).u64(memory).text("0000:01:00.0")
  out.u32(3).i32(1).i32(1024).i32(75).i32(9).i32(76).i32(0).u32(1).i32(0).u64(1024).i32(0).i32(-5)
  out.bytes(Buffer.from([0, 0, 1])).bytes(Buffer.from([0, 1, 0]))
}
const snapshot = () => {
  const out = new Writer().u32(2).i32(13000).text("software").u32(2)
  device(out, "one", 1000)
  device(out, "two", 2000)
  return out.bytes(Buffer.alloc(4)).done()
}

describe("a device snapshot", () => {
  it("tells each device's name, UUID and memory", () => {
    const uuid = "GPU-00112233-4455-6677-8899-aabbccddeeff"
    assert.deepEqual(snapshotDevices(snapshot()), [
      { name: "one", uuid, totalMemory: 1000, computeCapability: "9.0" },
      { name: "two", uuid, totalMemory: 2000, computeCapability: "9.0" }
    ])
  })
  it("is limited without any other change", () => {
    const limited = limitMemory(snapshot(), [undefined, 500])
    assert.deepEqual(
      snapshotDevices(limited)?.map(({ totalMemory }) => totalMemory),
      [1000, 500]
    )
    assert.equal(limited.length, snapshot().length)
    assert.deepEqual(limitMemory(snapshot(), [undefined, 9999]), snapshot())
  })
  it("of another format or cut short is none", () => {
    assert.isUndefined(snapshotDevices(Buffer.from([3, 0, 0, 0])))
    assert.isUndefined(snapshotDevices(snapshot().subarray(0, 100)))
  })
})

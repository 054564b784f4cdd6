import { assert, describe, it } from "vitest"
import { Reader, Writer } from "./codec.ts"

describe("the payload codec", () => {
  it("reads back what it wrote, and then has nothing left", () => {
    const bytes = new Writer()
      .u8(7)
      .u16(0xfffe)
      .i32(-5)
      .u64(2n ** 63n)
      .text("grüß")
      .bytes(Buffer.from([1, 2]))
      .done()
    const reader = new Reader(bytes)
    assert.deepEqual(
      [reader.u8(), reader.u16(), reader.i32(), reader.u64(), reader.text(), [...reader.bytes()]],
      [7, 0xfffe, -5, 2n ** 63n, "grüß", [1, 2]]
    )
    assert.isTrue(reader.done)
  })
  it("is little endian with a 32-bit length before bytes", () => {
    assert.equal(new Writer().u16(0x0102).text("ab").done().toString("hex"), "0201020000006162")
  })
  it("yields zeros and is not ok after the first short read", () => {
    const reader = new Reader(Buffer.from([255, 255, 255, 255, 1]))
    assert.equal(reader.bytes().length, 0)
    assert.equal(reader.u8(), 0)
    assert.isFalse(reader.ok)
    assert.isFalse(reader.done)
  })
})

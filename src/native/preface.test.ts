import { createHmac } from "node:crypto"
import { assert, describe, it } from "vitest"
import { BROKER_LANE, GoodbyeReason, goodbyeFrame, makePreface, provesKey, readPreface } from "./preface.ts"

const session = "00112233445566778899aabbccddeeff"
const key = Buffer.alloc(32, 7)

describe("a preface", () => {
  it("has the layout of native/link/wire.h", () => {
    const { bytes } = makePreface({ session, process: 5n, lane: 2, nonce: Buffer.from("0102030405060708", "hex") }, key)
    const proven = `4a55494345000001${"0100"}${"0200"}${"00000000"}${session}${"0500000000000000"}${"0102030405060708"}`
    assert.equal(bytes.subarray(0, 48).toString("hex"), proven)
    const proof = createHmac("sha256", key).update("preface").update(Buffer.from(proven, "hex")).digest()
    assert.equal(bytes.subarray(48).toString("hex"), proof.subarray(0, 16).toString("hex"))
  })
  it("reads back, and is proven by its key only", () => {
    const { bytes, nonce } = makePreface({ session, process: 0n, lane: BROKER_LANE }, key)
    assert.deepEqual(readPreface(bytes), { version: 1, lane: BROKER_LANE, flags: 0, session, process: 0n, nonce })
    assert.isTrue(provesKey(bytes, key))
    assert.isFalse(provesKey(bytes, Buffer.alloc(32, 8)))
    bytes[20] = bytes[20]! ^ 1
    assert.isFalse(provesKey(bytes, key))
  })
  it("is refused when it is short or has another magic", () => {
    const { bytes } = makePreface({ session, process: 1n, lane: 0 }, key)
    assert.isUndefined(readPreface(bytes.subarray(1)))
    bytes[0] = 0
    assert.isUndefined(readPreface(bytes))
  })
})

describe("a goodbye frame", () => {
  it("is a 40-byte header and the reason with its sentence", () => {
    const frame = goodbyeFrame(GoodbyeReason.proof, "no")
    assert.equal(frame.length, 40 + 8)
    assert.equal(frame.subarray(0, 6).toString("hex"), "080000000300")
    assert.equal(frame.subarray(40).toString("hex"), "0300020000006e6f")
  })
})

import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import type { SessionId } from "./ids.ts"
import { mintSessionId } from "./ids.ts"
import * as seal from "./seal.ts"

const sealed = (attempt: number) => {
  const session = mintSessionId()
  const keyPair = seal.generateSealKeyPair()
  const sessionKey = seal.newSessionKey()
  const box = Result.getOrThrow(seal.sealToClient({ sessionKey, session, attempt, clientPublicKey: keyPair.publicKey }))
  return { session, keyPair, sessionKey, box }
}

describe("a sealed session key", () => {
  it("opens for the client that it was sealed to", () => {
    const { box, keyPair, session, sessionKey } = sealed(1)
    assert.deepStrictEqual(
      Result.getOrThrow(seal.openSealed({ sealed: box, session, attempt: 1, keyPair })),
      sessionKey
    )
  })

  it("opens for no other client, session or attempt, nor when a bit has changed", () => {
    const { box, keyPair, session } = sealed(1)
    const flipped = Buffer.from(box.sealedKey, "base64url")
    flipped[0]! ^= 1
    const tries = [
      { sealed: box, session, attempt: 2, keyPair },
      { sealed: box, session: mintSessionId(), attempt: 1, keyPair },
      { sealed: box, session, attempt: 1, keyPair: seal.generateSealKeyPair() },
      { sealed: { ...box, sealedKey: flipped.toString("base64url") }, session, attempt: 1, keyPair },
      { sealed: { ...box, sealedKey: "AAAA" }, session, attempt: 1, keyPair }
    ]
    for (const attempt of tries) assert.isTrue(Result.isFailure(seal.openSealed(attempt)))
  })

  it("is refused for a public key that is no point of use", () => {
    const zero = Buffer.alloc(32).toString("base64url")
    const result = seal.sealToClient({
      sessionKey: seal.newSessionKey(),
      session: mintSessionId(),
      attempt: 1,
      clientPublicKey: zero
    })
    assert.isTrue(Result.isFailure(result))
  })
})

describe("derived keys", () => {
  const session = "000102030405060708090a0b0c0d0e0f" as SessionId
  const sessionKey = new Uint8Array(32).map((_, index) => index)
  const hex = (label: string) => Buffer.from(seal.deriveKey(sessionKey, session, label)).toString("hex")

  it("differ by label and by session", () => {
    assert.notStrictEqual(hex(seal.processKeyLabel(1)), hex(seal.processKeyLabel(2)))
    assert.notStrictEqual(hex(seal.BROKER_KEY_LABEL), hex(seal.processKeyLabel(1)))
  })

  it("are those of the golden vectors, which the native side derives as well", () => {
    // HKDF-SHA-256, key 00..1f, salt 00..0f, 32 bytes; checked against an independent implementation.
    assert.strictEqual(hex("broker"), "0af220f6d63df385c3b755daf01636a7b0f30d93e2f948df6ea54666702a6c65")
    assert.strictEqual(hex("process/1"), "c64a4741bebe4da5aa38041179fed8a36779ad5bdff54725dfc597845fbdccb9")
  })
})

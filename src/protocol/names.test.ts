import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import * as fc from "fast-check"
import { HostId, hostIdFromName, idFromBytes, idToBytes, mintSessionId, SessionId } from "./ids.ts"
import * as subjects from "./subjects.ts"
import { DEFAULT_SITE, inboxPrefix, type Principal, principalFromToken, principalToken } from "./tokens.ts"

describe("ids", () => {
  it("sort by the time they were minted at", () => {
    assert.isTrue(mintSessionId(1_000) < mintSessionId(1_001))
  })

  it("are sixteen raw bytes and back", () => {
    const id = mintSessionId()
    assert.strictEqual(idToBytes(id).length, 16)
    assert.strictEqual(idFromBytes(idToBytes(id)), id)
    assert.isTrue(Schema.is(SessionId)(id))
  })

  it("make a valid host name of any machine name", () => {
    fc.assert(fc.property(fc.string(), (name) => Schema.is(HostId)(hostIdFromName(name))))
    assert.strictEqual(hostIdFromName("GPU01.example.org"), "gpu01-example-org")
  })
})

describe("principals", () => {
  it("become one subject token that no other principal shares, and come back", () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1, maxLength: 128, unit: "grapheme" }), (name) => {
        fc.pre(name.length <= 128)
        const token = principalToken(name as Principal)
        assert.match(token, /^[A-Za-z0-9_-]+$/)
        assert.strictEqual(principalFromToken(token), name)
      })
    )
  })

  it("are not read from tokens that no principal encodes to", () => {
    for (const token of ["", "a.b", "_4", "_41", "_FF", "_ff", "*", ">"]) {
      assert.isUndefined(principalFromToken(token), token)
    }
  })

  it("are found in the subject of a command, whatever they contain", () => {
    const subject = subjects.commandSubject(DEFAULT_SITE, "a.b@c" as Principal, "session.request")
    assert.strictEqual(subject, "juice.v1.local.api.a_2eb_40c.session.request")
    assert.strictEqual(subjects.principalOfSubject(subject), "a.b@c")
  })

  it("have inboxes of their own", () => {
    assert.notStrictEqual(inboxPrefix("a" as Principal), inboxPrefix("b" as Principal))
  })
})

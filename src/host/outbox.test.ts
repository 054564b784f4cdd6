import { appendFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { type HostId, mintIncarnation, mintSessionId } from "../protocol/ids.ts"
import { Outbox } from "./outbox.ts"

const host = "gpu-1" as HostId
let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "juice-outbox-"))
})
afterEach(() => rmSync(directory, { recursive: true }))

const open = () => new Outbox(directory, host, mintIncarnation())
const interrupted = () => ({ _tag: "session.interrupted", session: mintSessionId() }) as const

describe("the outbox", () => {
  it("numbers the reports of an incarnation from 1 and offers them in order", () => {
    const outbox = open()
    outbox.append({ _tag: "host.draining" })
    const second = outbox.append({ _tag: "host.left" })
    assert.equal(outbox.next?.n, 1)
    outbox.confirm(outbox.next!)
    assert.deepEqual(outbox.next, second)
    assert.isTrue(outbox.isConfirmed(1))
    assert.isFalse(outbox.isConfirmed(2))
    outbox.confirm(second)
    assert.isUndefined(outbox.next)
    assert.equal(outbox.last, 2)
  })
  it("offers what an earlier incarnation left unconfirmed before anything new", () => {
    const first = open()
    first.append(interrupted())
    const lost = first.append(interrupted())
    first.confirm(first.next!)
    const second = open()
    const fresh = second.append({ _tag: "host.draining" })
    assert.equal(fresh.n, 1)
    assert.deepEqual(second.next, lost)
    second.confirm(lost)
    assert.deepEqual(second.next, fresh)
  })
  it("forgets what was confirmed, over restarts too", () => {
    const first = open()
    const report = first.append({ _tag: "host.left" })
    first.confirm(report)
    assert.isUndefined(open().next)
    assert.isUndefined(open().next)
  })
  it("passes over the torn line that a crash leaves", () => {
    const first = open()
    const report = first.append(interrupted())
    appendFileSync(join(directory, "reports.ndjson"), '{"host":"gpu-1","inc')
    const second = open()
    assert.deepEqual(second.next, report)
    assert.equal(readFileSync(join(directory, "reports.ndjson"), "utf8").split("\n").length, 2)
  })
  it("gives reports again from any number on", () => {
    const outbox = open()
    for (let i = 0; i < 4; i++) outbox.confirm(outbox.append(interrupted()))
    assert.deepEqual(
      outbox.from(3).map(({ n }) => n),
      [3, 4]
    )
  })
  it("wakes whoever tells reports", () => {
    const outbox = open()
    let woken = 0
    outbox.onAppend(() => woken++)
    outbox.append({ _tag: "host.left" })
    assert.equal(woken, 1)
  })
})

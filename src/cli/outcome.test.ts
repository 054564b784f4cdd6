import * as Cause from "effect/Cause"
import { assert, describe, it } from "vitest"
import { HostRefused, Interrupted, ProgramNotExecutable, ProgramNotFound } from "../client/errors.ts"
import { BadRequest, NoCapacity, NoHost, NoNatsServer, NoRouter } from "../protocol/errors.ts"
import type { HostId } from "../protocol/ids.ts"
import { Usage } from "./errors.ts"
import { explain } from "./outcome.ts"

const ending = (error: unknown) => {
  const said: Array<string> = []
  const outcome = explain(Cause.fail(error), (sentence) => said.push(sentence))
  return { outcome, said }
}

describe("the end of juice", () => {
  it("has a stable exit code for each kind of error", () => {
    const cases: ReadonlyArray<readonly [unknown, number]> = [
      [new Usage({ detail: "x" }), 2],
      [new BadRequest({ detail: "x" }), 2],
      [new NoNatsServer({ server: "x" }), 69],
      [new NoRouter({ site: "x" }), 69],
      [new NoHost({ site: "x" }), 75],
      [new NoCapacity({ why: { hosts: 1, rejected: {}, best: [] } }), 75],
      [new HostRefused({ host: "h" as HostId, reason: "x" }), 75],
      [new ProgramNotExecutable({ program: "x", detail: "y" }), 126],
      [new ProgramNotFound({ program: "x" }), 127]
    ]
    for (const [error, code] of cases) assert.deepEqual(ending(error).outcome, { code }, String(error))
  })
  it("says one sentence, with the cure", () => {
    const { said } = ending(new NoRouter({ site: "local" }))
    assert.equal(said.length, 1)
    assert.match(said[0]!, /no router serves the site "local".*juice router/)
  })
  it("comes by the signal that interrupted it, without a word", () => {
    const { outcome, said } = ending(new Interrupted({ signal: "SIGINT" }))
    assert.deepEqual(outcome, { signal: "SIGINT" })
    assert.deepEqual(said, [])
  })
  it("names a fault of ours as one", () => {
    const { outcome, said } = ending(new TypeError("oops"))
    assert.deepEqual(outcome, { code: 70 })
    assert.match(said[0]!, /internal fault.*oops/s)
  })
})

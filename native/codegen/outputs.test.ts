import * as fs from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { opcodes } from "../idl/opcodes.ts"
import { fn } from "../idl/schema.ts"
import { outputs } from "./outputs.ts"
import { argumentOf, callOf } from "./rules.ts"
import { samples } from "./samples.ts"

describe("generated files", () => {
  for (const [file, content] of outputs()) {
    it(`${file} is what the generator writes`, () => {
      const committed = fs.readFileSync(new URL(`../../${file}`, import.meta.url), "utf8")
      assert.isTrue(committed === content, `${file} is out of date: run \`npm run codegen\` and commit the result`)
    })
  }
})

describe("rules", () => {
  const only = (prototype: string, rule?: string) => {
    const entry = fn(prototype, { class: "waited", ...(rule === undefined ? {} : { args: { a: rule } }) })
    return argumentOf(entry, entry.prototype.parameters[0]!)
  }

  it("read what the type alone says", () => {
    assert.deepStrictEqual(only("CUresult cuF(size_t a)"), { kind: "value", size: 8, float: false })
    assert.deepStrictEqual(only("CUresult cuF(CUstream a)"), { kind: "stream" })
    assert.deepStrictEqual(only("CUresult cuF(CUevent a)"), { kind: "handle", object: "event" })
    assert.deepStrictEqual(only("CUresult cuF(const char* a)"), { kind: "text" })
  })

  it("read directions, counts and extents", () => {
    assert.deepStrictEqual(only("CUresult cuF(CUevent* a)", "new event"), { kind: "new", object: "event" })
    assert.deepStrictEqual(only("CUresult cuF(CUdeviceptr a)", "written(N * 4)"), {
      kind: "device",
      bytes: "N * 4",
      written: true
    })
    const array = only("CUresult cuF(const int* a)", "in[n - 1]")
    assert.isTrue(array.kind === "in" && array.count === "n - 1" && array.size === 4)
    const out = only("CUresult cuF(int* a)", "out?")
    assert.isTrue(out.kind === "out" && out.nullable && out.scalar)
  })

  it("refuse a pointer without a rule, an unknown rule and a rule for a parameter that is not there", () => {
    assert.throws(() => only("CUresult cuF(int* a)"), /cuF: a needs a rule/)
    assert.throws(() => only("CUresult cuF(int* a)", "sideways"), /"sideways" is not a rule/)
    assert.throws(() => callOf(fn("CUresult cuF(int b)", { class: "waited", args: { a: "out" } })), /no parameter "a"/)
  })

  it("refuse a posted call that returns a value", () => {
    const entry = fn("CUresult cuF(int* a)", { class: "posted", args: { a: "out" } })
    assert.throws(() => callOf(entry), /cannot return a value/)
  })
})

describe("golden vectors of the wire", () => {
  it("exist for every call whose payload is generated, and their file says the same", () => {
    const file = new URL("../../test/data/wire/calls.json", import.meta.url)
    const golden: ReadonlyArray<{ name: string; opcode: number; payload: string }> = JSON.parse(
      fs.readFileSync(file, "utf8")
    )
    assert.isAbove(golden.length, 40)
    for (const one of golden) {
      const sample = samples.find(({ entry }) => entry.name === one.name)
      assert.strictEqual(one.payload, sample?.payload.toString("hex"), one.name)
      assert.strictEqual(one.opcode, opcodes[one.name as keyof typeof opcodes], one.name)
    }
  })

  it("write a stream as 16 and its wire id, and numbers in little endian", () => {
    const sample = samples.find(({ entry }) => entry.name === "cuStreamWaitEvent")!
    assert.strictEqual(sample.payload.toString("hex"), "5201000000000000" + "4202000000000000" + "01000000")
  })
})

import * as fs from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { dataExports, entries, functionExports, nvmlExports } from "./api.ts"
import { opcodes } from "./opcodes.ts"
import procaddress from "./procaddress.json" with { type: "json" }
import results from "./results.json" with { type: "json" }

const recorded = (file: string): string =>
  fs.readFileSync(new URL(`../../test/data/driver/${file}`, import.meta.url), "utf8")

const exports = (file: string): ReadonlyArray<ReadonlyArray<string>> =>
  recorded(file)
    .trim()
    .split("\n")
    .map((line) => line.split(" "))

describe("the declared driver API", () => {
  it("has a prototype for every function that the real driver exports, and no other", () => {
    const wanted = exports("exports.txt").filter(([, kind]) => kind === "function")
    assert.deepStrictEqual(functionExports.map(([name]) => name).sort(), wanted.map(([name]) => name!).sort())
  })

  it("has every data symbol with its size", () => {
    const wanted = exports("exports.txt").filter(([, kind]) => kind === "data")
    assert.deepStrictEqual(
      dataExports.map(([name, bytes]) => [name, "data", String(bytes)]),
      wanted.map((one) => [...one])
    )
  })

  it("has every name of the real NVML", () => {
    assert.deepStrictEqual(
      [...nvmlExports].sort(),
      exports("nvml-exports.txt")
        .map(([name]) => name!)
        .sort()
    )
  })

  it("declares each entry point once", () => {
    assert.strictEqual(new Set(entries.map((one) => one.name)).size, entries.length)
  })

  it("resolves names as the recorded driver does, always to an export", () => {
    assert.deepStrictEqual(procaddress, JSON.parse(recorded("procaddress.json")))
    const names = new Set(functionExports.map(([name]) => name))
    for (const [name, flags] of Object.entries(procaddress)) {
      for (const [, symbol] of Object.values(flags).flat()) {
        assert.isTrue(symbol === null || names.has(symbol as string), `${name} -> ${symbol}`)
      }
    }
  })

  it("names results as the recorded driver does", () => {
    assert.deepStrictEqual(results, JSON.parse(recorded("driver-answers.json")).errors)
  })

  it("implements every call that the recorded vector addition makes, in the version that it asks for", () => {
    const trace = fs.readFileSync(new URL("../../test/data/traces/vadd.txt", import.meta.url), "utf8")
    const called = [...trace.matchAll(/^ +\d+ cu\w+ @\d+ flags \d+ -> (\w+)$/gm)].map(([, symbol]) => symbol!)
    assert.isAbove(called.length, 15)
    const implemented = new Map(functionExports.map(([name, entry]) => [name, entry.rules]))
    assert.deepStrictEqual(
      called.filter((symbol) => implemented.get(symbol) === undefined),
      []
    )
  })
})

describe("opcodes", () => {
  it("are unique numbers of 16 bits, from 1", () => {
    const numbers = Object.values(opcodes)
    assert.strictEqual(new Set(numbers).size, numbers.length)
    for (const one of numbers) assert.isTrue(Number.isInteger(one) && one >= 1 && one <= 0xffff)
  })

  it("name an implemented entry point, or a call of our own", () => {
    for (const name of Object.keys(opcodes)) {
      const entry = entries.find((one) => one.name === name)
      assert.isTrue(name.startsWith("juice") ? entry === undefined : entry?.rules !== undefined, name)
    }
  })
})

import { assert, describe, it } from "@effect/vitest"
import { parsePrototype } from "./prototype.ts"

describe("prototype", () => {
  it("reads the name, the result and each parameter with its type", () => {
    const parsed = parsePrototype("CUresult cuF(const CUgraphNode *deps, unsigned  long long n, void** out)")
    assert.strictEqual(parsed.name, "cuF")
    assert.strictEqual(parsed.result, "CUresult")
    assert.deepStrictEqual(parsed.parameters, [
      { name: "deps", type: "const CUgraphNode*", pointee: "const CUgraphNode" },
      { name: "n", type: "unsigned long long", pointee: undefined },
      { name: "out", type: "void**", pointee: "void*" }
    ])
  })

  it("reads (void) as no parameters", () => {
    assert.deepStrictEqual(parsePrototype("CUresult cuF(void)").parameters, [])
  })

  it("refuses what the driver API does not need, naming the prototype", () => {
    for (const bad of ["cuF(int a)", "CUresult cuF()", "CUresult cuF(int)", "CUresult cuF(void (*f)(int))", "int x"]) {
      assert.throws(() => parsePrototype(bad), bad.slice(0, 3))
    }
  })
})

import { describe, expect, it } from "vitest"
import { describeTruth, readTruth } from "./truth.ts"

const outcome = (stdout: string, code: number | null = 0, stderr = "") => ({ code, signal: null, stdout, stderr })

describe("readTruth", () => {
  it("counts what passed, failed and was skipped", () => {
    const truth = readTruth(
      outcome(
        `Running main() from gtest_main.cc
../a_test.cc:28: Failure
[  FAILED  ] Integer.Adds (7 ms)
[==========] 9 tests from 2 test suites ran. (32 ms total)
[  PASSED  ] 6 tests.
[  SKIPPED ] 2 tests, listed below:
[  SKIPPED ] Half.Adds
[  FAILED  ] 1 test, listed below:
[  FAILED  ] Integer.Adds
`,
        1
      )
    )
    expect(truth).toEqual({ passed: 6, failed: ["Integer.Adds"], skipped: 2, broken: "" })
    expect(describeTruth(truth)).toBe("6 passed, 1 failed, 2 skipped\n  Integer.Adds")
  })

  it("does not believe a run that did not come to its end", () => {
    const truth = readTruth({ code: null, signal: "SIGSEGV", stdout: "Running main()\n", stderr: "boom\n" })
    expect(truth.broken).toBe("SIGSEGV before its end: boom")
  })
})

/**
 * The truth tests (test/softgpu) on the real GPU: what the software GPU is tested for in CI must hold on hardware
 * as well, natively and through `juice attach`.
 */
import { existsSync } from "node:fs"
import { dirname, join } from "node:path"
import { nativeEnvironment } from "../../bench/micro/compare.ts"
import { examplesDirectory, type Outcome, run, type Site } from "../../src/demo/site.ts"

/** What one run of the program says of itself. */
export interface Truth {
  readonly passed: number
  readonly failed: ReadonlyArray<string>
  readonly skipped: number
  /** Why the figures are not to be believed; empty where the run came to its end. */
  readonly broken: string
}

/** Reads GoogleTest's summary. */
export const readTruth = (outcome: Pick<Outcome, "code" | "signal" | "stdout" | "stderr">): Truth => {
  // The last one: tests that start the program anew print a summary of their own.
  const count = (word: string): number =>
    Number([...outcome.stdout.matchAll(new RegExp(`^\\[  ${word} *\\] (\\d+) tests?`, "gm"))].at(-1)?.[1] ?? 0)
  const failed = new Set(
    [...outcome.stdout.matchAll(/^\[ {2}FAILED {2}\] ([A-Za-z_]\w*\.\w+)/gm)].map((match) => match[1]!)
  )
  const ended = /^\[==========\] \d+ tests? from .* ran\./m.test(outcome.stdout)
  const how = outcome.signal ?? `exit ${outcome.code}`
  return {
    passed: count("PASSED"),
    failed: [...failed],
    skipped: count("SKIPPED"),
    broken: ended ? "" : `${how} before its end: ${outcome.stderr.trim().slice(-500)}`
  }
}

export const describeTruth = (truth: Truth): string =>
  `${truth.passed} passed, ${truth.failed.length} failed, ${truth.skipped} skipped` +
  `${truth.broken === "" ? "" : `; ${truth.broken}`}${truth.failed.map((name) => `\n  ${name}`).join("")}`

export interface TruthRow {
  readonly name: string
  readonly verdict: string
}

export const truthProgram = (): string =>
  join(process.env.JUICE_TRUTH_DIR ?? join(dirname(examplesDirectory()), "truth"), "softgpu_truth")

const options = { timeoutMs: 600_000 }

/** Runs the program natively and attached; a row for each, and each one's failures with their messages. */
export const runTruth = async (site: Site): Promise<ReadonlyArray<TruthRow>> => {
  const program = truthProgram()
  if (!existsSync(program)) {
    process.stdout.write(`truth tests: ${program} is not built; build with JUICE_TESTS=ON\n`)
    return [{ name: "truth tests", verdict: "FAIL" }]
  }
  const outcomes = {
    native: await run(program, ["--gtest_brief=1"], { ...options, env: nativeEnvironment() }),
    attached: await site.juice(["attach", "--", program, "--gtest_brief=1"], options)
  }
  return Object.entries(outcomes).map(([way, outcome]) => {
    const truth = readTruth(outcome)
    const ok = truth.broken === "" && truth.failed.length === 0 && truth.passed > 0
    if (!ok) process.stdout.write(`${outcome.stdout.slice(-20_000)}\n`)
    process.stdout.write(`truth tests, ${way}: ${describeTruth(truth)}\n`)
    return { name: `truth tests, ${way}`, verdict: ok ? "ok" : "FAIL" }
  })
}

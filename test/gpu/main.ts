/**
 * The GPU tests: every program runs natively and through `juice attach` on this machine's real GPU, and the two
 * must agree; then the truth tests and the micro benchmark both ways, and what a killed program leaves behind.
 * Prints a table last.
 *
 * usage: test-gpu [--only NAME] [--json FILE]
 */
import { spawnSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { type Comparison, compareMicro, nativeEnvironment, printComparison } from "../../bench/micro/compare.ts"
import { examplesDirectory, run, type Site, startSite } from "../../src/demo/site.ts"
import { programs } from "./programs.ts"
import { runTruth } from "./truth.ts"

interface Row {
  readonly name: string
  readonly verdict: string
  readonly nativeMs?: number
  readonly attachedMs?: number
}

const option = (name: string): string | undefined => {
  const at = process.argv.indexOf(name)
  return at < 0 ? undefined : process.argv[at + 1]
}

const runPrograms = async (site: Site, only: string | undefined): Promise<Array<Row>> => {
  const rows: Array<Row> = []
  for (const program of programs()) {
    if (only !== undefined && !program.name.includes(only)) continue
    const native = await run(program.command, program.args, { env: nativeEnvironment() })
    const attached = await site.juice(["attach", "--", program.command, ...program.args])
    const difference = program.compare(native, attached)
    process.stdout.write(`${program.name}: ${difference === "" ? attached.stdout.trim().slice(0, 300) : difference}\n`)
    rows.push({
      name: program.name,
      verdict: difference === "" ? "ok" : "FAIL",
      nativeMs: native.milliseconds,
      attachedMs: attached.milliseconds
    })
  }
  return rows
}

const usedMiB = (): number =>
  Number(
    spawnSync("nvidia-smi", ["--query-gpu=memory.used", "--format=csv,noheader,nounits"]).stdout?.toString().trim()
  )

const until = async (condition: () => boolean, seconds: number): Promise<number | undefined> => {
  const started = Date.now()
  while (Date.now() - started < seconds * 1000) {
    if (condition()) return Date.now() - started
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return undefined
}

/** A program that is killed with -9 gives its GPU memory back within seconds. */
const killed = async (site: Site): Promise<Row> => {
  const before = usedMiB()
  let pid = 0
  const attach = site.juice(["attach", "--", join(examplesDirectory(), "keep_busy"), "4096"], {
    onSpawn: (child) => {
      pid = child.pid ?? 0
    }
  })
  const grown = await until(() => usedMiB() > before + 4000, 30)
  process.kill(pid, "SIGKILL")
  await attach
  const returned = await until(() => usedMiB() <= before + 600, 20)
  const ok = grown !== undefined && returned !== undefined
  process.stdout.write(
    `memory after kill -9 of attach: ${ok ? `back after ${returned} ms` : `still ${usedMiB()} MiB, was ${before}`}\n`
  )
  return { name: "memory after kill -9", verdict: ok ? "ok" : "FAIL" }
}

const table = (rows: ReadonlyArray<Row>): void => {
  for (const row of rows) {
    const times =
      row.nativeMs === undefined || row.attachedMs === undefined
        ? ""
        : `${row.nativeMs.toFixed(0).padStart(7)} ms native ${row.attachedMs.toFixed(0).padStart(7)} ms attached`
    process.stdout.write(`${row.verdict.padEnd(5)} ${row.name.padEnd(28)} ${times}\n`)
  }
}

const main = async (): Promise<void> => {
  const site = await startSite("all")
  const rows: Array<Row> = []
  let figures: Comparison | undefined
  try {
    rows.push(...(await runPrograms(site, option("--only"))))
    if ("truth tests".includes(option("--only") ?? "")) rows.push(...(await runTruth(site)))
    if (option("--only") === undefined) {
      figures = await compareMicro(site, 1024).catch((error: Error) => {
        process.stdout.write(`micro: ${error.message}\n`)
        return undefined
      })
      rows.push({ name: "micro benchmark", verdict: figures?.attached.values === "ok" ? "ok" : "FAIL" })
      rows.push(await killed(site))
    }
  } finally {
    const code = await site.stop()
    rows.push({ name: "clean end of juice up", verdict: code === 0 ? "ok" : "FAIL" })
    if (rows.some((row) => row.verdict !== "ok")) process.stdout.write(`\njuice up wrote:\n${site.output()}\n`)
  }
  process.stdout.write("\n")
  if (figures !== undefined) process.stdout.write(`${printComparison(figures)}\n`)
  table(rows)
  const file = option("--json")
  if (file !== undefined) writeFileSync(file, `${JSON.stringify({ rows, figures }, undefined, 2)}\n`)
  const failed = rows.filter((row) => row.verdict !== "ok").length
  process.stdout.write(`${rows.length - failed} passed, ${failed} failed\n`)
  if (failed > 0) process.exitCode = 1
}

await main()

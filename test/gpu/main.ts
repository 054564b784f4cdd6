/**
 * The GPU tests: every program runs natively and through `juice attach` on this machine's real GPU, and the two
 * must agree; then the micro benchmark both ways, and what a killed program leaves behind. Prints a table last.
 *
 * usage: test-gpu [--only NAME] [--json FILE]
 */
import { spawnSync } from "node:child_process"
import { existsSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { examplesDirectory, run, type Site, startSite } from "../../src/demo/site.ts"
import { programs } from "./programs.ts"

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

const nativeEnvironment = (): NodeJS.ProcessEnv => {
  const env = { ...process.env }
  for (const name of Object.keys(env)) if (name.startsWith("JUICE_")) delete env[name]
  return env
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

type Figures = Record<string, number | string>

const micro = async (site: Site): Promise<{ native: Figures; attached: Figures } | undefined> => {
  const directory = process.env.JUICE_BENCH_DIR ?? join(dirname(examplesDirectory()), "bench")
  const command = join(directory, "micro")
  if (!existsSync(command)) return undefined
  const native = await run(command, ["1024"], { env: nativeEnvironment() })
  const attached = await site.juice(["attach", "--", command, "1024"])
  if (native.code !== 0 || attached.code !== 0) {
    process.stdout.write(
      `micro: native ${native.code} ${native.stderr}, attached ${attached.code} ${attached.stderr}\n`
    )
    return undefined
  }
  return { native: JSON.parse(native.stdout) as Figures, attached: JSON.parse(attached.stdout) as Figures }
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
  let figures: Awaited<ReturnType<typeof micro>>
  try {
    rows.push(...(await runPrograms(site, option("--only"))))
    if (option("--only") === undefined) {
      figures = await micro(site)
      rows.push({ name: "micro benchmark", verdict: figures === undefined ? "FAIL" : "ok" })
      rows.push(await killed(site))
    }
  } finally {
    const code = await site.stop()
    rows.push({ name: "clean end of juice up", verdict: code === 0 ? "ok" : "FAIL" })
    if (rows.some((row) => row.verdict !== "ok")) process.stdout.write(`\njuice up wrote:\n${site.output()}\n`)
  }
  process.stdout.write("\n")
  if (figures !== undefined) {
    for (const [name, value] of Object.entries(figures.attached)) {
      process.stdout.write(
        `${name.padEnd(24)} native ${String(figures.native[name]).padStart(10)}  attached ${String(value).padStart(10)}\n`
      )
    }
    process.stdout.write("\n")
  }
  table(rows)
  const file = option("--json")
  if (file !== undefined) writeFileSync(file, `${JSON.stringify({ rows, figures }, undefined, 2)}\n`)
  const failed = rows.filter((row) => row.verdict !== "ok").length
  process.stdout.write(`${rows.length - failed} passed, ${failed} failed\n`)
  if (failed > 0) process.exitCode = 1
}

await main()

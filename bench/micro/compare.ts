/**
 * The micro benchmark both ways in one run: natively on this machine's driver, and attached through a site.
 */
import { existsSync } from "node:fs"
import { dirname, join } from "node:path"
import { examplesDirectory, type Outcome, run, type Site } from "../../src/demo/site.ts"

export type Figures = Readonly<Record<string, number | string>>

export interface Comparison {
  readonly native: Figures
  readonly attached: Figures
}

/** Everything of Juice's taken out, so that the program meets the driver that it would meet without. */
export const nativeEnvironment = (): NodeJS.ProcessEnv => {
  const env = { ...process.env }
  for (const name of Object.keys(env)) if (name.startsWith("JUICE_")) delete env[name]
  return env
}

const figuresOf = (label: string, outcome: Outcome): Figures => {
  if (outcome.code !== 0) {
    throw new Error(`the ${label} run ended with ${outcome.signal ?? `code ${outcome.code}`}: ${outcome.stderr.trim()}`)
  }
  return JSON.parse(outcome.stdout) as Figures
}

/**
 * @param mebibytes size of the bulk copies
 * @param driverDirectory where the native run finds its libcuda.so.1, when not in the system's own place
 */
export const compareMicro = async (site: Site, mebibytes: number, driverDirectory?: string): Promise<Comparison> => {
  const command = join(process.env.JUICE_BENCH_DIR ?? join(dirname(examplesDirectory()), "bench"), "micro")
  if (!existsSync(command)) throw new Error(`${command} is not built: run npm run setup`)
  const few = driverDirectory === undefined ? {} : { MICRO_FEW: "1" }
  const library = driverDirectory === undefined ? {} : { LD_LIBRARY_PATH: driverDirectory }
  const native = await run(command, [String(mebibytes)], { env: { ...nativeEnvironment(), ...few, ...library } })
  const attached = await site.juice(["attach", "--", command, String(mebibytes)], { env: few })
  return { native: figuresOf("native", native), attached: figuresOf("attached", attached) }
}

export const printComparison = ({ native, attached }: Comparison): string =>
  Object.entries(attached)
    .map(([name, value]) => {
      const before = native[name]
      const ratio = typeof value === "number" && typeof before === "number" ? (value / before).toFixed(2) : ""
      return `${name.padEnd(24)} native ${String(before).padStart(18)}   attached ${String(value).padStart(18)}   ${ratio.padStart(7)}\n`
    })
    .join("")

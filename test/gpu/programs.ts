/**
 * The programs of the GPU tests, and how two runs of each, native and attached, are held against each other.
 */
import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { type Missing, missingOn } from "../../src/demo/examples.ts"
import { examplesDirectory, type Outcome } from "../../src/demo/site.ts"

export interface Program {
  readonly name: string
  readonly command: string
  readonly args: ReadonlyArray<string>
  /** Empty when the attached run did what the native one did; else what differs. */
  readonly compare: (native: Outcome, attached: Outcome) => string
}

const describe = (outcome: Outcome): string =>
  `${outcome.signal ?? `exit ${outcome.code}`}: ${`${outcome.stdout}${outcome.stderr}`.trim().slice(-1000)}`

/** Both succeeded and printed the same line. */
const sameOutput = (native: Outcome, attached: Outcome): string => {
  if (attached.code !== 0) return describe(attached)
  if (native.code !== 0) return `the native run failed, ${describe(native)}`
  return native.stdout === attached.stdout
    ? ""
    : `native: ${native.stdout.trim()} | attached: ${attached.stdout.trim()}`
}

/** The native run succeeded; attached, the program is expected to be missing something, and says so. */
const stillMissing =
  ({ error, why }: Missing) =>
  (native: Outcome, attached: Outcome): string => {
    if (native.code !== 0) return `the native run failed, ${describe(native)}`
    if (attached.code === 0) return `it runs now: take it from the list of what is missing ("${why}")`
    return new RegExp(error).test(attached.stdout + attached.stderr) ? "" : describe(attached)
  }

interface Training {
  readonly device: string
  readonly products: Readonly<Record<string, number>>
  readonly pinned: boolean
  readonly losses: ReadonlyArray<number>
  readonly libcuda: ReadonlyArray<string>
}

/** Largest relative distance of a loss from the native run's; cuDNN may pick other algorithms, so not zero. */
const lossTolerance = 2e-3

const sameTraining = (native: Outcome, attached: Outcome): string => {
  if (attached.code !== 0) return describe(attached)
  if (native.code !== 0) return `the native run failed, ${describe(native)}`
  const expected = JSON.parse(native.stdout) as Training
  const got = JSON.parse(attached.stdout) as Training
  const faults: Array<string> = []
  if (got.device !== expected.device) faults.push(`device ${got.device}, native ${expected.device}`)
  if (!(got.products.float32! < 1e-5)) faults.push(`float32 product off by ${got.products.float32}`)
  if (!(got.products.bfloat16! < 1e-2)) faults.push(`bfloat16 product off by ${got.products.bfloat16}`)
  if (!got.pinned) faults.push("pinned copies returned other values")
  if (got.losses.length !== 10) faults.push(`${got.losses.length} losses`)
  const apart = got.losses.map((loss, i) => Math.abs(loss - expected.losses[i]!) / Math.abs(expected.losses[i]!))
  if (!apart.every((distance) => distance <= lossTolerance)) {
    faults.push(`losses ${got.losses.join(" ")}, native ${expected.losses.join(" ")}`)
  }
  if (!(got.losses[9]! < got.losses[0]!)) faults.push("training did not lower the loss")
  const foreign = got.libcuda.filter((path) => !path.includes("/shim/"))
  if (got.libcuda.length === 0 || foreign.length > 0) faults.push(`mapped drivers: ${got.libcuda.join(" ")}`)
  return faults.join("; ")
}

/** Functions and graphs with the values that they leave: sections of native/shim/test/replays, each a process. */
const replays = [
  "functions_in_order",
  "function_as_gate",
  "functions_say_status",
  "functions_across_streams",
  "captured_and_replayed",
  "forked_and_joined",
  "functions_in_graphs",
  "built_by_hand",
  "updated",
  "captures_forbid",
  "user_objects",
  "parts_of_graphs",
  "functions_at_the_end",
  "functions_after_fault"
]

/** One of our own checks, which an unbuilt or a forgotten file must not silence. */
const checkNamed = (directory: string, name: string): string => {
  const path = join(directory, "../native/shim/test", name)
  if (!existsSync(path)) throw new Error(`${path} is not there: build with JUICE_TESTS=ON, or make the bundle anew`)
  return path
}

const replayed = (directory: string): ReadonlyArray<Program> => {
  const command = checkNamed(directory, "juice_replays")
  return replays.map((name) => ({ name, command, args: ["libcuda.so.1", name], compare: sameOutput }))
}

const scriptNamed = (directory: string, name: string): string | undefined =>
  [join(directory, name), join(directory, "../../../examples/python", name)].find((path) => existsSync(path))

export const programs = (): ReadonlyArray<Program> => {
  const directory = examplesDirectory()
  const built = readdirSync(directory).filter((name) => /^(saxpy_and_dot|.*_(static|shared))$/.test(name))
  const compiled = built.sort().map((name): Program => {
    const scratch = name.startsWith("mandelbrot") ? ["/tmp/juice-mandelbrot.png"] : []
    const missing = missingOn(name.replace(/(_debug)?_(static|shared)$/, ""), "attach")
    const compare = missing === undefined ? sameOutput : stillMissing(missing)
    return { name, command: join(directory, name), args: scratch, compare }
  })
  // Checks for themselves what they find in memory that they share with the device.
  const checks = checkNamed(directory, "juice_coherence")
  compiled.push({ name: "shared_host_memory", command: checks, args: ["libcuda.so.1"], compare: sameOutput })
  const python = (name: string, compare: Program["compare"]): ReadonlyArray<Program> => {
    const script = scriptNamed(directory, `${name}.py`)
    return script === undefined ? [] : [{ name, command: "python3", args: [script], compare }]
  }
  return [
    ...compiled,
    ...replayed(directory),
    ...python("torch_graphs", sameOutput),
    ...python("torch_training", sameTraining)
  ]
}

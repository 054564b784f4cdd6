import { areas, dataExports, entries, functionExports } from "../idl/api.ts"
import type { CallClass, Entry } from "../idl/schema.ts"
import { generatedHandlers, generatedStubs } from "./rules.ts"
import { banner } from "./text.ts"

const classes: ReadonlyArray<CallClass> = ["local", "cached", "posted", "waited", "custom"]
const implemented = (entry: Entry): boolean => entry.rules !== undefined

const written = (entry: Entry): string => {
  if (entry.rules!.class === "local") return "shim"
  const hands = [
    ...(generatedStubs.includes(entry) ? [] : ["shim"]),
    ...(entry.rules!.as !== undefined || generatedHandlers.includes(entry) ? [] : ["worker"])
  ]
  return hands.length === 0 ? "generated" : hands.join(", ")
}

const notes = (entry: Entry): string =>
  [
    ...(entry.perThreadName === undefined ? [] : [`also \`_${entry.perThreadName.split("_").at(-1)}\``]),
    ...(entry.rules!.as === undefined ? [] : [`sent as \`${entry.rules!.as}\``]),
    ...(entry.rules!.mayBlock === true ? ["may block"] : [])
  ].join("; ")

/** docs/cuda-coverage.md */
export const coverage = (): string => {
  const done = functionExports.filter(([, entry]) => implemented(entry)).length
  const lines = [
    "# Coverage of the CUDA driver API",
    "",
    "Generated from native/idl by `npm run codegen`; do not edit.",
    "",
    `Juice exports the ${functionExports.length} functions and ${dataExports.length} data symbols of CUDA 13.0's libcuda.so.1. ` +
      `${done} functions are implemented (${entries.filter(implemented).length} entry points and their per-thread variants). ` +
      `The other ${functionExports.length - done} return CUDA_ERROR_NOT_SUPPORTED (801) and are named once on stderr.`,
    "",
    "| class | entry points | meaning |",
    "|---|---|---|",
    ...(
      [
        ["local", "answered in the shim"],
        ["cached", "asked once for each argument tuple"],
        ["posted", "sent, not waited for"],
        ["waited", "needs an answer"],
        ["custom", "written by hand on both sides"]
      ] as const
    ).map(
      ([name, meaning]) => `| ${name} | ${entries.filter((entry) => entry.rules?.class === name).length} | ${meaning} |`
    ),
    "",
    "By hand: the ends of the link whose code is not generated."
  ]
  for (const area of areas) {
    const present = area.entries.filter(implemented)
    const absent = area.entries.filter((entry) => !implemented(entry))
    lines.push("", `## ${area.name}`, "", area.about)
    if (present.length > 0) {
      const sorted = classes.flatMap((name) => present.filter((entry) => entry.rules!.class === name))
      lines.push("", "| entry point | class | by hand | notes |", "|---|---|---|---|")
      lines.push(
        ...sorted.map((entry) => `| ${entry.name} | ${entry.rules!.class} | ${written(entry)} | ${notes(entry)} |`)
      )
    }
    if (absent.length > 0) {
      lines.push("", `Not supported: ${absent.map((entry) => entry.name).join(", ")}.`)
    }
  }
  return `${lines.join("\n")}\n`
}

/** native/gen/implemented.inc: every exported name that the shim must define itself. */
export const implementedNames = (): string =>
  `${[
    banner("The exported names that the shim implements, per-thread variants included."),
    ...functionExports.filter(([, entry]) => implemented(entry)).map(([name]) => `JUICE_IMPLEMENTED(${name})`)
  ].join("\n")}\n`

import recorded from "../idl/results.json" with { type: "json" }
import { banner, quote } from "./text.ts"

/** native/gen/results.inc: code, name and sentence of every CUresult, ascending. */
export const resultTable = (): string => {
  const rows = Object.entries(recorded as unknown as Record<string, readonly [name: string, sentence: string]>)
    .map(([code, [name, sentence]]) => ({ code: Number(code), name, sentence }))
    .sort((a, b) => a.code - b.code)
  return `${[
    banner("Name and sentence of every CUresult."),
    ...rows.map((row) => `{${row.code}, ${quote(row.name)}, ${quote(row.sentence)}},`)
  ].join("\n")}\n`
}

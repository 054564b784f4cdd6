import recorded from "../idl/procaddress.json" with { type: "json" }
import { banner, quote } from "./text.ts"

/** From this CUDA version on: the symbol or null, and the query status. */
type Row = readonly [version: number, symbol: string | null, status: number]
export type Answers = Readonly<Record<string, Readonly<Record<"0" | "2", ReadonlyArray<Row>>>>>

/** name -> flags ("2" per-thread default stream, "0" otherwise) -> rows, ascending; each holds until the next. */
export const answers = recorded as unknown as Answers

/** native/gen/procaddress.inc: the rows of all names, and each name's range of rows for the two kinds of flags. */
export const procAddressTable = (): string => {
  const rows: Array<string> = []
  const starts = new Map<string, number>()
  // Equal lists are stored once: most names answer the same whatever the flags.
  const place = (list: ReadonlyArray<Row>): string => {
    const texts = list.map(
      ([version, symbol, status]) => `    {${version}, ${symbol === null ? "nullptr" : quote(symbol)}, ${status}},`
    )
    const key = texts.join("\n")
    let start = starts.get(key)
    if (start === undefined) {
      start = rows.length
      starts.set(key, start)
      rows.push(...texts)
    }
    return `${start}, ${list.length}`
  }
  const names = Object.keys(answers)
    .sort()
    .map((name) => `    {${quote(name)}, {${place(answers[name]!["0"])}}, {${place(answers[name]!["2"])}}},`)
  return `${[
    banner("What cuGetProcAddress answers for each name, CUDA version and kind of flags."),
    "// {from this version on, symbol or null, CUdriverProcAddressQueryResult}",
    "constexpr Row kRows[] = {",
    ...rows,
    "};",
    "",
    "// {name, {first row, rows} by default, {first row, rows} for per-thread default streams}, sorted by name",
    "constexpr Name kNames[] = {",
    ...names,
    "};"
  ].join("\n")}\n`
}

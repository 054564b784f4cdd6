/**
 * What commands print: data on stdout, talk on stderr. JSON has a version of its shape; fields are only ever added.
 */
import type { Usage } from "../protocol/gpu.ts"

export const JSON_VERSION = 1

export const print = (text: string): void => {
  process.stdout.write(text === "" ? "" : `${text}\n`)
}

export const printJson = (value: Record<string, unknown>): void =>
  print(JSON.stringify({ version: JSON_VERSION, ...value }))

/** Our own words: to stderr, with our name. */
export const tell = (sentence: string): void => {
  process.stderr.write(`juice: ${sentence}\n`)
}

/** Columns as wide as their widest cell; the last is not padded. */
export const table = (head: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column]!.length)))
  return [head, ...rows]
    .map((row) =>
      row.map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column]!))).join("  ")
    )
    .join("\n")
}

/** "141 GiB", "1.5 MiB", "17 B". */
export const bytesText = (bytes: number): string => {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]
  let value = bytes
  let unit = 0
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024
    unit += 1
  }
  const digits = unit === 0 || value >= 100 || Number.isInteger(value) ? 0 : 1
  return `${value.toFixed(digits)} ${units[unit]}`
}

/** "3 s", "12 min", "5 h", "2 d": one unit is enough to judge by. */
export const durationText = (ms: number): string => {
  const seconds = ms / 1000
  if (seconds < 1) return `${Math.max(0, Math.round(ms))} ms`
  if (seconds < 120) return `${Math.round(seconds)} s`
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} d`
}

/** "1 GPU", "3 GPUs". */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`

export const usageText = (usage: Usage): string =>
  [
    `${counted(usage.calls, "call")}`,
    `${counted(usage.launches, "launch").replace("launchs", "launches")}`,
    `${bytesText(usage.bytesIn)} in`,
    `${bytesText(usage.bytesOut)} out`,
    `${bytesText(usage.peakMemory)} peak`
  ].join(", ")

const two = (value: number): string => String(value).padStart(2, "0")

/** The local time of day, "14:03:07". */
export const timeText = (ms: number): string => {
  const date = new Date(ms)
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
}

/** The local day, "2026-11-30". */
export const dayText = (ms: number): string => {
  const date = new Date(ms)
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
}

/**
 * The part of TOML that a settings file needs: tables, and keys with strings, numbers and booleans. Everything else is
 * an error that names its line, never a silent skip.
 */
import * as Result from "effect/Result"
import { Usage } from "./errors.ts"

export type Scalar = string | number | boolean
/** Keys before the first table are in the table "". */
export type Tables = Record<string, Record<string, Scalar>>

const TABLE = /^\[\s*([A-Za-z0-9_-]+)\s*\]$/
const PAIR = /^([A-Za-z0-9_-]+)\s*=\s*(.+)$/
const BASIC = /^"((?:[^"\\]|\\["\\nt])*)"$/
const LITERAL = /^'([^']*)'$/
const NUMBER = /^[+-]?\d[\d_]*(?:\.\d+)?$/

/** The line without its comment; a # inside a string stays. */
const withoutComment = (line: string): string => {
  let quote = ""
  for (let at = 0; at < line.length; at++) {
    const char = line[at]!
    if (quote === '"' && char === "\\") at += 1
    else if (quote !== "" && char === quote) quote = ""
    else if (quote === "" && (char === '"' || char === "'")) quote = char
    else if (quote === "" && char === "#") return line.slice(0, at)
  }
  return line
}

const unescape: Record<string, string> = { '"': '"', "\\": "\\", n: "\n", t: "\t" }

const scalar = (text: string): Scalar | undefined => {
  const basic = BASIC.exec(text)
  if (basic) return basic[1]!.replace(/\\(.)/g, (_, char: string) => unescape[char]!)
  const literal = LITERAL.exec(text)
  if (literal) return literal[1]!
  if (text === "true" || text === "false") return text === "true"
  if (NUMBER.test(text)) return Number(text.replaceAll("_", ""))
  return undefined
}

/** `path` is for errors only. */
export const parseToml = (text: string, path: string): Result.Result<Tables, Usage> => {
  const tables: Tables = { "": {} }
  let table = tables[""]!
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const line = withoutComment(raw).trim()
    if (line === "") continue
    const header = TABLE.exec(line)
    if (header) {
      tables[header[1]!] ??= {}
      table = tables[header[1]!]!
      continue
    }
    const pair = PAIR.exec(line)
    const value = pair === null ? undefined : scalar(pair[2]!.trim())
    if (pair === null || value === undefined) {
      const detail = `${path}:${index + 1}: "${line}" is not \`key = value\` with a string, number or boolean, nor a [table]`
      return Result.fail(new Usage({ detail }))
    }
    table[pair[1]!] = value
  }
  return Result.succeed(tables)
}

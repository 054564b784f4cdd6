/**
 * Flags, and what they fall back on: each has a JUICE_* variable and a place in the settings file (settings.ts).
 */
import * as Config from "effect/Config"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Labels } from "../protocol/gpu.ts"
import { DEFAULT_SITE } from "../protocol/tokens.ts"
import { Usage } from "./errors.ts"
import { settingName } from "./settings.ts"

export interface FlagText {
  readonly description: string
  /** What stands for the value in the help. */
  readonly metavar?: string
}

/** A flag with a text value. `table`: the command that it belongs to, "" for those of all commands. */
export const textFlag = (table: string, name: string, text: FlagText) =>
  Flag.String(name).pipe(
    Flag.withDescription(text.description),
    Flag.withMetavar(text.metavar ?? "TEXT"),
    Flag.withFallbackConfig(Config.String(settingName(table, name)))
  )

export const numberFlag = (table: string, name: string, text: FlagText) =>
  Flag.Int(name).pipe(
    Flag.withDescription(text.description),
    Flag.withMetavar(text.metavar ?? "N"),
    Flag.withFallbackConfig(Config.Int(settingName(table, name)))
  )

/** A flag that is off unless given, or set to true elsewhere. */
export const switchFlag = (table: string, name: string, description: string) =>
  Flag.Boolean(name).pipe(
    Flag.withDescription(description),
    Flag.withFallbackConfig(Config.Boolean(settingName(table, name))),
    Flag.withDefault(false)
  )

/** Flags of every command. */
export const commonFlags = {
  nats: textFlag("", "nats", {
    description: "the NATS server (default nats://127.0.0.1:4222; also NATS_URL)",
    metavar: "URL"
  }).pipe(Flag.withDefault("nats://127.0.0.1:4222")),
  site: textFlag("", "site", { description: `the site (default ${DEFAULT_SITE})`, metavar: "NAME" }).pipe(
    Flag.withDefault<string>(DEFAULT_SITE)
  ),
  creds: textFlag("", "creds", { description: "a file with NATS credentials", metavar: "FILE" }).pipe(Flag.optional)
}

export const jsonFlag = Flag.Boolean("json").pipe(
  Flag.withDescription("print JSON instead of text"),
  Flag.withDefault(false)
)

const UNITS: Record<string, number> = { "": 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 }

/** Bytes: "8G", "512M", "1.5GiB"; units are powers of 1024. */
export const parseBytes = (text: string): Effect.Effect<number, Usage> => {
  const parts = /^(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?$/i.exec(text.trim())
  const bytes = parts === null ? 0 : Math.floor(Number(parts[1]) * UNITS[parts[2]!.toLowerCase()]!)
  return bytes > 0
    ? Effect.succeed(bytes)
    : Effect.fail(new Usage({ detail: `"${text}" is not an amount of memory: write for example 8G or 512M` }))
}

/** "zone=a,owner=me" as labels; the empty text is none. */
export const parseLabels = (text: string): Effect.Effect<Labels, Usage> => {
  const labels: Record<string, string> = {}
  for (const part of text.split(",").filter((item) => item.trim() !== "")) {
    const at = part.indexOf("=")
    if (at <= 0)
      return Effect.fail(new Usage({ detail: `"${part}" is not a label: write KEY=VALUE, separated by commas` }))
    labels[part.slice(0, at).trim()] = part.slice(at + 1).trim()
  }
  return Effect.succeed(labels)
}

/** A value that must be of a schema with a sentence of its own. */
export const checked = <T>(name: string, schema: Schema.Codec<T, unknown>, text: unknown): Effect.Effect<T, Usage> =>
  Schema.decodeUnknownEffect(schema)(text).pipe(
    Effect.mapError((error) => new Usage({ detail: `--${name} ${String(text)}: ${error.message.split("\n")[0]}` }))
  )

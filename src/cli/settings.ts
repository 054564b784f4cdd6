/**
 * Settings, strongest first: flags, JUICE_* variables, the settings file, defaults.
 *
 * Every setting has one name in capitals. `--data-dir` of `juice host` is JUICE_HOST_DATA_DIR in the environment and
 * `data-dir` in the table [host] of the file; settings common to all commands (nats, site, creds) have no command in
 * their name and stand before the first table. NATS_URL is read where JUICE_NATS is not set.
 */
import { existsSync, readFileSync } from "node:fs"
import { homedir } from "node:os"
import { join } from "node:path"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import { Usage } from "./errors.ts"
import { parseToml, type Tables } from "./toml.ts"

/** JUICE_HOST_DATA_DIR for ("host", "data-dir"); JUICE_NATS for ("", "nats"). */
export const settingName = (table: string, key: string): string =>
  ["JUICE", table, key]
    .filter((part) => part !== "")
    .join("_")
    .replaceAll("-", "_")
    .toUpperCase()

const jsonTables = (text: string, path: string): Result.Result<Tables, Usage> => {
  const wrong = () => Result.fail(new Usage({ detail: `${path}: it must be one JSON object of settings and tables` }))
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    return wrong()
  }
  if (!Predicate.isObject(json)) return wrong()
  const tables: Tables = { "": {} }
  for (const [key, value] of Object.entries(json)) {
    if (Predicate.isObject(value)) tables[key] = value as Tables[string]
    else tables[""]![key] = value as Tables[string][string]
  }
  const scalars = Object.values(tables).flatMap(Object.values)
  return scalars.every((value) => ["string", "number", "boolean"].includes(typeof value))
    ? Result.succeed(tables)
    : wrong()
}

/** The settings file: JUICE_CONFIG, else config.toml or config.json in juice's folder under XDG_CONFIG_HOME. */
export const settingsFile = (env: NodeJS.ProcessEnv): string | undefined => {
  if (env.JUICE_CONFIG !== undefined && env.JUICE_CONFIG !== "") return env.JUICE_CONFIG
  const base = env.XDG_CONFIG_HOME || join(env.HOME || homedir(), ".config")
  return ["config.toml", "config.json"].map((name) => join(base, "juice", name)).find((path) => existsSync(path))
}

/** All settings that environment and file make, by name. */
export const readSettings = (env: NodeJS.ProcessEnv): Result.Result<Record<string, string>, Usage> =>
  Result.gen(function* () {
    const settings: Record<string, string> = {}
    const path = settingsFile(env)
    if (path !== undefined) {
      const text = yield* Result.try({
        try: () => readFileSync(path, "utf8"),
        catch: (error) => new Usage({ detail: `the settings file ${path} cannot be read: ${(error as Error).message}` })
      })
      const tables = yield* path.endsWith(".json") ? jsonTables(text, path) : parseToml(text, path)
      for (const [table, pairs] of Object.entries(tables)) {
        for (const [key, value] of Object.entries(pairs)) settings[settingName(table, key)] = String(value)
      }
    }
    if (env.NATS_URL) settings.JUICE_NATS = env.NATS_URL
    for (const [name, value] of Object.entries(env)) {
      if (name.startsWith("JUICE_") && value !== undefined && value !== "") settings[name] = value
    }
    return settings
  })

/** What flags fall back on. */
export const settingsProvider = (settings: Record<string, string>): ConfigProvider.ConfigProvider =>
  ConfigProvider.fromUnknown(settings)

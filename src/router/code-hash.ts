/**
 * The hash of the decide-and-fold bundle, which every commit names.
 *
 * The bundle is made from rules.ts with nothing external, without comments or paths, so the same sources give the
 * same bytes anywhere. The build puts the hash into the program (`JUICE_CODE`); from sources it is computed.
 */
import { createHash } from "node:crypto"
import { fileURLToPath } from "node:url"
import * as Effect from "effect/Effect"

declare const JUICE_CODE: string | undefined

/** The bundle's text and its SHA-256. Needs esbuild, a development dependency. */
export const buildRules = async (): Promise<{ readonly text: string; readonly hash: string }> => {
  const { build } = await import("esbuild")
  const result = await build({
    entryPoints: [fileURLToPath(new URL("./rules.ts", import.meta.url))],
    bundle: true,
    write: false,
    platform: "node",
    format: "esm",
    target: "node20",
    charset: "utf8",
    legalComments: "none",
    minify: true
  })
  const text = result.outputFiles[0]!.text
  return { text, hash: createHash("sha256").update(text).digest("hex") }
}

/** The hash of the code that runs here. */
export const codeHash: Effect.Effect<string> = Effect.suspend(() =>
  typeof JUICE_CODE === "string"
    ? Effect.succeed(JUICE_CODE)
    : Effect.map(Effect.promise(buildRules), ({ hash }) => hash)
)

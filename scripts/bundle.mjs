// The command, the demo and the GPU tests as single files under dist/: a bundled start takes a quarter
// of the time that resolving three hundred modules does. Nothing is done when no source is newer.
import { readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { build } from "esbuild"

const entries = {
  juice: "src/cli/main.ts",
  demo: "src/demo/main.ts",
  "test-gpu": "test/gpu/main.ts",
  bench: "bench/main.ts"
}

const modified = (path) => {
  const info = statSync(path, { throwIfNoEntry: false })
  if (info === undefined) return 0
  if (!info.isDirectory()) return info.mtimeMs
  return Math.max(info.mtimeMs, ...readdirSync(path).map((name) => modified(join(path, name))))
}

const present = Object.fromEntries(
  Object.entries(entries).filter(([, path]) => statSync(path, { throwIfNoEntry: false }) !== undefined)
)
const outputs = Object.keys(present).map((name) => `dist/${name}.js`)
const oldest = Math.min(...outputs.map(modified))
const newest = Math.max(...["src", "test/gpu", "bench", "package-lock.json", "scripts/bundle.mjs"].map(modified))
if (outputs.some((path) => modified(path) === 0) || newest > oldest) {
  // Every commit of the log names the code that decided it: its hash is made here, where there is an esbuild.
  process.env.TSX_DISABLE_CACHE = "1" // it would stay in the temporary folder
  const { tsImport } = await import("tsx/esm/api")
  const { buildRules } = await tsImport("../src/router/code-hash.ts", import.meta.url)
  const { hash } = await buildRules()
  await build({
    define: { JUICE_CODE: JSON.stringify(hash) },
    external: ["esbuild"],
    entryPoints: present,
    outdir: "dist",
    bundle: true,
    platform: "node",
    target: "node20",
    format: "esm",
    sourcemap: true,
    logLevel: "warning",
    // CommonJS dependencies inside an ES module still call require.
    banner: { js: 'import { createRequire as juiceRequire } from "node:module"; const require = juiceRequire(import.meta.url);' }
  })
}

import * as fs from "node:fs"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { outputs } from "./outputs.ts"

/**
 * Writes everything that is generated from native/idl. With `--check` it writes nothing and fails when a committed file
 * differs from what it would write.
 */
const root = fileURLToPath(new URL("../..", import.meta.url))
const check = process.argv.includes("--check")
const stale: Array<string> = []
for (const [file, content] of outputs()) {
  const target = path.join(root, file)
  const present = fs.existsSync(target) ? fs.readFileSync(target, "utf8") : undefined
  if (present === content) continue
  stale.push(file)
  if (!check) {
    fs.mkdirSync(path.dirname(target), { recursive: true })
    fs.writeFileSync(target, content)
  }
}
if (check && stale.length > 0) {
  console.error(`out of date: ${stale.join(", ")}; run \`npm run codegen\` and commit the result`)
  process.exit(1)
}
for (const file of stale) console.log(`wrote ${file}`)

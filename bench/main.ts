/**
 * npm run bench: what a call costs through Juice, beside the same driver used directly, in one run. On a machine
 * without an NVIDIA GPU both sides use the software GPU, so that the ratios still speak of Juice alone.
 */
import { join } from "node:path"
import { startSite } from "../src/demo/site.ts"
import { findNativeFiles } from "../src/native/files.ts"
import { compareMicro, printComparison } from "./micro/compare.ts"

const site = await startSite("auto")
try {
  const hosts = await site.juice(["hosts", "--json"])
  const software = hosts.stdout.includes("Juice Software GPU")
  const driver = software ? join(findNativeFiles().directory, "softgpu") : undefined
  process.stdout.write(`Driver: ${software ? "the software GPU (no NVIDIA GPU here)" : "NVIDIA"}. Loopback TCP.\n\n`)
  process.stdout.write(printComparison(await compareMicro(site, software ? 64 : 1024, driver)))
} finally {
  await site.stop()
}

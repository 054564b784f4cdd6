/**
 * The demo: what Juice is for, in one run. Starts a site, attaches a CUDA program that knows nothing of it,
 * lets the program compare its numbers with the CPU, and shows what the session log recorded.
 */
import { join } from "node:path"
import { examplesDirectory, type Outcome, startSite } from "./site.ts"

const say = (text = ""): void => {
  process.stdout.write(`${text}\n`)
}

const expectSuccess = (what: string, outcome: Outcome): void => {
  if (outcome.code === 0) return
  throw new Error(
    `${what} ended with ${outcome.signal ?? `code ${outcome.code}`}\n${outcome.stdout}${outcome.stderr}`.trimEnd()
  )
}

const indent = (text: string): string => text.trimEnd().replace(/^/gm, "    ")

interface HostsListing {
  readonly hosts: ReadonlyArray<{ readonly gpus: ReadonlyArray<{ readonly name: string }> }>
}

const main = async (): Promise<void> => {
  const started = performance.now()
  say("Juice demo: an unmodified CUDA program on a GPU that is somewhere else")
  say()
  const site = await startSite("auto")
  try {
    const listing = await site.juice(["hosts", "--json"])
    expectSuccess("juice hosts", listing)
    const names = (JSON.parse(listing.stdout) as HostsListing).hosts.flatMap((host) => host.gpus.map((gpu) => gpu.name))
    const software = names.every((name) => name.includes("Software"))
    say(`1. NATS with JetStream, a router and a host are up. GPU: ${names.join(", ")}`)
    say(
      software
        ? "   There is no NVIDIA GPU here, so the software GPU stands in: it runs the program's PTX on the CPU."
        : "   This is the real GPU of this machine."
    )
    say()

    const program = join(examplesDirectory(), "saxpy_and_dot")
    say(`2. juice attach -- ${program}`)
    const attached = await site.juice(["attach", "--", program])
    expectSuccess("the attached program", attached)
    if (!attached.stdout.includes(": ok on ")) throw new Error(`the program's numbers are wrong: ${attached.stdout}`)
    say(indent(attached.stdout))
    say("   It compared every number with the CPU's.")
    say()

    say("3. What the session log recorded (juice events)")
    const story = await site.juice(["events"])
    expectSuccess("juice events", story)
    say(indent(story.stdout))
    say()
  } finally {
    const code = await site.stop()
    if (code !== 0) process.exitCode = 1
    say(
      code === 0
        ? `4. Stopped: no process and no file is left. ${((performance.now() - started) / 1000).toFixed(1)} s in all.`
        : `4. juice up ended with code ${code}:\n${indent(site.output())}`
    )
  }
}

main().catch((error: unknown) => {
  process.stderr.write(`demo: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
})

/** `juice up` ends without a trace however it ends; and the demo, which stands on it, tells its story. */
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { plainEnvironment, projectRoot, run } from "../../src/demo/site.ts"
import { example, startTestSite } from "./harness.ts"
import { commandLine, filesUnder, isAlive, processesMarked, until } from "./processes.ts"

describe("juice up", () => {
  it.each(["SIGINT", "SIGTERM"] as const)("ends in order on %s, with the programs that it serves", async (signal) => {
    const site = await startTestSite("soft:2")
    const busy = site.attach(example("keep_busy"))
    await busy.says("running")
    const session = await busy.session
    assert.isAbove(site.workers().length, 0)
    assert.equal(await site.up.stop(signal), 0, site.output())
    const { code, stderr, stdout } = await busy.outcome
    assert.match(stdout, /^running\nerror \d+\n$/)
    assert.equal(code, 3)
    assert.match(stderr, /^juice: .*the host is shutting down.*$/m)
    await until("nothing is left", () => site.remains().processes.length === 0)
    const end = site.events().find((event) => event._tag === "SessionEnded" && event.session === session)
    assert.equal(end?.reason, "host-left")
    assert.deepEqual(
      filesUnder(site.directory).filter((path) => /lock|\.pid$|\.sock$|broker/.test(path)),
      []
    )
    await site.finish()
  })

  it("leaves no NATS server and no worker when it is killed with -9, and starts again on what it left", async () => {
    const site = await startTestSite("soft:1")
    const busy = site.attach(example("keep_busy"))
    await busy.says("running")
    // The program's worker and the pool's.
    await until("the pool is full again", () => site.workers().length === 2)
    const natsAndWorkers = [...site.processes(/nats-server -a/), ...site.workers()]
    assert.lengthOf(natsAndWorkers, 3)
    process.kill(site.up.pid, "SIGKILL")
    await until("they are gone", () => natsAndWorkers.every((pid) => !isAlive(pid)))
    const { code, stderr, stdout } = await busy.outcome
    assert.match(stdout, /^running\nerror \d+\n$/)
    assert.equal(code, 3)
    assert.match(stderr, /^juice: the connection to the worker .*: start the program again$/m)
    await until("nothing is left", () => site.remains().processes.length === 0)
    site.discard()

    const port = Number(new URL(site.nats).port)
    const again = await startTestSite("soft:1", [], { directory: site.directory, port })
    assert.equal((await again.ended(await busy.session)).reason, "host-lost")
    await again.untilFree(1)
    const next = await again.attach(example("saxpy_and_dot"), ["100"]).outcome
    assert.equal(next.code, 0, next.stderr)
    await again.finish()
  })
})

describe("the demo", () => {
  it("tells its story on a GPU of this machine or a software one, and leaves nothing", async () => {
    const bundled = join(projectRoot(), "dist/demo.js")
    const source = ["--import", "tsx", join(projectRoot(), "src/demo/main.ts")]
    const temporary = mkdtempSync(join(tmpdir(), "juice-demo-test-"))
    const env = { ...plainEnvironment(temporary), TMPDIR: temporary, XDG_RUNTIME_DIR: temporary }
    const { code, stderr, stdout } = await run(process.execPath, existsSync(bundled) ? [bundled] : source, { env })
    assert.equal(code, 0, `${stdout}${stderr}`)
    assert.equal(stderr, "")
    const story = [
      /NATS with JetStream, a router and a host are up\. GPU: \S/,
      /(?:the software GPU stands in|This is the real GPU)/,
      /juice attach -- .*saxpy_and_dot/,
      /saxpy_and_dot: ok on .*, 0 differ from the CPU/,
      /joined with .* at 127\.0\.0\.1:\d+/,
      /asked for 1 GPU/,
      /is ready for it/,
      /process 1 runs on the GPU/,
      /process 1 left in order with exit code 0; \d+ calls, 2 launches/,
      /ended: the program ended/,
      /Stopped: no process and no file is left/
    ]
    let rest = stdout
    for (const chapter of story) {
      assert.match(rest, chapter)
      rest = rest.slice(rest.search(chapter))
    }
    assert.deepEqual(processesMarked(temporary).map(commandLine), [])
    assert.deepEqual(filesUnder(temporary), [])
    rmSync(temporary, { recursive: true })
  })
})

/**
 * Services that are not there, do not answer, or vanish: what the user is told, how fast, and what the log says once
 * they are back. NATS and the router run apart from the hosts.
 */
import { createServer, type Server } from "node:net"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { type Outcome, plainEnvironment, type Service, startService, startSite } from "../../src/demo/site.ts"
import { type Event, example, type LoggedEvent, startTestSite, type TestSite } from "./harness.ts"
import { commandLine, isAlive, processesMarked, until } from "./processes.ts"

/** What a user may have to wait for a sentence (ms). */
const PATIENCE = 15_000

let site: TestSite
const hosts = new Map<string, Service>()
beforeAll(async () => {
  site = await startTestSite("none")
})
afterAll(async () => {
  for (const host of hosts.values()) await host.stop()
  await site?.finish()
})

/** A host of one software GPU that only sessions with its own label get. */
const startHost = async (name: string, flags: ReadonlyArray<string> = []): Promise<Service> => {
  const own = ["--name", name, "--label", `which=${name}`, "--data-dir", join(site.directory, `host-${name}`)]
  const host = await startService(["host", "--gpus", "soft:1", "--pool", "0", ...own, ...flags], site.env, /offers/)
  hosts.set(name, host)
  await until(`${name} is listed`, async () =>
    (await site.hosts()).some((view) => view.host === name && view.state === "up")
  )
  return host
}
const stopHost = async (name: string): Promise<void> => {
  await hosts.get(name)?.stop()
  hosts.delete(name)
}

/** It failed in time, with this code and one sentence on stderr that matches. */
const failed = (outcome: Outcome, code: number, sentence: RegExp) => {
  assert.equal(outcome.code, code, outcome.stderr)
  assert.equal(outcome.stdout, "")
  assert.match(outcome.stderr, /^juice: [^\n]+\n$/)
  assert.match(outcome.stderr, sentence)
  assert.isBelow(outcome.milliseconds, PATIENCE)
}

const listen = (server: Server, address: string, port = 0): Promise<number> =>
  new Promise((resolve, reject) => {
    server.once("error", reject)
    server.listen(port, address, () => resolve((server.address() as { readonly port: number }).port))
  })

describe("without a service, juice says so in one sentence, with the cure", () => {
  it.concurrent("when no NATS server listens there", async () => {
    for (const words of [
      ["attach", "true"],
      ["hosts"],
      ["sessions"],
      ["events"],
      ["host", "--gpus", "none"],
      ["router"]
    ]) {
      const outcome = await site.juice([words[0]!, "--nats", "nats://127.0.0.1:1", ...words.slice(1)])
      if (words[0] === "host" || words[0] === "router") assert.match(outcome.stderr, /no NATS server answers/)
      else failed(outcome, 69, /no NATS server answers at nats:\/\/127\.0\.0\.1:1 .*juice up.*--nats/)
    }
  })

  it.concurrent("when the server's name is wrong", async () => {
    const outcome = await site.juice(["attach", "--nats", "nats://no-such-host.invalid:4222", "true"])
    failed(outcome, 69, /no NATS server answers at nats:\/\/no-such-host\.invalid:4222 .*juice up.*--nats/)
  })

  it.concurrent("when something else listens there, silent or of another kind", async () => {
    const silent = createServer(() => {})
    const web = createServer((socket) => {
      socket.on("error", () => {})
      socket.end("HTTP/1.1 400 Bad Request\r\n\r\n")
    })
    const ports = [await listen(silent, "127.0.0.1"), await listen(web, "127.0.0.1")]
    const outcomes = await Promise.all(
      ports.map((port) => site.juice(["attach", "--nats", `nats://127.0.0.1:${port}`, "true"]))
    )
    silent.close()
    web.close()
    for (const outcome of outcomes) failed(outcome, 69, /no NATS server answers at .*juice up.*--nats/)
  })

  it.concurrent("when no router serves the site", async () => {
    const outcome = await site.juice(["attach", "--site", "elsewhere", "true"])
    failed(outcome, 69, /no router serves the site "elsewhere": .*juice router.*--site/)
  })

  it.concurrent("when the site has no host, and when no host has a GPU", async () => {
    const env = plainEnvironment(site.directory)
    const router = await startService(["router", "--site", "lonely", "--nats", site.nats], env, /leading/)
    failed(await site.juice(["attach", "--site", "lonely", "true"]), 75, /"lonely" has no GPU host: .*juice host/)
    assert.equal(await router.stop("SIGTERM"), 0)
    failed(await site.juice(["attach", "true"]), 75, /no host can give the GPUs.*--wait/)
  })
})

describe("a host that is taken", () => {
  it("refuses at once, or after the wait, with exit code 75", async () => {
    await startHost("full")
    const own = ["--label", "which=full"]
    const holder = site.attach(example("keep_busy"), [], { flags: own })
    await holder.says("running")
    failed(await site.juice(["attach", ...own, "true"]), 75, /no host can give the GPUs asked for now .*--wait/)
    failed(await site.juice(["attach", ...own, "--wait", "1", "true"]), 75, /no GPU became free within 1 s: .*--wait/)
    const patient = site.juice(["attach", ...own, "--wait", "60", "--", "sh", "-c", "exit 5"])
    await until("it waits", () => site.events().filter(({ _tag }) => _tag === "SessionQueued").length === 2)
    holder.child.kill("SIGUSR1")
    assert.equal((await holder.outcome).code, 0)
    assert.equal((await patient).code, 5)
    await stopHost("full")
  })
})

describe("a host that vanishes before the program runs", () => {
  it.concurrent("between placement and connection", async () => {
    // The site knows it, but where it says it is nobody listens.
    await startHost("gone", ["--advertise", "127.0.0.2"])
    const outcome = await site.juice(["attach", "--label", "which=gone", "true"])
    failed(outcome, 75, /the GPU host "gone" at 127\.0\.0\.2:\d+ vanished: see `juice hosts`/)
    await stopHost("gone")
  })

  it.concurrent("and takes connections without a word", async () => {
    await startHost("mute", ["--advertise", "127.0.0.3"])
    const endpoint = (await site.hosts()).find(({ host }) => host === "mute")!.endpoint
    const silent = createServer((socket) => socket.on("error", () => {}))
    await listen(silent, "127.0.0.3", endpoint.port)
    const outcome = await site.juice(["attach", "--label", "which=mute", "true"])
    silent.close()
    failed(outcome, 75, /the GPU host "mute" at 127\.0\.0\.3:\d+ vanished: see `juice hosts`/)
    await stopHost("mute")
  })

  it.concurrent("and is placed on again once it answers again", async () => {
    const host = await startHost("frozen")
    const own = ["--label", "which=frozen"]
    process.kill(host.pid, "SIGSTOP")
    const outcome = await site.juice(["attach", ...own, "true"])
    process.kill(host.pid, "SIGCONT")
    // On a slow machine the router has found out by itself before the request comes.
    failed(outcome, 75, /the GPU host "frozen" vanished: see `juice hosts`|1 of \d+: silent/)
    const again = await site.juice(["attach", ...own, "--wait", "30", "--", example("saxpy_and_dot"), "100"])
    assert.equal(again.code, 0, again.stderr)
    await stopHost("frozen")
  })
})

describe("a host that vanishes while the program runs", () => {
  it("kill -9 of the host ends its workers; the program gets a CUDA error and the user a sentence", async () => {
    const own = ["--label", "which=doomed"]
    const host = await startHost("doomed")
    const orphan = site.attach(example("keep_busy"), [], { flags: own })
    await orphan.says("running")
    const session = await orphan.session
    process.kill(host.pid, "SIGKILL")
    const { code, stderr, stdout } = await orphan.outcome
    assert.match(stdout, /^running\nerror \d+\n$/)
    assert.equal(code, 3)
    assert.match(stderr, /^juice: the connection to the worker .*: start the program again$/m)
    await until("its workers are gone", () => site.workers().length === 0)
    // Nobody can say that the session is over until the host is back.
    assert.isUndefined(ending(site.events(), session))

    await startHost("doomed")
    assert.equal((await site.ended(session)).reason, "host-lost")
    const [gpu] = (await site.hosts()).find((view) => view.host === "doomed")!.gpus
    assert.deepEqual([gpu!.reserved, gpu!.sessions], [0, 0])
    const again = await site.juice(["attach", ...own, "--", example("saxpy_and_dot"), "100"])
    assert.equal(again.code, 0, again.stderr)
    await stopHost("doomed")
  })

  it("SIGTERM has the host end in order: its sessions end with it and the log says that it left", async () => {
    const host = await startHost("leaving", ["--drain-timeout", "0"])
    const orphan = site.attach(example("keep_busy"), [], { flags: ["--label", "which=leaving"] })
    await orphan.says("running")
    hosts.delete("leaving")
    assert.equal(await host.stop("SIGTERM"), 0, host.output())
    const { code, stderr, stdout } = await orphan.outcome
    assert.match(stdout, /^running\nerror \d+\n$/)
    assert.equal(code, 3)
    assert.match(stderr, /^juice: .*the host is shutting down.*$/m)
    const { processes, reason } = await site.ended(await orphan.session)
    assert.equal(reason, "host-left")
    assert.deepEqual(
      processes.map(({ reason }) => reason),
      ["host-left"]
    )
    await until("it has left", () => site.events().some(({ _tag, host }) => _tag === "HostLeft" && host === "leaving"))
  })
})

const ending = (events: ReadonlyArray<Event>, session: string): Event | undefined =>
  events.find((event) => event._tag === "SessionEnded" && event.session === session)

describe("a site that vanishes while a program runs", () => {
  it("is not missed by the program, and learns the rest of the story when it is back", async () => {
    const before = await startSite("none")
    const host = await startService(
      ["host", "--gpus", "soft:1", "--name", "steady", "--data-dir", join(before.directory, "steady")],
      before.env,
      /offers/
    )
    const running = before.begin(["attach", "--wait", "30", "--", example("keep_busy")])
    await until("it runs", () => running.stdout().includes("running"))

    const nats = processesMarked(before.directory).filter((pid) => commandLine(pid).includes("nats-server -a"))
    assert.lengthOf(nats, 1)
    process.kill(before.up.pid, "SIGKILL")
    await until("NATS is gone with it", () => nats.every((pid) => !isAlive(pid)))
    failed(await before.juice(["attach", "true"]), 69, /no NATS server answers at .*juice up/)
    assert.isTrue(isAlive(host.pid))
    running.child.kill("SIGUSR1")
    const { code, stderr, stdout } = await running.outcome
    assert.match(stdout, /^running\nok, \d+ launches\n$/, stderr)
    assert.equal(code, 0)

    const place = { directory: before.directory, port: Number(new URL(before.nats).port) }
    const after = await startSite("none", { place })
    const told = await until("the log has the session's end", async () => {
      const { stdout } = await after.juice(["events", "--json"])
      const events = stdout.trimEnd().split("\n")
      const found = events.map((line) => (JSON.parse(line) as LoggedEvent).event)
      return found.some(({ _tag }) => _tag === "SessionEnded") ? found : undefined
    })
    assert.equal(told.find(({ _tag }) => _tag === "SessionEnded")!.reason, "client-exit")
    assert.deepEqual(told.find(({ _tag }) => _tag === "ProcessEnded")!.exit, { code: 0 })
    const again = await after.juice(["attach", "--wait", "30", "--", example("saxpy_and_dot"), "100"])
    assert.equal(again.code, 0, again.stderr)
    assert.equal(await host.stop(), 0)
    assert.equal(await after.stop(), 0)
  })
})

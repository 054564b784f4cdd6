/** What dies, what goes on, what is left, and what the log says of it: on one machine with one kill -9 after another. */
import { existsSync } from "node:fs"
import { afterAll, afterEach, assert, beforeAll, describe, it } from "vitest"
import { type Attached, example, startTestSite, type TestSite } from "./harness.ts"
import { isAlive, processesMarked, until } from "./processes.ts"

let site: TestSite
// No ready workers: every worker there is belongs to a session.
beforeAll(async () => {
  site = await startTestSite("soft:2", ["--pool", "0"])
})
afterAll(() => site?.finish())
afterEach(() => site.untilFree())

const gpu = (index: number): string => site.events().find(({ _tag }) => _tag === "HostJoined")!.gpus![index]!.uuid

const busy = async (flags: ReadonlyArray<string> = []): Promise<Attached> => {
  const attached = site.attach(example("keep_busy"), [], { flags })
  await attached.says("running")
  return attached
}

/** Has a keep_busy end in order, and compares what its kernels left with what they should have. */
const endsWell = async (attached: Attached) => {
  attached.child.kill("SIGUSR1")
  const { code, stderr, stdout } = await attached.outcome
  assert.match(stdout, /^running\nok, \d+ launches\n$/, stderr)
  assert.equal(code, 0)
  const { processes, reason } = await site.ended(await attached.session)
  assert.equal(reason, "client-exit")
  assert.deepEqual(
    processes.map(({ error, exit, reason }) => [reason, exit, error]),
    [["exit", { code: 0 }, undefined]]
  )
}

const launchesOf = (text: string): number => Number(/(\d+) launches/.exec(text)?.[1] ?? 0)

describe("a kernel that faults", () => {
  const programs = ["fault", "faulting_kernel_static"].filter((name) => existsSync(example(name)))

  it.each(programs)("gives %s error 700 as a local GPU would, and disturbs nobody on any GPU", async (name) => {
    const share = ["--vram", "64M", "--gpu-uuid", gpu(0)]
    const neighbours = await Promise.all([busy(share), busy(["--gpu-uuid", gpu(1)])])
    const faulty = site.attach(example(name), [], { flags: share })
    const { code, stderr, stdout } = await faulty.outcome
    assert.match(stdout, /launch 0, synchronise 700, later allocation 700/, stderr)
    assert.equal(code, 0)
    // Said once, by Juice, beside what the program makes of it.
    assert.match(stderr, /CUDA_ERROR_ILLEGAL_ADDRESS/)

    const { processes, reason } = await site.ended(await faulty.session)
    assert.equal(reason, "client-exit")
    assert.deepEqual(
      processes.map(({ error, exit, reason }) => [reason, exit, error]),
      [["error", { code: 0 }, { code: 700, name: "CUDA_ERROR_ILLEGAL_ADDRESS" }]]
    )
    for (const neighbour of neighbours) await endsWell(neighbour)
  })
})

describe("kill -9", () => {
  it("of the program frees its GPU, and the log says that it was killed", async () => {
    const killed = await busy()
    process.kill(await killed.program(), "SIGKILL")
    const { signal } = await killed.outcome
    assert.equal(signal, "SIGKILL")
    const { processes, reason } = await site.ended(await killed.session)
    assert.equal(reason, "client-exit")
    assert.deepEqual(
      processes.map(({ exit, reason }) => [reason, exit]),
      [["killed", { signal: "SIGKILL" }]]
    )
    // The figures of a killed program are not lost.
    assert.isAbove(processes[0]!.usage!.launches, 0)
    assert.isAtLeast(processes[0]!.usage!.peakMemory, 16 * 2 ** 20)
  })

  it("of one process of a program frees that process's worker, and the rest goes on", async () => {
    const script = `${example("keep_busy")} & first=$!; ${example("keep_busy")} & echo "first $first"; wait`
    const both = site.attach("sh", ["-c", script])
    await until("both run", () => both.stdout().split("running").length === 3)
    assert.lengthOf(site.workers(), 2)
    process.kill(Number(/first (\d+)/.exec(both.stdout())![1]), "SIGKILL")
    await until("one worker is left", () => site.workers().length === 1)
    const session = await both.session
    await until("the log says so", () =>
      site.events().some((event) => event._tag === "ProcessEnded" && event.session === session)
    )
    both.child.kill("SIGUSR1")
    await both.outcome
    const { processes } = await site.ended(session)
    assert.equal(processes[0]!.reason, "killed")
    assert.lengthOf(processes, 2)
  })

  it("of juice attach takes the program with it, and what the program has started", async () => {
    const killed = site.attach("sh", ["-c", `${example("keep_busy")} & ${example("keep_busy")}; true`])
    await until("both run", () => killed.stdout().split("running").length === 3)
    const program = await killed.program()
    killed.child.kill("SIGKILL")
    await until("the program is gone", () => !isAlive(program))
    const { processes, reason } = await site.ended(await killed.session)
    assert.equal(reason, "client-lost")
    assert.deepEqual(
      processes.map(({ reason }) => reason),
      ["session-ended", "session-ended"]
    )
    await until("its grandchildren have been told", () =>
      processesMarked(example("keep_busy")).every((pid) => !isAlive(pid))
    )
  })

  it("of juice attach alone with its program is a client's exit in the log", async () => {
    const killed = await busy()
    const program = await killed.program()
    killed.child.kill("SIGKILL")
    await until("the program is gone", () => !isAlive(program))
    const { processes, reason } = await site.ended(await killed.session)
    assert.equal(reason, "client-exit")
    assert.lengthOf(processes, 1)
    assert.include(["client-lost", "killed"], processes[0]!.reason)

    // What a killed attach could not remove, a later one does once it is sure.
    const sockets = site.remains().files.filter((path) => path.endsWith("/broker"))
    assert.isAbove(sockets.length, 0)
    site.age()
    await until("a later attach has removed them", async () => {
      assert.equal((await site.juice(["attach", "true"])).code, 0)
      return site.remains().files.length === 0
    })
  })

  it("of the worker gives the program a CUDA error and a sentence, and the log says that it crashed", async () => {
    const orphan = await busy()
    const [worker] = site.workers()
    const neighbour = await busy()
    process.kill(worker!, "SIGKILL")
    const { code, stderr, stdout } = await orphan.outcome
    assert.match(stdout, /error \d+\n$/)
    assert.equal(code, 3)
    assert.match(stderr, /^juice: .*worker.*\n$/m)
    const { processes, reason } = await site.ended(await orphan.session)
    assert.equal(reason, "client-exit")
    assert.deepEqual(
      processes.map(({ exit, reason }) => [reason, exit]),
      [["worker-crashed", { code: 3 }]]
    )
    await endsWell(neighbour)
    assert.isAbove(launchesOf(neighbour.stdout()), 0)
  })
})

/** Unmodified CUDA programs through the whole chain: NATS, router, host, link, worker, software GPU. */
import { existsSync, readFileSync } from "node:fs"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { crc32, inflateSync } from "node:zlib"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { cudaExamples, missingOn } from "../../src/demo/examples.ts"
import { example, startTestSite, type TestSite } from "./harness.ts"
import { mappedFiles } from "./processes.ts"

const EXAMPLES = cudaExamples()
const BUILT = EXAMPLES.filter((name) => existsSync(example(`${name}_shared`)))
if (BUILT.length < EXAMPLES.length) {
  const left = EXAMPLES.filter((name) => !BUILT.includes(name))
  process.stderr.write(`\n*** LEFT OUT, for they were not built (no nvcc?): ${left.join(", ")} ***\n\n`)
}
/** On a host with software GPUs a program needs what the shim can and what they can. */
const missingHere = (name: string) => missingOn(name, "attach", "softgpu")

let site: TestSite
let scratch: string
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), "juice-programs-"))
  site = await startTestSite("soft:2")
})
afterAll(async () => {
  await rm(scratch, { recursive: true, force: true })
  await site?.finish()
})

/** A PNG's width and height, once every chunk's checksum and the amount of its pixels are right. */
const pngSize = (file: Buffer): { readonly width: number; readonly height: number } => {
  assert.deepEqual([...file.subarray(0, 8)], [137, 80, 78, 71, 13, 10, 26, 10], "the signature")
  const chunks: Array<{ readonly type: string; readonly data: Buffer }> = []
  for (let at = 8; at < file.length; ) {
    const length = file.readUInt32BE(at)
    const body = file.subarray(at + 4, at + 8 + length)
    assert.equal(file.readUInt32BE(at + 8 + length), crc32(body), "a chunk's checksum")
    chunks.push({ type: body.subarray(0, 4).toString("latin1"), data: body.subarray(4) })
    at += length + 12
  }
  assert.equal(chunks[0]?.type, "IHDR")
  assert.equal(chunks.at(-1)?.type, "IEND")
  const header = chunks[0]!.data
  const [width, height, depth, colour] = [header.readUInt32BE(0), header.readUInt32BE(4), header[8]!, header[9]!]
  const samples = { 0: 1, 2: 3, 6: 4 }[colour]!
  const pixels = inflateSync(Buffer.concat(chunks.filter(({ type }) => type === "IDAT").map(({ data }) => data)))
  assert.equal(pixels.length, height * (1 + (width * samples * depth) / 8))
  return { width, height }
}

describe("programs with a GPU that is elsewhere", () => {
  // Two builds of each, so that both runtime libraries and both levels of optimisation are met.
  it.each([
    ["saxpy_and_dot", "saxpy_and_dot"],
    ...BUILT.filter((name) => missingHere(name) === undefined).map((name) => [`${name}_shared`, `${name}_debug_static`])
  ])("%s computes what the CPU does, and so does %s when every call waits", async (name, other) => {
    const png = join(scratch, `${name}.png`)
    const args = name!.startsWith("mandelbrot") ? [png] : []
    const attached = await site.attach(example(name!), args).outcome
    assert.equal(attached.code, 0, `${attached.stdout}${attached.stderr}`)
    assert.match(attached.stdout, /^\w+: ok\b.*\n$/)
    if (args.length > 0) assert.deepEqual(pngSize(readFileSync(png)), { width: 320, height: 240 })
    const strict = await site.attach(example(other!), args, { env: { JUICE_STRICT: "1" } }).outcome
    assert.equal(strict.code, 0, `${strict.stdout}${strict.stderr}`)
    assert.match(strict.stdout, /^\w+: ok\b.*\n$/)
  })

  it.each(BUILT.filter((name) => missingHere(name) !== undefined))(
    "%s is still expected to fail: examples/programs.json says why",
    async (name) => {
      const { error, why } = missingHere(name)!
      const { code, stderr, stdout } = await site.attach(example(`${name}_shared`)).outcome
      assert.match(stdout + stderr, new RegExp(error), `it was to fail, because ${why}`)
      assert.notEqual(code, 0)
    }
  )

  it("run with no other CUDA driver in the process than Juice's", async () => {
    const busy = site.attach(example("keep_busy"))
    await busy.says("running")
    const drivers = mappedFiles(await busy.program()).filter((path) => /libcuda|nvidia/.test(path))
    busy.child.kill("SIGUSR1")
    const { code, stdout } = await busy.outcome
    assert.equal(code, 0, stdout)
    assert.match(stdout, /^running\nok, \d+ launches\n$/)
    assert.lengthOf(drivers, 1)
    assert.match(drivers[0]!, /\/shim\/libcuda\.so\.1$/)
  })

  it.each(["", "1"])(
    "launch from eight threads at once, each on a stream of its own (JUICE_STRICT=%s)",
    async (strict) => {
      const { code, stderr, stdout } = await site.attach(example("threads"), [], { env: { JUICE_STRICT: strict } })
        .outcome
      assert.equal(stdout, "threads: ok, 8 threads x 20 rounds, 0 values differ from the CPU\n", stderr)
      assert.equal(code, 0)
    }
  )

  it("fork before they use CUDA: each process has a worker of its own", async () => {
    const forks = site.attach(example("forks"), ["before"])
    const { code, stderr, stdout } = await forks.outcome
    assert.equal(stdout, "forks before: child 0, parent ok\n", stderr)
    assert.equal(code, 0)
    const { processes } = await site.ended(await forks.session)
    assert.deepEqual(
      processes.map(({ reason }) => reason),
      ["exit", "exit"]
    )
  })

  it("fork after they have used CUDA: the child is told that CUDA is not initialised, the parent goes on", async () => {
    const forks = site.attach(example("forks"), ["after"])
    const { code, stderr, stdout } = await forks.outcome
    assert.equal(stdout, "forks after: child 0, parent ok\n", stderr)
    assert.equal(code, 0)
    const { processes } = await site.ended(await forks.session)
    assert.deepEqual(
      processes.map(({ exit, reason }) => [reason, exit]),
      [["exit", { code: 0 }]]
    )
  })
})

describe("several sessions", () => {
  it("in a row each find the GPU free, without waiting", async () => {
    for (let round = 0; round < 3; round++) {
      const { code, stderr } = await site.attach(example("saxpy_and_dot"), ["1000"], { flags: ["--gpus", "2"] }).outcome
      assert.equal(code, 0, stderr)
    }
  })

  it("share one GPU at the same time, each within its own memory", async () => {
    const uuid = site.events().find(({ _tag }) => _tag === "HostJoined")!.gpus![0]!.uuid
    const share = ["--vram", "64M", "--gpu-uuid", uuid]
    const busy = site.attach(example("keep_busy"), ["16"], { flags: share })
    await busy.says("running")
    const [vectors, threads, greedy] = await Promise.all([
      site.attach(example("saxpy_and_dot"), [], { flags: share }).outcome,
      site.attach(example("threads"), ["5"], { flags: share }).outcome,
      site.attach(example("keep_busy"), ["100"], { flags: share }).outcome
    ])
    assert.equal(vectors.code, 0, vectors.stderr)
    assert.equal(threads.code, 0, threads.stderr)
    // CUDA_ERROR_OUT_OF_MEMORY: the GPU has a gigabyte, the share has not.
    assert.equal(greedy.stdout, "error 2\n", greedy.stderr)
    const [host] = await site.hosts()
    assert.deepEqual(
      host!.gpus.map(({ reserved, sessions }) => [reserved, sessions]),
      [
        [64 * 2 ** 20, 1],
        [0, 0]
      ]
    )
    busy.child.kill("SIGUSR1")
    assert.match((await busy.outcome).stdout, /ok, \d+ launches/)
  })

  it("leave every GPU free and only the pool's workers", async () => {
    await site.untilFree(2)
  })
})

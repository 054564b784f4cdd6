/** `juice soft`: programs on the software GPU in one process, and the wrapper's rules. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { juiceCommand, plainEnvironment, type RunOptions, run, start } from "../../src/demo/site.ts"
import { findNativeFiles } from "../../src/native/files.ts"
import { example } from "./harness.ts"
import { mappedFiles, programOf, until } from "./processes.ts"

let scratch: string
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), "juice-soft-"))
})
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

/** Nobody listens where this environment says that NATS is: the command must not care. */
const environment = (): NodeJS.ProcessEnv => ({ ...plainEnvironment(scratch), NATS_URL: "nats://127.0.0.1:1" })
const soft = (words: ReadonlyArray<string>, options: RunOptions = {}) =>
  run(juiceCommand(), ["soft", ...words], { ...options, env: { ...environment(), ...options.env } })

const printVariables = 'echo "$JUICE_SOFTGPU_DEVICES $JUICE_SOFTGPU_MEMORY $JUICE_SOFTGPU_WATCHDOG"'

describe("juice soft", () => {
  it("runs a CUDA program without a site, with the software GPU as its only driver", async () => {
    const { code, stderr, stdout } = await soft(["--", example("saxpy_and_dot"), "1000"])
    assert.equal(code, 0, stderr)
    assert.match(stdout, /^saxpy_and_dot: ok\b/)
    const busy = start(juiceCommand(), ["soft", example("keep_busy")], { env: environment() })
    await until("it runs", () => busy.stdout().includes("running"))
    const drivers = mappedFiles(await until("its pid", () => programOf(busy.pid))).filter((path) =>
      /libcuda\b/.test(path)
    )
    busy.child.kill("SIGUSR1")
    assert.match((await busy.outcome).stdout, /^running\nok, \d+ launches\n$/)
    assert.lengthOf(drivers, 1)
    assert.match(drivers[0]!, /\/softgpu\/libcuda\.so/)
  })

  it("gives each GPU the memory that was asked for", async () => {
    const greedy = await soft(["--memory", "64M", "--", example("keep_busy"), "100"])
    // CUDA_ERROR_OUT_OF_MEMORY
    assert.equal(greedy.stdout, "error 2\n", greedy.stderr)
    const none = await soft(["--gpus", "0", "--", example("saxpy_and_dot"), "100"])
    // CUDA_ERROR_NO_DEVICE
    assert.match(none.stdout + none.stderr, /\b100\b/)
    assert.equal(none.code, 1)
  })

  it("hands flags to the driver, over settings, over what the environment says to the driver itself", async () => {
    const given = await soft(["--gpus", "2", "--memory=2G", "--watchdog", "7", "sh", "-c", printVariables])
    assert.equal(given.stdout, "2 2147483648 7\n", given.stderr)
    const env = { JUICE_SOFT_GPUS: "3", JUICE_SOFTGPU_DEVICES: "4", JUICE_SOFTGPU_MEMORY: "5G" }
    const set = await soft(["--", "sh", "-c", printVariables], { env })
    assert.equal(set.stdout, "3 5G \n", set.stderr)
    const directory = dirname(findNativeFiles(environment()).softGpuDriver)
    const paths = await soft(["sh", "-c", 'echo "$LD_LIBRARY_PATH $TRITON_LIBCUDA_PATH"'], {
      env: { LD_LIBRARY_PATH: "/opt/lib" }
    })
    assert.equal(paths.stdout, `${directory}:/opt/lib ${directory}\n`)
  })

  it("passes standard input, output and error through, and nothing of its own", async () => {
    const input = "käse\n".repeat(50_000)
    const { code, stderr, stdout } = await soft(["--", "sh", "-c", "cat; echo aside >&2; exit 7"], { stdin: input })
    assert.equal(code, 7)
    assert.isTrue(stdout === input, `${stdout.length} characters came back of ${input.length}`)
    assert.equal(stderr, "aside\n")
  })

  it("takes everything from the first operand on as the program's", async () => {
    const own = ["--gpus", "9", "--", "--help", "a b"]
    const { stderr, stdout } = await soft(["sh", "-c", 'for word in "$@"; do echo "[$word]"; done', "sh", ...own])
    assert.equal(stdout, own.map((word) => `[${word}]\n`).join(""), stderr)
  })

  it("has a shell's codes for what cannot be run, and 2 for wrong usage", async () => {
    const text = join(scratch, "text")
    writeFileSync(text, "no program\n")
    chmodSync(text, 0o644)
    const cases: ReadonlyArray<readonly [ReadonlyArray<string>, number, RegExp]> = [
      [["--", join(scratch, "nothing")], 127, /no such program/],
      [["--", text], 126, /cannot be executed/],
      [[], 2, /which program/],
      [["--gpus", "some", "true"], 2, /gpus/],
      [["--vram", "1G", "true"], 2, /vram/]
    ]
    for (const [words, expected, sentence] of cases) {
      const { code, stderr, stdout } = await soft(words)
      assert.equal(code, expected, `${words.join(" ")}: ${stderr}`)
      assert.match(stderr, sentence, words.join(" "))
      assert.equal(stdout, "", words.join(" "))
    }
  })

  it("dies by the signal that its program died by, and gives the program those that it gets", async () => {
    const died = await soft(["--", "sh", "-c", "kill -SEGV $$"])
    assert.deepEqual([died.code, died.signal], [null, "SIGSEGV"])
    const script = "trap 'echo handled; exit 9' TERM; echo ready; while :; do sleep 0.02; done"
    const waiting = start(juiceCommand(), ["soft", "--", "sh", "-c", script], { env: environment() })
    await until("it is ready", () => waiting.stdout().includes("ready"))
    waiting.child.kill("SIGTERM")
    const { code, stdout } = await waiting.outcome
    assert.equal(stdout, "ready\nhandled\n")
    assert.equal(code, 9)
  })
})

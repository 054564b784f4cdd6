/** `juice attach` as a wrapper: streams, exit codes, signals and words are the program's own. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { example, startTestSite, type TestSite } from "./harness.ts"
import { isAlive, until } from "./processes.ts"

let site: TestSite
let scratch: string
beforeAll(async () => {
  scratch = mkdtempSync(join(tmpdir(), "juice-attach-"))
  site = await startTestSite("soft:1")
})
afterAll(async () => {
  rmSync(scratch, { recursive: true, force: true })
  await site?.finish()
})

describe("juice attach", () => {
  it("passes standard input, output and error through, and nothing of its own", async () => {
    const input = "käse\n".repeat(100_000)
    const { code, stderr, stdout } = await site.juice(["attach", "--", "sh", "-c", "cat; echo aside >&2"], {
      stdin: input
    })
    assert.equal(code, 0, stderr)
    assert.isTrue(stdout === input, `${stdout.length} characters came back of ${input.length}`)
    assert.equal(stderr, "aside\n")
  })

  it("ends with the program's exit code, that of a CUDA program included", async () => {
    assert.equal((await site.juice(["attach", "--", example("saxpy_and_dot"), "100"])).code, 0)
    assert.equal((await site.juice(["attach", "--", "sh", "-c", `${example("saxpy_and_dot")} 100 && exit 7`])).code, 7)
  })

  it("has a shell's codes for what cannot be run, and 2 for wrong usage", async () => {
    const text = join(scratch, "text")
    writeFileSync(text, "no program\n")
    chmodSync(text, 0o644)
    const cases: ReadonlyArray<readonly [ReadonlyArray<string>, number, RegExp]> = [
      [["attach", "--", join(scratch, "nothing")], 127, /no such program/],
      [["attach", "--", "no-such-program-anywhere"], 127, /no such program/],
      [["attach", "--", text], 126, /cannot be executed/],
      [["attach", "--", scratch], 126, /cannot be executed.*directory/],
      [["attach"], 2, /which program/],
      [["attach", "--gpus", "some", "true"], 2, /gpus/],
      [["attach", "--no-such-flag", "true"], 2, /no-such-flag/]
    ]
    for (const [words, expected, sentence] of cases) {
      const { code, stderr, stdout } = await site.juice(words)
      assert.equal(code, expected, `${words.join(" ")}: ${stderr}`)
      assert.match(stderr, sentence, words.join(" "))
      assert.equal(stdout, "", words.join(" "))
    }
  })

  it("takes everything from the first operand on as the program's, with -- and without", async () => {
    const own = ["--gpus", "9", "-v", "--", "--help", "--json", "a b"]
    const script = 'for word in "$@"; do echo "[$word]"; done'
    for (const words of [["--"], ["--verbose", "--gpus", "1"], []]) {
      const { code, stderr, stdout } = await site.juice(["attach", ...words, "sh", "-c", script, "sh", ...own])
      assert.equal(code, 0, stderr)
      assert.equal(stdout, own.map((word) => `[${word}]\n`).join(""))
    }
  })

  it("dies by the signal that its program died by", async () => {
    for (const signal of ["KILL", "SEGV", "TERM"]) {
      const outcome = await site.juice(["attach", "--", "sh", "-c", `kill -${signal} $$`])
      assert.deepEqual([outcome.code, outcome.signal], [null, `SIG${signal}`], outcome.stderr)
    }
  })

  it("gives the signals that it gets to its program, which may handle them", async () => {
    for (const signal of ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1"] as const) {
      const script = `trap 'echo handled; exit 9' ${signal.slice(3)}; echo ready; while :; do sleep 0.02; done`
      const waiting = site.attach("sh", ["-c", script])
      await waiting.says("ready")
      waiting.child.kill(signal)
      const { code, stdout } = await waiting.outcome
      assert.equal(stdout, "ready\nhandled\n", signal)
      assert.equal(code, 9, signal)
    }
  })

  it("leaves no process of a program's that a signal to it has ended", async () => {
    const busy = site.attach("sh", ["-c", `${example("keep_busy")}; exit 1`])
    await busy.says("running")
    const shell = await busy.program()
    busy.child.kill("SIGTERM")
    const { signal } = await busy.outcome
    assert.equal(signal, "SIGTERM")
    await until("the shell is gone", () => !isAlive(shell))
    const { reason } = await site.ended(await busy.session)
    assert.equal(reason, "client-exit")
    await until("only the pool's worker is left", () => site.workers().length === 1)
    assert.deepEqual(
      site.remains().processes.filter((line) => line.includes("keep_busy")),
      []
    )
  })

  it("finds its server and site by flags over variables", async () => {
    const wrong = { JUICE_NATS: "nats://127.0.0.1:1", JUICE_SITE: "nowhere" }
    const words = ["attach", "--nats", site.nats, "--site", "local", "--", "true"]
    assert.equal((await site.juice(words, { env: wrong })).code, 0)
    const { code, stderr } = await site.juice(["attach", "--", "true"], { env: wrong })
    assert.equal(code, 69)
    assert.match(stderr, /127\.0\.0\.1:1/)
  })
})

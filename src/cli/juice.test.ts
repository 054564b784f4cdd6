/** The command as users start it: its words, its exit codes, and which stream says what. */
import { spawn } from "node:child_process"
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { build } from "esbuild"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { VALUE_FLAGS } from "./argv.ts"

const folder = mkdtempSync(join(tmpdir(), "juice-command-"))
const bundle = join(folder, "juice.mjs")
// As one file, as it is shipped: it starts in a fraction of the time that the sources take.
beforeAll(() =>
  build({
    entryPoints: [fileURLToPath(new URL("main.ts", import.meta.url))],
    outfile: bundle,
    bundle: true,
    platform: "node",
    format: "esm",
    external: ["esbuild"],
    logLevel: "error",
    banner: {
      js: 'import { createRequire as makeRequire } from "node:module"; const require = makeRequire(import.meta.url);'
    }
  })
)
afterAll(() => rmSync(folder, { recursive: true }))

/** Nobody listens on port 1 of the loopback. */
const NOBODY = "nats://127.0.0.1:1"

const juice = (
  words: ReadonlyArray<string>,
  env: NodeJS.ProcessEnv = {}
): Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [bundle, ...words], {
      env: { PATH: process.env.PATH, HOME: folder, ...env },
      stdio: ["ignore", "pipe", "pipe"]
    })
    const texts = { stdout: "", stderr: "" }
    child.stdout.on("data", (data) => {
      texts.stdout += data
    })
    child.stderr.on("data", (data) => {
      texts.stderr += data
    })
    child.on("error", reject)
    child.on("close", (code) => resolve({ code, ...texts }))
  })

describe("the juice command", () => {
  it("shows its subcommands in groups", async () => {
    const { code, stderr, stdout } = await juice([])
    assert.equal(code, 0)
    assert.equal(stderr, "")
    for (const word of ["RUN PROGRAMS", "attach", "soft", "SERVE", "up", "router", "LOOK", "events"])
      assert.include(stdout, word)
  })

  it("gives each subcommand a help with an example", async () => {
    for (const name of ["up", "router", "host", "attach", "soft", "hosts", "sessions", "events"]) {
      const { code, stdout } = await juice([name, "--help"])
      assert.equal(code, 0)
      assert.include(stdout, "EXAMPLES")
      assert.include(stdout, `juice ${name}`)
    }
  })

  it("tells wrong usage on stderr, with exit code 2, and keeps stdout clean", async () => {
    for (const words of [
      ["hosst"],
      ["hosts", "--jso"],
      ["attach", "--gpus", "many", "true"],
      ["attach"],
      ["soft"],
      ["soft", "--gpus", "65", "true"],
      ["soft", "--memory", "much", "true"],
      ["soft", "--watchdog=-1", "true"]
    ]) {
      const { code, stderr, stdout } = await juice(words)
      assert.equal(code, 2, words.join(" "))
      assert.equal(stdout, "", words.join(" "))
      assert.match(stderr, /^juice: /, words.join(" "))
    }
  })

  it.each(Object.keys(VALUE_FLAGS))("knows which flags of %s take a value", async (name) => {
    const { stdout } = await juice([name, "--help"])
    const flags = [...stdout.matchAll(/^ {2}(--[a-z-]+)[ ,].*$/gm)]
    const withValue = flags.filter(([line]) => /^ {2}--[a-z-]+ \S/.test(line.replace(/, -\w/, "")))
    assert.sameMembers(
      withValue.filter(([line]) => !/^ {2}--[a-z-]+ {2,}/.test(line.replace(/, -\w/, ""))).map(([, flag]) => flag!),
      [...VALUE_FLAGS[name]!]
    )
  })

  it("finds out that a program does not exist or cannot run before it asks for a GPU", async () => {
    const plain = join(folder, "plain")
    writeFileSync(plain, "")
    chmodSync(plain, 0o644)
    assert.equal((await juice(["attach", "--nats", NOBODY, "--", "no-such-program"])).code, 127)
    assert.equal((await juice(["attach", "--nats", NOBODY, "--", plain])).code, 126)
    assert.equal((await juice(["attach", "--nats", NOBODY, "--", folder])).code, 126)
  })

  it("says in one sentence that no NATS server answers, where, and what to do", async () => {
    const { code, stderr, stdout } = await juice(["hosts", "--nats", NOBODY, "--json"])
    assert.equal(code, 69)
    assert.equal(stdout, "")
    assert.match(stderr, /^juice: no NATS server answers at nats:\/\/127\.0\.0\.1:1 .*juice up.*\n$/)
  })

  it("takes the server from JUICE_NATS, else NATS_URL, and a flag over both", async () => {
    const asked = async (words: ReadonlyArray<string>, env: NodeJS.ProcessEnv) =>
      /answers at nats:\/\/127\.0\.0\.1:(\d)/.exec((await juice(["hosts", ...words], env)).stderr)?.[1]
    assert.equal(await asked([], { NATS_URL: "nats://127.0.0.1:2" }), "2")
    assert.equal(await asked([], { NATS_URL: "nats://127.0.0.1:2", JUICE_NATS: "nats://127.0.0.1:3" }), "3")
    assert.equal(await asked(["--nats", "nats://127.0.0.1:4"], { JUICE_NATS: "nats://127.0.0.1:3" }), "4")
  })

  it("explains a setting that is wrong", async () => {
    const { code, stderr } = await juice(["attach", "true"], { JUICE_ATTACH_WAIT: "soon" })
    assert.equal(code, 2)
    assert.match(stderr, /wait/)
  })

  it("says how to get a nats-server where there is none", async () => {
    const { stderr } = await juice(["up", "--nats-server", "/no/such/nats-server"])
    assert.match(stderr, /nats-server was not found .*apt-get install nats-server/)
  })
})

/**
 * A whole site as its user starts it: one `juice up` on free ports and a temporary folder, and commands run
 * against it. The demo, the end-to-end tests and the GPU tests all stand on this.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { existsSync } from "node:fs"
import { mkdtemp, rm } from "node:fs/promises"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

/** Where the project or the bundle is unpacked: the nearest folder above with a `bin/juice` or a `juice`. */
export const projectRoot = (): string => {
  for (let at = dirname(fileURLToPath(import.meta.url)); ; at = dirname(at)) {
    if (existsSync(join(at, "bin/juice")) || existsSync(join(at, "juice"))) return at
    if (at === dirname(at)) throw new Error("this copy of Juice is incomplete: bin/juice is missing")
  }
}

export const juiceCommand = (): string => process.env.JUICE_COMMAND ?? join(projectRoot(), "bin/juice")

export const examplesDirectory = (): string =>
  process.env.JUICE_EXAMPLES_DIR ??
  join(process.env.JUICE_NATIVE_DIR ?? join(projectRoot(), "build/release"), "examples")

export interface Outcome {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
  readonly milliseconds: number
}

export interface RunOptions {
  readonly env?: NodeJS.ProcessEnv
  readonly cwd?: string
  /** Kill -9 after this long; a run that is killed so has signal SIGKILL. */
  readonly timeoutMs?: number
  readonly onSpawn?: (child: ChildProcess) => void
}

/** Runs one command to its end and collects what it wrote. */
export const run = (command: string, args: ReadonlyArray<string>, options: RunOptions = {}): Promise<Outcome> =>
  new Promise((resolve, reject) => {
    const started = performance.now()
    const child = spawn(command, args, {
      env: options.env ?? process.env,
      cwd: options.cwd,
      stdio: ["ignore", "pipe", "pipe"]
    })
    let stdout = ""
    let stderr = ""
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout += text
    })
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text
    })
    const timer = setTimeout(() => child.kill("SIGKILL"), options.timeoutMs ?? 120_000)
    child.on("error", reject)
    child.on("close", (code, signal) => {
      clearTimeout(timer)
      resolve({ code, signal, stdout, stderr, milliseconds: performance.now() - started })
    })
    options.onSpawn?.(child)
  })

export const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer()
    server.on("error", reject)
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      server.close(() => (typeof address === "object" && address !== null ? resolve(address.port) : reject(address)))
    })
  })

export interface Site {
  /** The address to export as JUICE_NATS. */
  readonly nats: string
  readonly directory: string
  readonly up: ChildProcess
  /** What `juice up` has written so far, both streams. */
  readonly output: () => string
  readonly env: NodeJS.ProcessEnv
  /** Runs `juice …` against this site. */
  readonly juice: (args: ReadonlyArray<string>, options?: RunOptions) => Promise<Outcome>
  /** Ctrl-C, then waits for the end and removes the folder. Gives the exit code of `juice up`. */
  readonly stop: () => Promise<number | null>
}

/**
 * Starts a site and waits until it can take sessions.
 * @param gpus what `juice up --gpus` takes: auto, all, soft:N
 */
export const startSite = async (gpus: string, extra: ReadonlyArray<string> = []): Promise<Site> => {
  const directory = await mkdtemp(join(tmpdir(), "juice-site-"))
  const port = await freePort()
  const args = ["up", "--gpus", gpus, "--data-dir", directory, "--port", String(port), "--data-port", "0", ...extra]
  const base: NodeJS.ProcessEnv = { ...process.env }
  delete base.JUICE_NATS
  delete base.NATS_URL
  const up = spawn(juiceCommand(), args, { env: base, stdio: ["ignore", "pipe", "pipe"], detached: true })
  let output = ""
  const collect = (text: string) => {
    output += text
  }
  up.stdout.setEncoding("utf8").on("data", collect)
  up.stderr.setEncoding("utf8").on("data", collect)
  const ended = new Promise<number | null>((resolve) => up.on("close", resolve))

  const nats = await new Promise<string>((resolve, reject) => {
    const fail = (why: string) => reject(new Error(`juice up ${why}. It wrote:\n${output}`))
    const timer = setTimeout(() => fail("was not ready within 60 s"), 60_000)
    const look = () => {
      const line = /export JUICE_NATS=(\S+)/.exec(output)
      if (line?.[1] === undefined) return
      clearTimeout(timer)
      resolve(line[1])
    }
    up.stdout.on("data", look)
    up.stderr.on("data", look)
    up.on("error", (error) => fail(`could not be started: ${error.message}`))
    up.on("close", (code) => fail(`ended with code ${code}`))
  })

  const env: NodeJS.ProcessEnv = { ...base, JUICE_NATS: nats }
  return {
    nats,
    directory,
    up,
    output: () => output,
    env,
    juice: (words, options = {}) => run(juiceCommand(), words, { ...options, env: { ...env, ...options.env } }),
    stop: async () => {
      if (up.exitCode === null && up.signalCode === null) up.kill("SIGINT")
      const code = await ended
      await rm(directory, { recursive: true, force: true })
      return code
    }
  }
}

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
import { findNativeFiles } from "../native/files.ts"

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
  /** Kill -9 after this long (default two minutes); a run that is killed so has signal SIGKILL. */
  readonly timeoutMs?: number
  /** What it reads from its standard input; nothing by default. */
  readonly stdin?: string
  /** It is killed when this process ends, however this ends. */
  readonly tied?: boolean
  /** In a process group of its own, where a terminal's Ctrl-C does not reach it. */
  readonly detached?: boolean
  readonly onSpawn?: (child: ChildProcess) => void
}

/** A command that has been started. */
export interface Running {
  readonly child: ChildProcess
  readonly pid: number
  /** What it has written so far. */
  readonly stdout: () => string
  readonly stderr: () => string
  /** How it ended, once both its streams are closed. */
  readonly outcome: Promise<Outcome>
}

/** Starts one command and collects what it writes. */
export const start = (command: string, args: ReadonlyArray<string>, options: RunOptions = {}): Running => {
  const started = performance.now()
  const { launcher } = findNativeFiles()
  const [program, words] =
    options.tied === true && existsSync(launcher)
      ? [launcher, [String(process.pid), "--", command, ...args]]
      : [command, args]
  const child = spawn(program, words, {
    env: options.env ?? process.env,
    cwd: options.cwd,
    stdio: [options.stdin === undefined ? "ignore" : "pipe", "pipe", "pipe"],
    detached: options.detached ?? false
  })
  let stdout = ""
  let stderr = ""
  child.stdout!.setEncoding("utf8").on("data", (text: string) => {
    stdout += text
  })
  child.stderr!.setEncoding("utf8").on("data", (text: string) => {
    stderr += text
  })
  // A program that does not read its input breaks the pipe: no fault of ours.
  child.stdin?.on("error", () => {}).end(options.stdin)
  const outcome = new Promise<Outcome>((resolve, reject) => {
    const limit = options.timeoutMs ?? 120_000
    const timer = Number.isFinite(limit) ? setTimeout(() => child.kill("SIGKILL"), limit) : undefined
    child.on("error", (error) => {
      clearTimeout(timer)
      reject(error)
    })
    child.on("close", (code, signal) => {
      clearTimeout(timer)
      resolve({ code, signal, stdout, stderr, milliseconds: performance.now() - started })
    })
  })
  // Whoever cares awaits it; until then a failure must not end this process.
  outcome.catch(() => {})
  options.onSpawn?.(child)
  return { child, pid: child.pid ?? 0, stdout: () => stdout, stderr: () => stderr, outcome }
}

/** Runs one command to its end and collects what it wrote. */
export const run = (command: string, args: ReadonlyArray<string>, options: RunOptions = {}): Promise<Outcome> =>
  start(command, args, options).outcome

export const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer()
    server.on("error", reject)
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      server.close(() => (typeof address === "object" && address !== null ? resolve(address.port) : reject(address)))
    })
  })

/** A service of Juice in the foreground of nobody: `juice up`, `juice router`, `juice host`. */
export interface Service extends Running {
  /** Both its streams, for the message of a test that fails. */
  readonly output: () => string
  /** Ctrl-C, or another signal, then waits for the end. Gives the exit code. */
  readonly stop: (signal?: NodeJS.Signals) => Promise<number | null>
}

/** How long (ms) a service may take to be ready; a machine under load takes long. */
const READY_TIMEOUT = 60_000

/**
 * Starts `juice …` and waits until it has written something that matches. It ends with this process even where that
 * is killed.
 */
export const startService = async (
  words: ReadonlyArray<string>,
  env: NodeJS.ProcessEnv,
  ready: RegExp
): Promise<Service> => {
  const options = { env, detached: true, tied: true, timeoutMs: Number.POSITIVE_INFINITY }
  const running = start(juiceCommand(), words, options)
  const { child, outcome } = running
  const output = () => `${running.stdout()}${running.stderr()}`
  await new Promise<void>((resolve, reject) => {
    const fail = (why: string) => {
      clearTimeout(timer)
      child.kill("SIGKILL")
      reject(new Error(`juice ${words[0]} ${why}. It wrote:\n${output()}`))
    }
    const timer = setTimeout(() => fail(`was not ready within ${READY_TIMEOUT / 1000} s`), READY_TIMEOUT)
    const look = () => {
      if (!ready.test(output())) return
      clearTimeout(timer)
      resolve()
    }
    child.stdout!.on("data", look)
    child.stderr!.on("data", look)
    outcome.then(
      ({ code, signal }) => fail(`ended with ${signal ?? `code ${code}`}`),
      (error: Error) => fail(`could not be started: ${error.message}`)
    )
  })
  return {
    ...running,
    output,
    stop: async (signal = "SIGINT") => {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal)
      return (await outcome).code
    }
  }
}

/** This process's environment without anything that would lead `juice` to another site or to a user's settings. */
export const plainEnvironment = (directory: string): NodeJS.ProcessEnv => {
  const env: NodeJS.ProcessEnv = { ...process.env, XDG_CONFIG_HOME: join(directory, "config") }
  const kept = ["JUICE_NATIVE_DIR", "JUICE_NATS_SERVER"]
  for (const name of Object.keys(env)) if (name.startsWith("JUICE_") && !kept.includes(name)) delete env[name]
  delete env.NATS_URL
  return env
}

export interface Site {
  /** The address to export as JUICE_NATS. */
  readonly nats: string
  readonly directory: string
  readonly up: Service
  /** What `juice up` has written so far, both streams. */
  readonly output: () => string
  readonly env: NodeJS.ProcessEnv
  /** Runs `juice …` against this site. */
  readonly juice: (args: ReadonlyArray<string>, options?: RunOptions) => Promise<Outcome>
  /** As `juice`, but does not wait for the end. */
  readonly begin: (args: ReadonlyArray<string>, options?: RunOptions) => Running
  /** Ctrl-C, or another signal, then waits for the end and removes the folder. Gives the exit code of `juice up`. */
  readonly stop: (signal?: NodeJS.Signals) => Promise<number | null>
}

export interface SiteOptions {
  /** Further flags of `juice up`. */
  readonly flags?: ReadonlyArray<string>
  /** What its commands get beside a plain environment. */
  readonly env?: NodeJS.ProcessEnv
  /** Where an earlier site was, to go on with its log; by default a temporary folder and a free port. */
  readonly place?: { readonly directory: string; readonly port: number }
}

/**
 * Starts a site and waits until it can take sessions.
 * @param gpus what `juice up --gpus` takes: auto, all, none, soft:N
 */
export const startSite = async (gpus: string, options: SiteOptions = {}): Promise<Site> => {
  const directory = options.place?.directory ?? (await mkdtemp(join(tmpdir(), "juice-site-")))
  const port = options.place?.port ?? (await freePort())
  const where = ["--data-dir", directory, "--port", String(port), "--data-port", "0"]
  const args = ["up", "--gpus", gpus, ...where, ...(options.flags ?? [])]
  const base = { ...plainEnvironment(directory), ...options.env }
  const discard = () => rm(directory, { recursive: true, force: true })
  const up = await startService(args, base, /export JUICE_NATS=\S+/).catch(async (error: unknown) => {
    await discard()
    throw error
  })
  const nats = /export JUICE_NATS=(\S+)/.exec(up.output())![1]!
  const ours: NodeJS.ProcessEnv = { ...base, JUICE_NATS: nats }
  const begin: Site["begin"] = (words, options = {}) =>
    start(juiceCommand(), words, { ...options, env: { ...ours, ...options.env } })
  return {
    nats,
    directory,
    up,
    output: up.output,
    env: ours,
    begin,
    juice: (words, options) => begin(words, options).outcome,
    stop: async (signal) => {
      const code = await up.stop(signal)
      await discard()
      return code
    }
  }
}

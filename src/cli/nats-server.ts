/** The nats-server that `juice up` starts and ends. */
import { type ChildProcess, spawn } from "node:child_process"
import { accessSync, constants, existsSync, mkdirSync, readFileSync } from "node:fs"
import { connect, createServer } from "node:net"
import { delimiter, join } from "node:path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { findNativeFiles } from "../native/files.ts"
import { NoNatsProgram, ServiceFailed, Usage } from "./errors.ts"

const NAME = "nats-server"
/** A new server answers within this (ms); a large store takes longest. */
const START_TIMEOUT = 30_000
const STOP_TIMEOUT = 3_000

const isExecutable = (path: string): boolean => {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** The program: as named, else on the PATH or where Debian puts it, else beside an unpacked bundle's native files. */
export const findNatsProgram = (named: string | undefined, env = process.env): Effect.Effect<string, NoNatsProgram> => {
  if (named !== undefined) {
    return isExecutable(named) ? Effect.succeed(named) : Effect.fail(new NoNatsProgram({ tried: named }))
  }
  const folders = [...(env.PATH ?? "").split(delimiter), "/usr/sbin", "/usr/local/sbin"]
  const beside = join(findNativeFiles(env).directory, "..")
  const places = [...folders, join(beside, "node"), join(beside, "bin")].filter((folder) => folder !== "")
  const found = places.map((folder) => join(folder, NAME)).find(isExecutable)
  return found === undefined ? Effect.fail(new NoNatsProgram({ tried: "not on the PATH" })) : Effect.succeed(found)
}

/** Whoever listens everywhere is reached here as well. */
const nearAddress = (host: string): string => (host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host)

const portIsFree = (host: string, port: number): Effect.Effect<boolean> =>
  Effect.callback((resume) => {
    const server = createServer()
    server.once("error", () => resume(Effect.succeed(false)))
    server.listen(port, host, () => server.close(() => resume(Effect.succeed(true))))
  })

/** Fails when something listens there already: most likely another `juice up`. */
export const needFreePort = Effect.fnUntraced(function* (host: string, port: number) {
  if (yield* portIsFree(host, port)) return
  const address = `${nearAddress(host)}:${port}`
  return yield* new Usage({
    detail: `the port ${address} is taken, perhaps by another \`juice up\`: use that one with JUICE_NATS=nats://${address}, or choose another with --port`
  })
})

/** Whether a NATS server greets on the port. */
const greets = (host: string, port: number): Effect.Effect<boolean> =>
  Effect.callback((resume) => {
    const socket = connect(port, host)
    const answer = (yes: boolean) => {
      socket.destroy()
      resume(Effect.succeed(yes))
    }
    socket.once("data", (data) => answer(data.toString().startsWith("INFO")))
    socket.once("error", () => answer(false))
    socket.setTimeout(1_000, () => answer(false))
  })

const isOver = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null

const untilOver = (child: ChildProcess): Effect.Effect<void> =>
  Effect.callback((resume) => {
    if (isOver(child)) resume(Effect.void)
    else child.once("exit", () => resume(Effect.void))
  })

const stop = Effect.fnUntraced(function* (child: ChildProcess) {
  if (isOver(child)) return
  child.kill("SIGTERM")
  const ended = yield* untilOver(child).pipe(Effect.timeoutOption(STOP_TIMEOUT))
  if (ended._tag === "Some") return
  child.kill("SIGKILL")
  yield* untilOver(child)
})

export interface NatsServerOptions {
  readonly program: string
  /** JetStream's store and the server's log. */
  readonly directory: string
  readonly host: string
  readonly port: number
}

export interface NatsServer {
  readonly url: string
  /** Never succeeds; fails once the server has ended. */
  readonly failed: Effect.Effect<never, ServiceFailed>
}

const lastLines = (path: string): string => {
  try {
    return readFileSync(path, "utf8").trimEnd().split("\n").slice(-3).join(" | ")
  } catch {
    return "it left no log"
  }
}

/** Runs a server with JetStream until the scope closes; it ends with us even if we are killed. */
export const startNatsServer = Effect.fn("NatsServer.start")(function* (
  options: NatsServerOptions
): Effect.fn.Return<NatsServer, ServiceFailed, Scope.Scope> {
  const { directory, host, port, program } = options
  const near = nearAddress(host)
  const address = `${near}:${port}`
  const log = join(directory, "nats-server.log")
  const args = ["-a", host, "-p", String(port), "-js", "-sd", directory, "-l", log]
  // The launcher has the kernel end the server when we die; without it a killed `juice up` leaves it running.
  const { launcher } = findNativeFiles()
  const [command, words] = existsSync(launcher)
    ? [launcher, [String(process.pid), "--", program, ...args]]
    : [program, args]
  const child = yield* Effect.acquireRelease(
    Effect.try({
      try: () => {
        mkdirSync(directory, { recursive: true, mode: 0o700 })
        // A group of its own: Ctrl-C must reach it last, when the others have told it all they have.
        return spawn(command, words, { stdio: "ignore", detached: true })
      },
      catch: (error) => new ServiceFailed({ service: NAME, detail: (error as Error).message })
    }),
    stop
  )
  child.on("error", () => {})
  const over = Effect.andThen(
    untilOver(child),
    Effect.suspend(() => Effect.fail(new ServiceFailed({ service: NAME, detail: lastLines(log) })))
  )
  const up = Effect.gen(function* () {
    while (!(yield* greets(near, port))) yield* Effect.sleep(20)
  }).pipe(
    Effect.timeoutOrElse({
      duration: START_TIMEOUT,
      orElse: () => Effect.fail(new ServiceFailed({ service: NAME, detail: `no answer at ${address} after 30 s` }))
    })
  )
  yield* Effect.raceFirst(up, over)
  return { url: `nats://${address}`, failed: over }
})

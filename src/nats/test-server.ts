/**
 * A private nats-server for tests: a free port, a temporary folder, gone without a trace at the end. It can be killed
 * and started again on the same port and data.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { connect, createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

export class TestNatsServer extends Context.Service<
  TestNatsServer,
  {
    readonly url: string
    /** SIGKILL. */
    readonly kill: Effect.Effect<void>
    /** Starts it again where it was. */
    readonly restart: Effect.Effect<void>
  }
>()("juice/nats/TestNatsServer") {}

/** A port of the loopback that is free now. */
export const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer()
    server.once("error", reject)
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      server.close(() =>
        address !== null && typeof address === "object" ? resolve(address.port) : reject(new Error("no port"))
      )
    })
  })

const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1")
    socket.once("data", () => {
      socket.destroy()
      resolve(true)
    })
    socket.once("error", () => resolve(false))
  })

export interface TestNatsOptions {
  /** Whether JetStream is on; it is by default. */
  readonly jetstream?: boolean
  /** The text of a configuration file: users and their permissions, for example. */
  readonly config?: string
}

const start = async (port: number, folder: string, options: TestNatsOptions): Promise<ChildProcess> => {
  const flags = ["-a", "127.0.0.1", "-p", String(port)]
  if (options.jetstream !== false) flags.push("-js", "-sd", folder)
  if (options.config !== undefined) {
    const file = join(folder, "nats.conf")
    await writeFile(file, options.config)
    flags.push("-c", file)
  }
  const child = spawn("nats-server", flags, { stdio: ["ignore", "ignore", "pipe"] })
  let said = ""
  child.stderr?.on("data", (data) => {
    said = (said + String(data)).slice(-4_000)
  })
  let failed: Error | undefined
  child.once("error", (error) => {
    failed = error
  })
  const deadline = Date.now() + 15_000
  while (!(await answers(port))) {
    if (failed !== undefined) throw new Error(`nats-server could not be started: ${failed.message}`)
    if (child.exitCode !== null || Date.now() > deadline) throw new Error(`nats-server did not come up:\n${said}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return child
}

const stop = (child: ChildProcess): Promise<void> =>
  new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve()
    child.once("exit", () => resolve())
    child.kill("SIGKILL")
  })

export const layerTestNatsServerWith = (options: TestNatsOptions) =>
  Layer.effect(
    TestNatsServer,
    Effect.gen(function* () {
      const folder = yield* Effect.acquireRelease(
        Effect.promise(() => mkdtemp(join(tmpdir(), "juice-nats-"))),
        (path) => Effect.promise(() => rm(path, { recursive: true, force: true }))
      )
      const port = yield* Effect.promise(freePort)
      let child: ChildProcess = yield* Effect.acquireRelease(
        Effect.promise(() => start(port, folder, options)),
        (): Effect.Effect<void> => Effect.promise(() => stop(child))
      )
      return TestNatsServer.of({
        url: `nats://127.0.0.1:${port}`,
        kill: Effect.promise(() => stop(child)),
        restart: Effect.promise(async () => {
          await stop(child)
          child = await start(port, folder, options)
        })
      })
    })
  )

export const layerTestNatsServer = layerTestNatsServerWith({})

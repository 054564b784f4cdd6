import { chmodSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, layer } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import { type HostConfig, runHost } from "../host/service.ts"
import { FakeAddon } from "../host/test/fake-addon.ts"
import { loadAddon, type PeerCredentials } from "../native/addon.ts"
import { findNativeFiles, type NativeFiles } from "../native/files.ts"
import { layerNats } from "../nats/connection.ts"
import { layerTestNatsServer, TestNatsServer } from "../nats/test-server.ts"
import type { SessionView } from "../protocol/answers.ts"
import type { HostId } from "../protocol/ids.ts"
import type { Site } from "../protocol/tokens.ts"
import { runRouter } from "../router/router.ts"
import { type AttachOptions, attach } from "./attach.ts"
import { listHosts, listSessions } from "./reads.ts"
import { isForwarded } from "./signals.ts"

const PROGRAM = fileURLToPath(new URL("test/fake-program.mjs", import.meta.url))

/** One site in this process: NATS, a router, a host of one fake GPU; native parts are stood in for. */
class World extends Context.Service<
  World,
  {
    readonly addon: FakeAddon
    readonly folder: string
    readonly site: Site
    readonly options: (words: ReadonlyArray<string>, fields?: Partial<AttachOptions["request"]>) => AttachOptions
    readonly warnings: Array<string>
    /** Stops the host in order, at once. */
    readonly stopHost: Effect.Effect<void>
  }
>()("juice/client/test/World") {}

const until = <A, E, R>(look: Effect.Effect<A, E, R>, good: (value: A) => boolean): Effect.Effect<A, E, R> =>
  Effect.gen(function* () {
    while (true) {
      const value = yield* look
      if (good(value)) return value
      yield* Effect.sleep(20)
    }
  }).pipe(Effect.timeoutOrElse({ duration: 20_000, orElse: () => Effect.die(new Error(`never: ${good}`)) }))

/** Workers and GPUs are fake; processes and their sockets are real. */
class MixedAddon extends FakeAddon {
  readonly #real = loadAddon(findNativeFiles())
  override watchProcess(pid: number, onExit: () => void): { stop(): void } {
    return this.#real.watchProcess(pid, onExit)
  }
  override peerCredentials(fd: number): PeerCredentials {
    return this.#real.peerCredentials(fd)
  }
}

const folderLayer = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "juice-attach-test-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

const worldLayer = (siteName: string, gpus: HostConfig["gpus"] = { _tag: "soft", count: 1 }) =>
  Layer.effect(
    World,
    Effect.gen(function* () {
      const folder = yield* folderLayer
      const site = siteName as Site
      const launcher = join(folder, "launcher")
      writeFileSync(launcher, '#!/bin/sh\nshift 2\nexec "$@"\n')
      chmodSync(launcher, 0o755)
      writeFileSync(join(folder, "file"), "")
      const files: NativeFiles = {
        directory: folder,
        shimDirectory: join(folder, "shim"),
        softGpuDriver: join(folder, "file"),
        worker: join(folder, "file"),
        launcher,
        addon: join(folder, "file")
      }
      const addon = new MixedAddon()
      const warnings: Array<string> = []
      yield* Effect.forkScoped(runRouter({ site }))
      const ready = yield* Deferred.make<void>()
      const drain = yield* Deferred.make<void>()
      const host = yield* Effect.forkScoped(
        runHost({
          site,
          host: "gpu-1" as HostId,
          version: "0.1.0",
          gpus,
          dataDirectory: join(folder, "host"),
          listen: { host: "127.0.0.1", port: 0 },
          insecurePlaintext: false,
          labels: {},
          poolSize: 1,
          drainTimeout: 0,
          files,
          addon,
          adopt: addon.adopt,
          env: {},
          times: { patience: 300 },
          drain: Deferred.await(drain),
          onReady: () => Effect.asVoid(Deferred.succeed(ready, undefined))
        }).pipe(Effect.tapCause((cause) => Effect.logError(cause)))
      )
      yield* Deferred.await(ready)
      yield* until(Effect.option(listHosts(site, { left: false })), (found) =>
        found._tag === "Some" ? found.value.hosts.length === 1 : false
      )
      return World.of({
        addon,
        folder,
        site,
        warnings,
        stopHost: Effect.andThen(Deferred.succeed(drain, undefined), Effect.asVoid(Fiber.await(host))),
        options: (words, fields) => ({
          request: {
            site,
            gpus: { count: 1 },
            labels: {},
            waitMs: 0,
            version: "0.1.0",
            log: () => {},
            ...fields
          },
          argv: [process.execPath, PROGRAM, ...words],
          env: { ...process.env, XDG_RUNTIME_DIR: folder },
          addon,
          files,
          warn: (sentence) => warnings.push(sentence)
        })
      })
    })
  )

const quiet = Layer.succeed(References.MinimumLogLevel, "None")

const natsLayer = Layer.unwrap(Effect.map(TestNatsServer, ({ url }) => layerNats({ servers: url, name: "test" }))).pipe(
  Layer.provideMerge(layerTestNatsServer),
  Layer.provideMerge(quiet)
)

const sessionsOf = (site: Site) =>
  Effect.map(listSessions(site, { ended: true, limit: 50 }), ({ sessions }): ReadonlyArray<SessionView> => sessions)

describe("attach, with a site in this process", () => {
  layer(Layer.provideMerge(worldLayer("one"), natsLayer), { excludeTestServices: true })((it) => {
    it.effect("passes the program's exit code on, and the site has recorded all of it by then", () =>
      Effect.gen(function* () {
        const { options, site } = yield* World
        assert.deepEqual(yield* attach(options(["goodbye", "exit=7"])), { code: 7, signal: null })
        const [session] = yield* sessionsOf(site)
        assert.equal(session?.state, "ended")
        assert.equal(session?.reason, "client-exit")
        assert.deepEqual(session?.processes, { running: 0, total: 1 })
        assert.equal(session?.usage.calls, 1)
      })
    )

    it.effect("gives the GPU back at once: the next attach in a row gets it without waiting", () =>
      Effect.gen(function* () {
        const { options } = yield* World
        for (let i = 0; i < 3; i++) {
          assert.deepEqual(yield* attach(options(["exit=0"])), { code: 0, signal: null })
        }
      })
    )

    it.effect("passes a death by signal on", () =>
      Effect.gen(function* () {
        const { options, site } = yield* World
        assert.deepEqual(yield* attach(options(["die"])), { code: null, signal: "SIGKILL" })
        const [session] = yield* sessionsOf(site)
        assert.equal(session?.state, "ended")
      })
    )

    it.effect("serves a process of the program's own with a worker of its own", () =>
      Effect.gen(function* () {
        const { addon, options, site } = yield* World
        const before = addon.workers.filter(({ claimed }) => claimed).length
        assert.deepEqual(yield* attach(options(["fork", "goodbye", "exit=3"])), { code: 3, signal: null })
        assert.equal(addon.workers.filter(({ claimed }) => claimed).length, before + 2)
        const [session] = yield* sessionsOf(site)
        assert.equal(session?.processes.total, 2)
      })
    )

    it.effect("runs a program that uses no GPU", () =>
      Effect.gen(function* () {
        const { options } = yield* World
        const plain = options([])
        assert.deepEqual(yield* attach({ ...plain, argv: ["sh", "-c", "exit 4"] }), { code: 4, signal: null })
      })
    )

    it.effect("refuses at once when no GPU is free, with the counts, and waits when asked to", () =>
      Effect.gen(function* () {
        const { addon, options } = yield* World
        const first = yield* Effect.forkChild(attach(options(["wait"])))
        yield* until(
          Effect.sync(() => addon.alive.filter(({ claimed }) => claimed).length),
          (count) => count === 1
        )
        const refused = yield* Effect.flip(attach(options(["exit=0"])))
        assert.equal((refused as { readonly _tag?: string })._tag, "NoCapacity")
        assert.match(refused.message, /1 of 1/)
        const second = yield* Effect.forkChild(attach(options(["exit=5"], { waitMs: 20_000 })))
        yield* Effect.sleep(300)
        // Interrupting an attach ends its session; the waiting one is next.
        yield* Fiber.interrupt(first)
        assert.deepEqual(yield* Fiber.join(second), { code: 5, signal: null })
      })
    )

    it.effect("leaves no folder behind", () =>
      Effect.gen(function* () {
        const { folder, options } = yield* World
        yield* attach(options(["exit=0"]))
        assert.deepEqual(
          readdirSync(folder).filter((name) => name.startsWith("juice-")),
          []
        )
      })
    )
  })

  layer(Layer.provideMerge(worldLayer("lost"), natsLayer), { excludeTestServices: true })((it) => {
    it.effect("tells that the host is gone, and lets the program end by itself", () =>
      Effect.gen(function* () {
        const { addon, options, site, stopHost, warnings } = yield* World
        const running = yield* Effect.forkChild(attach(options(["wait"])))
        yield* until(
          Effect.sync(() => addon.alive.filter(({ claimed }) => claimed).length),
          (count) => count === 1
        )
        yield* stopHost
        // The program has seen its link close, and ends with a code of its own.
        assert.deepEqual(yield* Fiber.join(running), { code: 46, signal: null })
        assert.match(warnings.join(), /^the GPU host "gpu-1" is gone \(the host is shutting down\)/)
        const [session] = yield* until(sessionsOf(site), ([first]) => first?.state === "ended")
        assert.equal(session?.reason, "host-left")
        assert.deepEqual(addon.alive, [])
      })
    )
  })

  layer(Layer.provideMerge(worldLayer("none", { _tag: "none" }), natsLayer), { excludeTestServices: true })((it) => {
    it.effect("says so when the site has no GPU at all", () =>
      Effect.gen(function* () {
        const { options } = yield* World
        const error = yield* Effect.flip(attach(options(["exit=0"])))
        assert.include(["NoCapacity", "NoHost"], (error as unknown as { readonly _tag: string })._tag)
      })
    )
    it.effect("says so when no router serves the site", () =>
      Effect.gen(function* () {
        const { options } = yield* World
        const error = yield* Effect.flip(attach(options(["exit=0"], { site: "elsewhere" as Site })))
        assert.match(error.message, /no router serves the site "elsewhere"/)
      })
    )
  })
})

describe("signals", () => {
  layer(Layer.empty)((it) => {
    it.effect("of the keyboard are forwarded only where no terminal does it", () =>
      Effect.sync(() => {
        assert.isTrue(isForwarded("SIGTERM", true))
        assert.isTrue(isForwarded("SIGINT", false))
        assert.isFalse(isForwarded("SIGINT", true))
        assert.isFalse(isForwarded("SIGQUIT", true))
      })
    )
  })
})

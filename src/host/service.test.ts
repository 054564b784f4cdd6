import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, layer } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import * as Stream from "effect/Stream"
import { findNativeFiles } from "../native/files.ts"
import { layerNats, Nats } from "../nats/connection.ts"
import { ensureReports, readReports } from "../nats/reports.ts"
import { layerTestNatsServer, TestNatsServer } from "../nats/test-server.ts"
import type { HostId } from "../protocol/ids.ts"
import type { Report } from "../protocol/reports.ts"
import type { Site } from "../protocol/tokens.ts"
import { type HostConfig, runHost } from "./service.ts"
import { CONTEXT_BYTES, FakeAddon, GPU_MEMORY } from "./test/fake-addon.ts"

const natsLayer = Layer.unwrap(Effect.map(TestNatsServer, ({ url }) => layerNats({ servers: url, name: "test" }))).pipe(
  Layer.provideMerge(layerTestNatsServer),
  Layer.provideMerge(Layer.succeed(References.MinimumLogLevel, "None"))
)

const temporary = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "juice-host-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
)

const configOf = (site: string, folder: string, fields?: Partial<HostConfig>): HostConfig => {
  const addon = new FakeAddon()
  const file = join(folder, "file")
  writeFileSync(file, "")
  return {
    site: site as Site,
    host: "gpu-1" as HostId,
    version: "0.1.0",
    gpus: { _tag: "soft", count: 2 },
    dataDirectory: join(folder, "data"),
    listen: { host: "127.0.0.1", port: 0 },
    insecurePlaintext: false,
    labels: { zone: "a" },
    poolSize: 1,
    drainTimeout: 100,
    files: { ...findNativeFiles(), worker: file, softGpuDriver: file },
    addon,
    adopt: addon.adopt,
    env: {},
    drain: Effect.never,
    ...fields
  }
}

/** The first `count` reports of the site. */
const reportsOf = (site: string, count: number) =>
  Effect.andThen(
    ensureReports(site as Site),
    readReports(site as Site, 0).pipe(
      Stream.map(({ report }) => report as Report),
      Stream.take(count),
      Stream.runCollect,
      Effect.map((reports) => [...reports])
    )
  )

describe("the host service", () => {
  layer(natsLayer, { excludeTestServices: true })((it) => {
    it.effect("joins with what its GPUs' workers tell, less the memory of their contexts", () =>
      Effect.gen(function* () {
        const folder = yield* temporary
        yield* Effect.forkScoped(runHost(configOf("joins", folder)))
        const [joined] = yield* reportsOf("joins", 1)
        assert.equal(joined?.n, 1)
        const body = joined?.body
        if (body?._tag !== "host.joined") return assert.fail(String(body?._tag))
        assert.deepEqual(
          body.gpus.map(({ computeCapability, kind, model, vram }) => [model, vram, computeCapability, kind]),
          Array(2).fill(["Fake GPU", GPU_MEMORY - 2 * CONTEXT_BYTES, "9.0", "software"])
        )
        assert.deepEqual(body.labels, { zone: "a" })
      }).pipe(Effect.scoped)
    )

    it.effect("says that it drains and leaves when it is told to stop", () =>
      Effect.gen(function* () {
        const folder = yield* temporary
        const drain = yield* Deferred.make<void>()
        const ready = yield* Deferred.make<void>()
        const config = configOf("drains", folder, {
          drain: Deferred.await(drain),
          onReady: () => Effect.asVoid(Deferred.succeed(ready, undefined))
        })
        const host = yield* Effect.forkScoped(runHost(config))
        yield* Deferred.await(ready)
        yield* Deferred.succeed(drain, undefined)
        yield* Fiber.join(host)
        const reports = yield* reportsOf("drains", 3)
        assert.deepEqual(
          reports.map(({ body }) => body._tag),
          ["host.joined", "host.draining", "host.left"]
        )
        assert.deepEqual((config.addon as FakeAddon).alive, [])
      }).pipe(Effect.scoped)
    )

    it.effect("comes back as a new incarnation that counts anew", () =>
      Effect.gen(function* () {
        const folder = yield* temporary
        for (const _ of [1, 2]) {
          yield* runHost(configOf("returns", folder, { drain: Effect.sleep(50) }))
        }
        const reports = yield* reportsOf("returns", 6)
        assert.deepEqual(
          reports.map(({ n }) => n),
          [1, 2, 3, 1, 2, 3]
        )
        assert.equal(new Set(reports.map(({ incarnation }) => incarnation)).size, 2)
      }).pipe(Effect.scoped)
    )

    it.effect("does not start when no GPU's driver does, and says why", () =>
      Effect.gen(function* () {
        const folder = yield* temporary
        const config = configOf("broken", folder)
        ;(config.addon as FakeAddon).failure = "the driver is broken"
        const error = yield* Effect.flip(runHost(config))
        assert.match(error.message, /the driver is broken/)
      }).pipe(Effect.scoped)
    )

    it.effect("does not listen beyond this machine by accident", () =>
      Effect.gen(function* () {
        const folder = yield* temporary
        const error = yield* Effect.flip(runHost(configOf("open", folder, { listen: { host: "0.0.0.0", port: 0 } })))
        assert.match(error.message, /not encrypted yet.*--insecure-plaintext/)
      }).pipe(Effect.scoped)
    )

    it.effect("tells what happened while NATS was away once it is back", () =>
      Effect.gen(function* () {
        const folder = yield* temporary
        const server = yield* TestNatsServer
        const drain = yield* Deferred.make<void>()
        const ready = yield* Deferred.make<void>()
        const host = yield* Effect.forkScoped(
          runHost(
            configOf("away", folder, {
              drain: Deferred.await(drain),
              drainTimeout: 0,
              onReady: () => Effect.asVoid(Deferred.succeed(ready, undefined))
            })
          )
        )
        yield* Deferred.await(ready)
        yield* reportsOf("away", 1)
        yield* server.kill
        yield* Deferred.succeed(drain, undefined)
        yield* Fiber.join(host)
        yield* server.restart
        const nats = yield* Nats
        while (!nats.isConnected()) yield* Effect.sleep(20)
        // The next host in the folder tells what the last one could not.
        yield* Effect.forkScoped(runHost(configOf("away", folder)))
        const reports = yield* reportsOf("away", 4)
        assert.deepEqual(
          reports.map(({ body }) => body._tag),
          ["host.joined", "host.draining", "host.left", "host.joined"]
        )
      }).pipe(Effect.scoped)
    )
  })
})

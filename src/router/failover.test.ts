import { type ChildProcess, spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { assert, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { layerNats } from "../nats/connection.ts"
import { layerEventLog } from "../nats/event-log.ts"
import { layerTestNatsServer, TestNatsServer } from "../nats/test-server.ts"
import type { HostId } from "../protocol/ids.ts"
import type { Site } from "../protocol/tokens.ts"
import { verifyLog } from "./audit.ts"
import { readEvents } from "./events.ts"
import { askHosts, askStatus, attach, eventually, gpu, requestBody, startTestHost } from "./testing.ts"

const Live = Layer.unwrap(Effect.map(TestNatsServer, ({ url }) => layerNats({ servers: url, name: "test" }))).pipe(
  Layer.provideMerge(layerTestNatsServer)
)

const main = fileURLToPath(new URL("./testing-main.ts", import.meta.url))

/** A router process; killed with the scope. */
const startProcess = (site: Site) =>
  Effect.acquireRelease(
    Effect.map(TestNatsServer, ({ url }) =>
      spawn(process.execPath, ["--import", "tsx", main, url, site], { stdio: ["ignore", "inherit", "inherit"] })
    ),
    (child) => kill(child)
  )

const kill = (child: ChildProcess) =>
  Effect.promise(
    () =>
      new Promise<void>((resolve) => {
        if (child.exitCode !== null || child.signalCode !== null) return resolve()
        child.once("exit", () => resolve())
        child.kill("SIGKILL")
      })
  )

/** Routers are started as programs, which takes long on a machine that runs all tests at once. */
const PATIENCE = 150_000

layer(Live, { excludeTestServices: true })("two routers", (it) => {
  it.effect(
    "of which the leading one is killed: no gap, no duplicate, no session lost, and the standby leads in time",
    () =>
      Effect.gen(function* () {
        const site = "failover" as Site
        const first = yield* startProcess(site)
        yield* eventually(askStatus(site), ({ leading }) => leading)
        yield* startProcess(site)
        const gpus = Array.from({ length: 64 }, (_, n) => gpu(n))
        const host = yield* startTestHost({ site, host: "gpu1" as HostId, gpus })
        yield* eventually(askHosts(site), (hosts) => hosts.length === 1)

        // Clients come all the time, before the kill, during it and after it.
        const clients = yield* Effect.forkChild(
          Effect.forEach(
            Array.from({ length: 40 }, (_, n) => n),
            (n) => Effect.delay(attach(site, requestBody()), n * 150),
            { concurrency: "unbounded" }
          )
        )
        yield* Effect.sleep(1_000)
        const killedAt = Date.now()
        yield* kill(first)
        const results = yield* Fiber.join(clients)
        assert.isTrue(results.every(({ grant, session }) => session.state === "ready" && grant !== undefined))
        assert.strictEqual(host.sessions.size, 40)
        assert.strictEqual(new Set(results.flatMap(({ grant }) => grant!.gpus.map(({ uuid }) => uuid))).size, 40)

        const { elections, requests } = yield* Effect.gen(function* () {
          const events = yield* Stream.runCollect(readEvents({ follow: false }))
          const audited = yield* verifyLog
          assert.strictEqual(audited.derived > 0, true)
          return {
            elections: events.filter(({ event }) => event._tag === "RouterElected"),
            requests: events.filter(({ event }) => event._tag === "SessionRequested")
          }
        }).pipe(Effect.provide(layerEventLog({ site })))
        assert.deepStrictEqual(
          elections.map(({ epoch }) => epoch),
          [1, 2]
        )
        // Five seconds are promised; a machine that runs all tests at once gets more.
        assert.isBelow(elections[1]!.at - killedAt, 15_000)
        assert.strictEqual(requests.length, 40)
      }).pipe(Effect.scoped),
    PATIENCE
  )

  it.effect(
    "outlive a restart of the NATS server: sessions stay, and new ones come",
    () =>
      Effect.gen(function* () {
        const site = "restart" as Site
        const server = yield* TestNatsServer
        yield* startProcess(site)
        yield* eventually(askStatus(site), ({ leading }) => leading)
        yield* startProcess(site)
        yield* eventually(askStatus(site), ({ leading }) => !leading)
        const host = yield* startTestHost({ site, host: "gpu1" as HostId, gpus: [gpu(1), gpu(2)] })
        yield* eventually(askHosts(site), (hosts) => hosts.length === 1)
        const body = requestBody()
        yield* attach(site, body)
        yield* server.kill
        yield* Effect.sleep(4_000)
        yield* server.restart
        const again = yield* attach(site, body)
        assert.strictEqual(again.grant?.attempt, 1)
        yield* attach(site, requestBody())
        assert.strictEqual(host.sessions.size, 2)
        yield* Effect.provide(verifyLog, layerEventLog({ site }))
      }).pipe(Effect.scoped),
    PATIENCE
  )
})

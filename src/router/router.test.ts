import { assert, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { layerNats } from "../nats/connection.ts"
import { EventLog, layerEventLog } from "../nats/event-log.ts"
import { freePort, layerTestNatsServer, layerTestNatsServerWith, TestNatsServer } from "../nats/test-server.ts"
import type { HostId } from "../protocol/ids.ts"
import { generateSealKeyPair, openSealed } from "../protocol/seal.ts"
import type { Site } from "../protocol/tokens.ts"
import { verifyLog } from "./audit.ts"
import { type RouterOptions, runRouter } from "./router.ts"
import {
  askHosts,
  askSession,
  askStatus,
  attach,
  eventually,
  gpu,
  releaseSession,
  requestBody,
  startTestHost
} from "./testing.ts"

const Live = Layer.unwrap(Effect.map(TestNatsServer, ({ url }) => layerNats({ servers: url, name: "test" }))).pipe(
  Layer.provideMerge(layerTestNatsServer)
)

let sites = 0
const newSite = () => `r${++sites}` as Site
const HOST = "gpu1" as HostId

const startRouter = (site: Site, options: Partial<RouterOptions> = {}) =>
  Effect.forkChild(
    Effect.tapCause(runRouter({ site, logBytes: 1 << 20, ...options }), (cause) =>
      Effect.logError("the router failed", cause)
    )
  )

/** The events of a site's log, by type, once `last` is there; the chain, invariants and decisions are checked too. */
const story = (site: Site, last: string) =>
  Effect.gen(function* () {
    const log = yield* EventLog
    const tags = yield* eventually(
      Stream.runCollect(log.read({ from: 1, follow: false })).pipe(
        Effect.map((messages) =>
          messages.flatMap(({ body }) =>
            (
              JSON.parse(new TextDecoder().decode(body)) as { entries: Array<{ events: Array<{ _tag: string }> }> }
            ).entries
              .flatMap(({ events }) => events)
              .map(({ _tag }) => _tag)
          )
        )
      ),
      (tags) => tags.includes(last)
    )
    yield* verifyLog
    return tags
  }).pipe(Effect.provide(layerEventLog({ site })))

layer(Live, { excludeTestServices: true })("the router", (it) => {
  it.effect("places, prepares, readies, releases and ends a session, and the log tells it", () =>
    Effect.gen(function* () {
      const site = newSite()
      yield* startRouter(site)
      const host = yield* startTestHost({ site, host: HOST, gpus: [gpu(1)] })
      yield* eventually(askHosts(site), (hosts) => hosts.length === 1)
      const keyPair = generateSealKeyPair()
      const body = requestBody({}, keyPair)
      const { grant, session } = yield* attach(site, body)
      assert.strictEqual(session.state, "ready")
      assert.strictEqual(grant?.host, HOST)
      const opened = openSealed({ sealed: grant!.sealed, session: body.session, attempt: grant!.attempt, keyPair })
      assert.isTrue(Result.isSuccess(opened))

      const again = yield* attach(site, body)
      assert.deepStrictEqual(again.grant, grant)
      assert.strictEqual(host.sessions.size, 1)

      yield* releaseSession(site, body.session)
      const tags = yield* story(site, "SessionEnded")
      assert.deepStrictEqual(tags, [
        "RouterElected",
        "HostJoined",
        "SessionRequested",
        "SessionPlaced",
        "SessionReady",
        "SessionEnding",
        "SessionEnded"
      ])
      assert.strictEqual(host.sessions.size, 0)
    }).pipe(Effect.scoped)
  )

  it.effect("refuses at once without a host or without a free GPU, and says which", () =>
    Effect.gen(function* () {
      const site = newSite()
      yield* startRouter(site)
      yield* eventually(askStatus(site), ({ leading }) => leading)
      const none = yield* Effect.flip(attach(site, requestBody()))
      assert.strictEqual((none as { _tag?: string })._tag, "NoHost")
      yield* startTestHost({ site, host: HOST, gpus: [gpu(1)] })
      yield* eventually(askHosts(site), (hosts) => hosts.length === 1)
      yield* attach(site, requestBody())
      const full = yield* Effect.flip(attach(site, requestBody()))
      assert.strictEqual((full as { _tag?: string })._tag, "NoCapacity")
      assert.include(full.message, "1 of 1: not enough free")
    }).pipe(Effect.scoped)
  )

  it.effect("queues those who will wait, and places them when capacity comes back", () =>
    Effect.gen(function* () {
      const site = newSite()
      yield* startRouter(site)
      const host = yield* startTestHost({ site, host: HOST, gpus: [gpu(1)] })
      yield* eventually(askHosts(site), (hosts) => hosts.length === 1)
      const first = requestBody()
      yield* attach(site, first)
      const second = yield* Effect.forkChild(attach(site, requestBody({ waitMs: 30_000 })))
      yield* eventually(askStatus(site), ({ queued }) => queued === 1)
      yield* host.end(first.session, "client-exit")
      const { session } = yield* Fiber.join(second)
      assert.strictEqual(session.state, "ready")
      const over = yield* Effect.flip(attach(site, requestBody({ waitMs: 300 })))
      assert.strictEqual((over as { _tag?: string })._tag, "WaitOver")
    }).pipe(Effect.scoped)
  )

  it.effect("goes to another host when the first refuses", () =>
    Effect.gen(function* () {
      const site = newSite()
      yield* startRouter(site)
      const bad = yield* startTestHost({ site, host: HOST, gpus: [gpu(1)] })
      bad.refuse = "failed"
      yield* startTestHost({ site, host: "gpu2" as HostId, gpus: [gpu(2)] })
      yield* eventually(askHosts(site), (hosts) => hosts.length === 2)
      const { grant } = yield* attach(site, requestBody())
      assert.strictEqual(grant?.host, "gpu2")
      assert.include(yield* story(site, "SessionReady"), "PlacementRefused")
    }).pipe(Effect.scoped)
  )

  it.effect("asks for reports that were lost, and takes them in by their numbers", () =>
    Effect.gen(function* () {
      const site = newSite()
      yield* startRouter(site)
      const host = yield* startTestHost({ site, host: HOST, gpus: [gpu(1)] })
      yield* eventually(askHosts(site), (hosts) => hosts.length === 1)
      const body = requestBody()
      yield* attach(site, body)
      host.lose({ _tag: "process.attached", session: body.session, process: 1 })
      yield* host.end(body.session, "client-exit")
      const tags = yield* story(site, "SessionEnded")
      assert.deepStrictEqual(tags.slice(-2), ["ProcessAttached", "SessionEnded"])
    }).pipe(Effect.scoped)
  )

  it.effect("leaves a silent host alone, keeps its sessions charged, and ends them when a new incarnation comes", () =>
    Effect.gen(function* () {
      const site = newSite()
      yield* startRouter(site)
      const host = yield* startTestHost({ site, host: HOST, gpus: [gpu(1), gpu(2)] })
      yield* eventually(askHosts(site), (hosts) => hosts.length === 1)
      yield* attach(site, requestBody())
      host.alive = false
      yield* eventually(askHosts(site), ([view]) => view?.state === "suspect")
      const refused = yield* Effect.flip(attach(site, requestBody()))
      assert.include(refused.message, "1 of 1: silent")
      yield* eventually(askHosts(site), ([view]) => view?.state === "unknown")
      assert.strictEqual((yield* askHosts(site))[0]?.sessions, 1)
      yield* startTestHost({ site, host: HOST, gpus: [gpu(1), gpu(2)] })
      const [view] = yield* eventually(askHosts(site), ([view]) => view?.state === "up" && view.sessions === 0)
      assert.isTrue(view!.gpus.every(({ reserved }) => reserved === 0))
      const tags = yield* story(site, "SessionEnded")
      assert.includeMembers(tags, ["HostSuspect", "HostUnknown", "SessionEnded"])
    }).pipe(Effect.scoped)
  )

  it.effect("is followed by a standby, which goes on where it stopped", () =>
    Effect.gen(function* () {
      const site = newSite()
      const first = yield* startRouter(site)
      yield* eventually(askStatus(site), ({ leading }) => leading)
      yield* startRouter(site)
      yield* startTestHost({ site, host: HOST, gpus: [gpu(1), gpu(2)] })
      yield* eventually(askHosts(site), (hosts) => hosts.length === 1)
      const body = requestBody()
      const before = yield* attach(site, body)
      yield* Fiber.interrupt(first)
      const startedAt = Date.now()
      const after = yield* attach(site, requestBody())
      assert.isBelow(Date.now() - startedAt, 5_000)
      assert.strictEqual(after.session.state, "ready")
      // The successor has no grant of the first session: it asks the host again.
      const again = yield* attach(site, body)
      assert.strictEqual(again.grant?.attempt, before.grant?.attempt)
      const status = yield* askStatus(site)
      assert.strictEqual(status.epoch, 2)
      yield* story(site, "RouterElected")
    }).pipe(Effect.scoped)
  )

  it.effect("answers a request once, however often it is sent at the same time", () =>
    Effect.gen(function* () {
      const site = newSite()
      yield* startRouter(site)
      const host = yield* startTestHost({ site, host: HOST, gpus: [gpu(1), gpu(2), gpu(3)] })
      yield* eventually(askHosts(site), (hosts) => hosts.length === 1)
      const body = requestBody()
      const answers = yield* Effect.all(
        Array.from({ length: 5 }, () => askSession(site, body)),
        { concurrency: "unbounded" }
      )
      assert.isTrue(answers.every(({ _tag }) => _tag === "Ok"))
      assert.strictEqual(host.sessions.size, 1)
    }).pipe(Effect.scoped)
  )

  it.effect("tells its health and its metrics over HTTP", () =>
    Effect.gen(function* () {
      const site = newSite()
      const port = yield* Effect.promise(freePort)
      yield* startRouter(site, { monitor: { port } })
      yield* startTestHost({ site, host: HOST, gpus: [gpu(1)] })
      yield* eventually(askHosts(site), (hosts) => hosts.length === 1)
      yield* attach(site, requestBody())
      yield* Effect.flip(attach(site, requestBody()))
      const get = (path: string) =>
        Effect.promise(async () => {
          const response = await fetch(`http://127.0.0.1:${port}${path}`)
          return [response.status, await response.text()] as const
        })
      assert.strictEqual((yield* get("/healthz"))[0], 200)
      assert.strictEqual((yield* get("/readyz"))[0], 200)
      assert.strictEqual((yield* get("/else"))[0], 404)
      const [, metrics] = yield* get("/metrics")
      assert.match(metrics, /juice_placements_total\{.*result="placed".*\} \d/)
      assert.match(metrics, /juice_placements_total\{.*result="rejected".*\} \d/)
      assert.match(metrics, new RegExp(`juice_sessions_active\\{.*site="${site}".*state="ready".*\\} 1`))
      assert.match(metrics, /juice_placement_duration_seconds_count/)
      assert.match(metrics, /juice_router_leading\S* 1/)
    }).pipe(Effect.scoped)
  )

  it.effect("takes no new sessions when the log is nearly full, and still ends those that run", () =>
    Effect.gen(function* () {
      const site = newSite()
      yield* startRouter(site, { logBytes: 20_000 })
      const host = yield* startTestHost({ site, host: HOST, gpus: [gpu(1)] })
      yield* eventually(askHosts(site), (hosts) => hosts.length === 1)
      const turn = Effect.gen(function* () {
        const body = requestBody()
        yield* attach(site, body)
        return body
      })
      let running = yield* turn
      while (true) {
        yield* host.end(running.session, "client-exit")
        yield* eventually(askHosts(site), ([view]) => view?.sessions === 0)
        const next = yield* Effect.result(turn)
        if (next._tag === "Failure") {
          assert.strictEqual((next.failure as { _tag?: string })._tag, "LogFull")
          break
        }
        running = next.success
      }
    }).pipe(Effect.scoped)
  )
})

layer(layerTestNatsServerWith({ jetstream: false }), { excludeTestServices: true })(
  "a server without JetStream",
  (it) => {
    it.effect("is no place for a router, and it says so in time", () =>
      Effect.gen(function* () {
        const { url } = yield* TestNatsServer
        const error = yield* Effect.flip(
          Effect.provide(runRouter({ site: newSite(), logBytes: 1 << 20 }), layerNats({ servers: url, name: "test" }))
        )
        assert.strictEqual(error._tag, "NoJetStream")
      })
    )
  }
)

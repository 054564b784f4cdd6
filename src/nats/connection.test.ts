import { assert, describe, it, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { mintRouterId } from "../protocol/ids.ts"
import { LEASE_TTL } from "../protocol/limits.ts"
import { inboxPrefix, type Principal, type Site } from "../protocol/tokens.ts"
import { layerNats, Nats, type NatsOptions } from "./connection.ts"
import { Lease, layerLease } from "./lease.ts"
import { serve, serveMicro } from "./requests.ts"
import { freePort, layerTestNatsServer, layerTestNatsServerWith, TestNatsServer } from "./test-server.ts"

const bytes = (text: string) => new TextEncoder().encode(text)
const text = (body: Uint8Array) => new TextDecoder().decode(body)

/** A connection of its own to the test's server. */
const connected = (options: Partial<NatsOptions> = {}, login = "") =>
  Layer.unwrap(
    Effect.map(TestNatsServer, ({ url }) =>
      layerNats({ servers: url.replace("nats://", `nats://${login}`), name: "test", ...options })
    )
  )

describe("a connection", () => {
  it.live("to where no server is fails at once and says what to do", () =>
    Effect.gen(function* () {
      const port = yield* Effect.promise(freePort)
      const error = yield* Effect.flip(
        Effect.scoped(Layer.build(layerNats({ servers: `nats://127.0.0.1:${port}`, name: "test" })))
      )
      assert.strictEqual(error._tag, "NoNatsServer")
      assert.include(error.message, `127.0.0.1:${port}`)
      assert.include(error.message, "juice up")
    })
  )
})

const users = `
  authorization {
    users = [
      { user: "alice", password: "a", permissions: { publish: ["shared.>", "_INBOX_bob.>"], subscribe: ["_INBOX_alice.>", "shared.>"] } }
      { user: "bob", password: "b", permissions: { publish: ["shared.>"], subscribe: ["_INBOX_bob.>"] } }
    ]
  }`

layer(layerTestNatsServerWith({ jetstream: false, config: users }), { excludeTestServices: true })(
  "connections with credentials",
  (it) => {
    it.effect("are refused when those are wrong, without giving the password away", () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(Effect.scoped(Layer.build(connected({}, "alice:secret@"))))
        assert.strictEqual(error._tag, "NatsRefused")
        assert.notInclude(error.message, "secret")
      })
    )

    it.effect("are the principal of their user, and get answers under its own inboxes only", () =>
      Effect.gen(function* () {
        const alice = yield* Layer.build(connected({}, "alice:a@"))
        const bob = yield* Layer.build(connected({}, "bob:b@"))
        yield* Effect.gen(function* () {
          const nats = yield* Nats
          assert.strictEqual(nats.principal, "alice")
          yield* serve({ subject: "shared.echo", handler: ({ body }) => Effect.succeed(body) })
        }).pipe(Effect.provideContext(alice))
        yield* Effect.gen(function* () {
          const nats = yield* Nats
          assert.strictEqual(text(yield* nats.request("shared.echo", bytes("hello"), 2_000)), "hello")
          // Another's inboxes are closed to him.
          const spying = nats.connection.subscribe(`${inboxPrefix("alice" as Principal)}.>`)
          const outcome = yield* Effect.promise(async () => {
            try {
              for await (const _ of spying) return "heard"
              return "closed"
            } catch {
              return "denied"
            }
          })
          assert.strictEqual(outcome, "denied")
        }).pipe(Effect.provideContext(bob))
      }).pipe(Effect.scoped)
    )
  }
)

layer(layerTestNatsServer, { excludeTestServices: true })("requests", (it) => {
  it.effect("fail by name: nobody listens, or no answer in time", () =>
    Effect.gen(function* () {
      const nats = yield* Nats
      const nobody = yield* Effect.flip(nats.request("nobody.here", bytes(""), 1_000))
      assert.strictEqual(nobody.reason._tag, "NoResponders")
      yield* serve({ subject: "silent", handler: () => Effect.succeed(undefined) })
      const late = yield* Effect.flip(nats.request("silent", bytes(""), 100))
      assert.strictEqual(late.reason._tag, "TimedOut")
    }).pipe(Effect.scoped, Effect.provide(connected()))
  )

  it.effect("are answered by services that can be discovered, and not after their scope", () =>
    Effect.gen(function* () {
      const nats = yield* Nats
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* serveMicro({
            name: "juice-test",
            version: "0.1.0",
            description: "a test",
            metadata: {},
            endpoints: [{ subject: "svc.*.noun.verb", handler: ({ subject }) => Effect.succeed(bytes(subject)) }]
          })
          assert.strictEqual(text(yield* nats.request("svc.a.noun.verb", bytes(""), 1_000)), "svc.a.noun.verb")
          const info = text(yield* nats.request("$SRV.INFO.juice-test", bytes(""), 1_000))
          assert.include(info, "noun-verb")
        })
      )
      const gone = yield* Effect.flip(nats.request("svc.a.noun.verb", bytes(""), 1_000))
      assert.strictEqual(gone.reason._tag, "NoResponders")
    }).pipe(Effect.provide(connected()))
  )
})

layer(layerTestNatsServer, { excludeTestServices: true })("the lease", (it) => {
  it.effect("is held by one, kept while it is renewed, and taken by the next when it is given back", () =>
    Effect.gen(function* () {
      const lease = yield* Lease
      const [a, b] = [mintRouterId(1), mintRouterId(2)]
      const first = yield* Effect.forkChild(Effect.scoped(Effect.andThen(lease.hold(a), Effect.never)))
      yield* Effect.sleep(200)
      assert.strictEqual(yield* lease.holder, a)
      const second = yield* Effect.forkChild(Effect.scoped(Effect.andThen(lease.hold(b), lease.holder)))
      yield* Effect.sleep(LEASE_TTL + 500)
      assert.strictEqual(yield* lease.holder, a, "it outlives its time to live")
      yield* Fiber.interrupt(first)
      assert.strictEqual(yield* Fiber.join(second), b)
    }).pipe(Effect.provide(layerLease("l1" as Site)), Effect.provide(connected()))
  )

  it.effect("is lost when somebody takes it away", () =>
    Effect.gen(function* () {
      const lease = yield* Lease
      const nats = yield* Nats
      const held = yield* lease.hold(mintRouterId())
      yield* Effect.promise(() => nats.manager.streams.purge("KV_JUICE_LEASE_L2"))
      yield* held.lost
    }).pipe(Effect.scoped, Effect.provide(layerLease("l2" as Site)), Effect.provide(connected()))
  )
})

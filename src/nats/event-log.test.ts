import { assert, describe, it, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import type { Site } from "../protocol/tokens.ts"
import { layerNats, Nats } from "./connection.ts"
import { EventLog, layerEventLog, layerEventLogMemory } from "./event-log.ts"
import { ensureStream, wantedLog } from "./streams.ts"
import { layerTestNatsServer, TestNatsServer } from "./test-server.ts"

const bytes = (text: string) => new TextEncoder().encode(text)
const text = (body: Uint8Array) => new TextDecoder().decode(body)

/** What every event log must do. `fresh` gives each test a log of its own. */
const suite = <R>(
  test: {
    effect: (name: string, self: () => Effect.Effect<void, unknown, R>) => void
  },
  fresh: <A>(effect: Effect.Effect<A, unknown, EventLog>) => Effect.Effect<A, unknown, R>
) => {
  test.effect("gives each append the sequence after the expected one", () =>
    fresh(
      Effect.gen(function* () {
        const log = yield* EventLog
        assert.strictEqual(yield* log.append(bytes("a"), 0), 1)
        assert.strictEqual(yield* log.append(bytes("b"), 1), 2)
        assert.strictEqual(text((yield* log.at(2))!.body), "b")
        assert.isUndefined(yield* log.at(3))
        assert.strictEqual((yield* log.extent).last, 2)
      })
    )
  )

  test.effect("refuses an append whose place another message has", () =>
    fresh(
      Effect.gen(function* () {
        const log = yield* EventLog
        yield* log.append(bytes("mine"), 0)
        const error = yield* Effect.flip(log.append(bytes("other"), 0))
        assert.strictEqual(error.reason._tag, "WrongLastSequence")
        assert.strictEqual((yield* log.extent).last, 1)
      })
    )
  )

  test.effect("reads to the present end, from any sequence, also when it is empty", () =>
    fresh(
      Effect.gen(function* () {
        const log = yield* EventLog
        const read = (from: number) =>
          Stream.runCollect(log.read({ from, follow: false })).pipe(
            Effect.map((messages) => messages.map(({ body }) => text(body)).join(""))
          )
        assert.strictEqual(yield* read(1), "")
        for (const [index, letter] of ["a", "b", "c"].entries()) yield* log.append(bytes(letter), index)
        assert.strictEqual(yield* read(1), "abc")
        assert.strictEqual(yield* read(3), "c")
        assert.strictEqual(yield* read(4), "")
      })
    )
  )

  test.effect("delivers to followers what comes, in order", () =>
    fresh(
      Effect.gen(function* () {
        const log = yield* EventLog
        yield* log.append(bytes("a"), 0)
        const follower = yield* Effect.forkChild(
          log.read({ from: 1, follow: true }).pipe(Stream.take(3), Stream.runCollect)
        )
        yield* log.append(bytes("b"), 1)
        yield* log.append(bytes("c"), 2)
        const messages = yield* Fiber.join(follower)
        assert.deepStrictEqual(
          messages.map(({ sequence, body }) => [sequence, text(body)]),
          [
            [1, "a"],
            [2, "b"],
            [3, "c"]
          ]
        )
      })
    )
  )
}

describe("the event log in memory", () => {
  suite<never>(it as never, (effect) => effect.pipe(Effect.provide(layerEventLogMemory("TEST"))))
})

let sites = 0
const site = () => `t${++sites}` as Site
const Live = Layer.unwrap(Effect.map(TestNatsServer, ({ url }) => layerNats({ servers: url, name: "test" }))).pipe(
  Layer.provideMerge(layerTestNatsServer)
)

layer(Live, { excludeTestServices: true })("the event log on a real server", (it) => {
  suite<Nats>(it as never, (effect) =>
    Effect.suspend(() => effect.pipe(Effect.provide(layerEventLog({ site: site(), maxBytes: 1 << 20 }))))
  )

  it.effect("takes its own stored message for a success when the answer was lost", () =>
    Effect.gen(function* () {
      const log = yield* EventLog
      yield* log.append(bytes("same"), 0)
      // What a retry after a lost answer looks like: the same body at the same place.
      assert.strictEqual(yield* log.append(bytes("same"), 0), 1)
      assert.strictEqual((yield* log.extent).last, 1)
    }).pipe(Effect.provide(layerEventLog({ site: site(), maxBytes: 1 << 20 })))
  )

  it.effect("lets only one of two writers with the same expectation win", () =>
    Effect.gen(function* () {
      const log = yield* EventLog
      const results = yield* Effect.forEach(
        ["a", "b", "c", "d"],
        (letter) => Effect.result(log.append(bytes(letter), 0)),
        {
          concurrency: "unbounded"
        }
      )
      assert.strictEqual(results.filter(({ _tag }) => _tag === "Success").length, 1)
    }).pipe(Effect.provide(layerEventLog({ site: site(), maxBytes: 1 << 20 })))
  )

  it.effect("can be neither purged nor thinned out", () =>
    Effect.gen(function* () {
      const log = yield* EventLog
      const nats = yield* Nats
      yield* log.append(bytes("a"), 0)
      const manager = nats.manager
      const purged = yield* Effect.exit(Effect.tryPromise(() => manager.streams.purge(log.stream)))
      const deleted = yield* Effect.exit(Effect.tryPromise(() => manager.streams.deleteMessage(log.stream, 1)))
      assert.strictEqual(purged._tag, "Failure")
      assert.strictEqual(deleted._tag, "Failure")
    }).pipe(Effect.provide(layerEventLog({ site: site(), maxBytes: 1 << 20 })))
  )

  it.effect("is not used when the server keeps its stream otherwise than it must be", () =>
    Effect.gen(function* () {
      const here = site()
      const nats = yield* Nats
      const manager = nats.manager
      const wanted = wantedLog(here, 1)
      yield* Effect.promise(() => manager.streams.add({ ...wanted, deny_purge: false }))
      const error = yield* Effect.flip(ensureStream(wanted))
      assert.strictEqual(error.reason._tag, "WrongConfiguration")
      assert.include(error.message, "deny_purge")
      const opened = yield* Effect.exit(Layer.build(layerEventLog({ site: here })))
      assert.strictEqual(opened._tag, "Failure")
    })
  )

  it.effect("refuses what is new when it is full, and forgets nothing", () =>
    Effect.gen(function* () {
      const log = yield* EventLog
      yield* log.append(bytes("a".repeat(600)), 0)
      const error = yield* Effect.flip(log.append(bytes("b".repeat(600)), 1))
      assert.strictEqual(error.reason._tag, "Full")
      assert.strictEqual((yield* log.extent).last, 1)
    }).pipe(Effect.provide(layerEventLog({ site: site(), maxBytes: 1_000 })))
  )

  it.effect("goes on across a killed and restarted server: the append that was under way, and the follower", () =>
    Effect.gen(function* () {
      const log = yield* EventLog
      const server = yield* TestNatsServer
      yield* log.append(bytes("a"), 0)
      const follower = yield* Effect.forkChild(
        log.read({ from: 1, follow: true }).pipe(Stream.take(3), Stream.runCollect)
      )
      yield* server.kill
      const appending = yield* Effect.forkChild(log.append(bytes("b"), 1))
      yield* Effect.sleep(300)
      yield* server.restart
      assert.strictEqual(yield* Fiber.join(appending), 2)
      yield* log.append(bytes("c"), 2)
      const messages = yield* Fiber.join(follower)
      assert.strictEqual(messages.map(({ body }) => text(body)).join(""), "abc")
    }).pipe(Effect.provide(layerEventLog({ site: site(), maxBytes: 1 << 20 })))
  )
})

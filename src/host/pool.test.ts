import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as References from "effect/References"
import * as Scope from "effect/Scope"
import { makePool } from "./pool.ts"
import { CONTEXT_BYTES, FakeAddon } from "./test/fake-addon.ts"
import { startWorker } from "./worker.ts"

const GPU = ["GPU-00000000-0000-0000-0000-000000000001", "GPU-00000000-0000-0000-0000-000000000002"] as const

const poolOf = (addon: FakeAddon, size: number) =>
  makePool({
    size,
    stocked: GPU,
    start: (uuids) => startWorker(addon, { path: "worker", args: [], env: { CUDA_VISIBLE_DEVICES: uuids.join(",") } })
  })

/** What took workers from the pool ends them before the pool ends. */
const withTakersGone = (addon: FakeAddon) =>
  Effect.addFinalizer(() =>
    Effect.sync(() => {
      for (const worker of [...addon.alive]) worker.exit(null, 9)
    })
  )

const until = (condition: () => boolean): Effect.Effect<void> =>
  Effect.gen(function* () {
    while (!condition()) yield* Effect.sleep(2)
  }).pipe(Effect.timeoutOrElse({ duration: 10_000, orElse: () => Effect.die(new Error(`never: ${condition}`)) }))

describe("the pool of ready workers", () => {
  it.live("stocks each GPU once it has been looked at, and again after each take", () =>
    Effect.gen(function* () {
      const addon = new FakeAddon()
      const pool = yield* poolOf(addon, 2)
      yield* withTakersGone(addon)
      assert.equal((yield* pool.look([GPU[0]])).contextBytes, CONTEXT_BYTES)
      yield* until(() => addon.alive.length === 2)
      const worker = yield* pool.take([GPU[0]])
      assert.equal(worker.pid, addon.workers[0]!.pid)
      yield* until(() => addon.alive.length === 3)
      yield* Effect.sleep(20)
      assert.equal(addon.alive.length, 3)
    }).pipe(Effect.scoped)
  )

  it.live("starts a worker cold when there is none ready, and for several GPUs", () =>
    Effect.gen(function* () {
      const addon = new FakeAddon()
      const pool = yield* poolOf(addon, 0)
      yield* withTakersGone(addon)
      const one = yield* pool.take([GPU[1]])
      assert.isFalse(one.isGone())
      yield* pool.take([GPU[1], GPU[0]])
      assert.deepEqual(
        addon.alive.map(({ uuids }) => uuids.length),
        [1, 2]
      )
    }).pipe(Effect.scoped)
  )

  it.live("keeps no worker of a look when it stocks none", () =>
    Effect.gen(function* () {
      const addon = new FakeAddon()
      const pool = yield* poolOf(addon, 0)
      yield* pool.look([GPU[0]])
      yield* until(() => addon.alive.length === 0)
      yield* pool.look([GPU[0]])
      assert.equal(addon.workers.length, 1)
    }).pipe(Effect.scoped)
  )

  it.live("never hands out a worker that has died in the stock", () =>
    Effect.gen(function* () {
      const addon = new FakeAddon()
      const pool = yield* poolOf(addon, 1)
      yield* withTakersGone(addon)
      yield* pool.look([GPU[0]])
      addon.workers[0]!.exit(null, 11)
      yield* Effect.sleep(5)
      const worker = yield* pool.take([GPU[0]])
      assert.notEqual(worker.pid, addon.workers[0]!.pid)
      assert.isFalse(worker.isGone())
    }).pipe(Effect.scoped)
  )

  it.live("says why a driver does not start", () =>
    Effect.gen(function* () {
      const addon = new FakeAddon()
      addon.failure = "CUDA_ERROR_NO_DEVICE"
      const pool = yield* poolOf(addon, 1)
      const error = yield* Effect.flip(pool.take([GPU[0]]))
      assert.match(error.message, /CUDA_ERROR_NO_DEVICE/)
    }).pipe(Effect.scoped, Effect.provideService(References.MinimumLogLevel, "None"))
  )

  it.live("ends its stock with its scope, which waits for the end of what it gave away", () =>
    Effect.gen(function* () {
      const addon = new FakeAddon()
      const scope = yield* Scope.make()
      const pool = yield* Scope.provide(poolOf(addon, 1), scope)
      const taken = yield* pool.take([GPU[0]])
      yield* until(() => addon.alive.length === 2)
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
      yield* until(() => addon.alive.length === 1)
      assert.isFalse(taken.isGone())
      assert.isUndefined(closing.pollUnsafe())
      taken.kill()
      yield* Fiber.join(closing)
      assert.equal(addon.alive.length, 0)
    })
  )
})

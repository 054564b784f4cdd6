/**
 * Ready workers: started, their driver up and a context made, waiting for a client process. A process then gets its
 * GPU in the time of one message instead of the driver's start.
 *
 * Each ready worker costs a context's memory on its GPUs, so only single GPUs are stocked, `size` workers each; a
 * session of several GPUs starts its workers cold.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { WorkerFailed } from "./errors.ts"
import type { Worker, WorkerReady } from "./worker.ts"

/** Milliseconds for a driver to come up. */
const READY_TIMEOUT = 60_000
/** After a worker that failed to start, the stock is left alone for this long (ms). */
const REST_AFTER_FAILURE = 2_000
/** How long the pool's end waits for its workers' (ms): a driver may take a moment to let its GPU go. */
const LEAVE_TIMEOUT = 5_000

export interface PoolOptions {
  /** Ready workers for each stocked GPU; 0 starts every worker cold. */
  readonly size: number
  readonly stocked: ReadonlyArray<string>
  /** Starts a worker that sees exactly these GPUs, in this order. */
  readonly start: (uuids: ReadonlyArray<string>) => Effect.Effect<Worker, WorkerFailed>
}

export interface Pool {
  /** A ready worker for these GPUs, from the stock or started for the occasion. It is the caller's from here on. */
  readonly take: (uuids: ReadonlyArray<string>) => Effect.Effect<Worker, WorkerFailed>
  /** What a ready worker for these GPUs has told of them. */
  readonly look: (uuids: ReadonlyArray<string>) => Effect.Effect<WorkerReady, WorkerFailed>
}

const keyOf = (uuids: ReadonlyArray<string>): string => uuids.join(",")

/**
 * A pool whose stock ends with the scope, which closes only when every worker it ever gave is gone: who waits for the
 * host's end may rely on the GPUs being free. `look` waits for a GPU's first worker, the rest come in the
 * background.
 */
export const makePool = Effect.fnUntraced(function* (options: PoolOptions): Effect.fn.Return<Pool, never, Scope.Scope> {
  const stock = new Map<string, Array<Worker>>(options.stocked.map((uuid) => [uuid, []]))
  /** Workers under way to the stock. */
  const coming = new Map<string, number>()
  const facts = new Map<string, WorkerReady>()
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const living = new Set<Worker>()
  let closed = false

  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      closed = true
      for (const worker of [...stock.values()].flat()) worker.kill()
      return Effect.forEach(living, (worker) => worker.gone, { concurrency: "unbounded" }).pipe(
        Effect.timeoutOption(LEAVE_TIMEOUT)
      )
    })
  )

  const startReady = Effect.fnUntraced(function* (uuids: ReadonlyArray<string>) {
    const worker = yield* options.start(uuids)
    living.add(worker)
    run(
      Effect.andThen(
        worker.gone,
        Effect.sync(() => living.delete(worker))
      )
    )
    const ready = yield* worker.ready.pipe(
      Effect.timeoutOrElse({
        duration: READY_TIMEOUT,
        orElse: () => Effect.fail(new WorkerFailed({ detail: `its driver was not up after ${READY_TIMEOUT / 1000} s` }))
      }),
      Effect.tapError(() => Effect.sync(worker.kill)),
      Effect.onInterrupt(() => Effect.sync(worker.kill))
    )
    facts.set(keyOf(uuids), ready)
    return worker
  })

  const put = (uuid: string, worker: Worker) => {
    const shelf = stock.get(uuid)
    if (shelf === undefined || closed) return worker.kill()
    shelf.push(worker)
    worker.listen({
      onMessage: () => {},
      onExit: () => {
        const at = shelf.indexOf(worker)
        if (at < 0) return
        shelf.splice(at, 1)
        if (!closed) run(Effect.delay(refill(uuid), REST_AFTER_FAILURE))
      }
    })
  }

  const refill = (uuid: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      const there = (stock.get(uuid)?.length ?? options.size) + (coming.get(uuid) ?? 0)
      if (closed || there >= options.size) return Effect.void
      coming.set(uuid, (coming.get(uuid) ?? 0) + 1)
      return startReady([uuid]).pipe(
        Effect.ensuring(Effect.sync(() => coming.set(uuid, coming.get(uuid)! - 1))),
        Effect.matchEffect({
          onSuccess: (worker) => Effect.sync(() => put(uuid, worker)),
          onFailure: (error) => Effect.logWarning(error.message).pipe(Effect.andThen(Effect.sleep(REST_AFTER_FAILURE)))
        }),
        Effect.andThen(refill(uuid))
      )
    })

  const fromStock = (key: string): Worker | undefined => {
    const shelf = stock.get(key) ?? []
    while (shelf.length > 0) {
      const worker = shelf.shift()!
      if (!worker.isGone()) return worker
    }
    return undefined
  }

  const look = (uuids: ReadonlyArray<string>): Effect.Effect<WorkerReady, WorkerFailed> =>
    Effect.suspend(() => {
      const known = facts.get(keyOf(uuids))
      if (known !== undefined) return Effect.succeed(known)
      return startReady(uuids).pipe(
        Effect.map((worker) => {
          const key = keyOf(uuids)
          if ((stock.get(key)?.length ?? options.size) < options.size) put(key, worker)
          else worker.kill()
          if (stock.has(key)) run(refill(key))
          return facts.get(key)!
        })
      )
    })

  const take = (uuids: ReadonlyArray<string>): Effect.Effect<Worker, WorkerFailed> =>
    Effect.suspend(() => {
      const key = keyOf(uuids)
      const worker = fromStock(key)
      if (stock.has(key)) run(refill(key))
      return worker === undefined ? startReady(uuids) : Effect.succeed(worker)
    })

  return { take, look }
})

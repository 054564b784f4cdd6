import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import { type EventLog, makeMemoryLog } from "../nats/event-log.ts"
import { type Commit, decodeCommit, genesis } from "../protocol/commit.ts"
import { NO_USAGE } from "../protocol/gpu.ts"
import { type HostId, mintCommandId, mintIncarnation, mintRouterId } from "../protocol/ids.ts"
import type { Report, ReportBody } from "../protocol/reports.ts"
import type { Principal } from "../protocol/tokens.ts"
import { type Committer, makeCommitter } from "./committer.ts"
import { emptyState } from "./state.ts"
import { gpu, requestBody } from "./testing.ts"

const STREAM = "JUICE_LOG_TEST_1"
const HOST = "gpu1" as HostId
const incarnation = mintIncarnation()

const start = (log: EventLog["Service"]) =>
  makeCommitter({
    log,
    state: emptyState(1, genesis(STREAM)),
    code: genesis("code"),
    bytes: 0,
    onStored: () => Effect.void
  })

const report = (n: number, body: ReportBody): Report => ({ host: HOST, incarnation, n, at: 0, body })
const joined = (gpus: number): ReportBody => ({
  _tag: "host.joined",
  version: "0.1.0",
  endpoint: { host: "h", port: 1 },
  gpus: Array.from({ length: gpus }, (_, n) => gpu(n)),
  labels: {},
  sessions: []
})

const elect = (committer: Committer) =>
  committer.submit({ _tag: "router.elect", id: mintCommandId(), router: mintRouterId(), version: "0.1.0" })
const request = (committer: Committer) =>
  committer.submit({ _tag: "session.request", principal: "dev" as Principal, ...requestBody() })

const commits = (log: EventLog["Service"]): Effect.Effect<ReadonlyArray<Commit>> =>
  Effect.gen(function* () {
    const { last } = yield* log.extent
    return yield* Effect.forEach(
      Array.from({ length: last }, (_, n) => n + 1),
      (sequence) => Effect.map(log.at(sequence), (message) => Result.getOrThrow(decodeCommit(message!.body)))
    )
  }).pipe(Effect.orDie)

describe("the committer", () => {
  it.live("decides what arrives together on top of each other, in one commit", () =>
    Effect.gen(function* () {
      const log = makeMemoryLog(STREAM)
      const committer = yield* start(log)
      const run = yield* Effect.forkChild(committer.run)
      yield* elect(committer)
      yield* committer.offerReport({ offset: 1, report: report(1, joined(2)) })
      const outcomes = yield* Effect.all([request(committer), request(committer), request(committer)], {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual(
        outcomes.map(({ _tag }) => _tag),
        ["Committed", "Committed", "Rejected"]
      )
      const written = yield* commits(log)
      assert.isAtMost(written.length, 3)
      assert.strictEqual(written.at(-1)?.reportOffset, 1)
      assert.strictEqual(written.at(-1)?.epoch, 1)
      yield* Fiber.interrupt(run)
    })
  )

  it.live("stops at once when another writes to the log", () =>
    Effect.gen(function* () {
      const log = makeMemoryLog(STREAM)
      const committer = yield* start(log)
      const run = yield* Effect.forkChild(Effect.flip(committer.run))
      yield* elect(committer)
      yield* log.append(new TextEncoder().encode("{}"), 1)
      yield* Effect.forkChild(elect(committer))
      const error = yield* Fiber.join(run)
      assert.strictEqual(error._tag === "NatsError" && error.reason._tag, "WrongLastSequence")
    })
  )

  it.live("holds early reports back, takes them in order, and its offset does not pass them", () =>
    Effect.gen(function* () {
      const log = makeMemoryLog(STREAM)
      const committer = yield* start(log)
      const run = yield* Effect.forkChild(committer.run)
      yield* committer.offerReport({ offset: 1, report: report(1, joined(1)) })
      yield* committer.offerReport({ offset: 2, report: report(3, { _tag: "host.left" }) })
      yield* committer.offerReport({ offset: 3, report: report(1, joined(1)) })
      yield* elect(committer)
      assert.strictEqual((yield* commits(log)).at(-1)?.reportOffset, 1)
      yield* committer.offerReport({ offset: 4, report: report(2, { _tag: "host.draining" }) })
      yield* request(committer)
      const written = yield* commits(log)
      const reports = written.flatMap(({ entries }) =>
        entries.flatMap((entry) => ("report" in entry ? [entry.report.n] : []))
      )
      assert.deepStrictEqual(reports, [1, 2, 3])
      assert.strictEqual(written.at(-1)?.reportOffset, 4)
      yield* Fiber.interrupt(run)
    })
  )

  it.live("splits what does not fit into one commit, and loses nothing", () =>
    Effect.gen(function* () {
      const log = makeMemoryLog(STREAM)
      const committer = yield* start(log)
      const run = yield* Effect.forkChild(committer.run)
      yield* committer.offerReport({ offset: 1, report: report(1, joined(60)) })
      yield* elect(committer)
      const bodies = Array.from({ length: 300 }, (_, n): ReportBody => {
        const session = requestBody().session
        return { _tag: "session.ended", session, attempt: n, reason: "client-exit", usage: NO_USAGE }
      })
      for (const [n, body] of bodies.entries()) {
        yield* committer.offerReport({ offset: n + 2, report: report(n + 2, body) })
      }
      yield* elect(committer)
      const written = yield* commits(log)
      const count = written.flatMap(({ entries }) => entries).filter((entry) => "report" in entry).length
      assert.strictEqual(count, 301)
      assert.isAbove(written.length, 2)
      yield* Fiber.interrupt(run)
    })
  )
})

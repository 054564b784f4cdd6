/**
 * Measures the control plane on this machine, everything on loopback: a private nats-server, one router, one host that
 * is only its control-plane half.
 *
 *   node --import tsx bench/control-plane.ts
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { layerNats } from "../src/nats/connection.ts"
import { EventLog, layerEventLog } from "../src/nats/event-log.ts"
import { layerTestNatsServer, TestNatsServer } from "../src/nats/test-server.ts"
import { genesis } from "../src/protocol/commit.ts"
import { type HostId, mintCommandId, mintIncarnation, type SessionId } from "../src/protocol/ids.ts"
import type { Principal, Site } from "../src/protocol/tokens.ts"
import { verifyLog } from "../src/router/audit.ts"
import { makeCommitter } from "../src/router/committer.ts"
import { fold } from "../src/router/fold.ts"
import { place } from "../src/router/placement/placement.ts"
import { makeReplica } from "../src/router/replica.ts"
import { runRouter } from "../src/router/router.ts"
import { emptyState } from "../src/router/state.ts"
import { askHosts, attach, eventually, gpu, releaseSession, requestBody, startTestHost } from "../src/router/testing.ts"

const HOST = "gpu1" as HostId

const print = (name: string, value: string) => Effect.sync(() => console.log(`${name.padEnd(58)} ${value}`))

const quantiles = (samples: Array<number>): string => {
  samples.sort((a, b) => a - b)
  const at = (part: number) => samples[Math.floor((samples.length - 1) * part)]!.toFixed(2)
  return `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`
}

/** Milliseconds of CPU time, which other programs on the machine do not change much. */
const cpuMs = (work: () => void): number => {
  const before = process.cpuUsage()
  work()
  const { system, user } = process.cpuUsage(before)
  return (system + user) / 1000
}

/** From the request to the grant, one session after another; and back. */
const attaching = Effect.gen(function* () {
  const site = "attach" as Site
  yield* Effect.forkChild(runRouter({ site }))
  yield* startTestHost({ site, host: HOST, gpus: [gpu(1)] })
  yield* eventually(askHosts(site), (hosts) => hosts.length === 1)
  const up: Array<number> = []
  const down: Array<number> = []
  for (let n = 0; n < 300; n++) {
    const body = requestBody()
    const startedAt = performance.now()
    yield* attach(site, body)
    up.push(performance.now() - startedAt)
    const releasedAt = performance.now()
    yield* releaseSession(site, body.session)
    yield* eventually(askHosts(site), ([host]) => host?.sessions === 0)
    down.push(performance.now() - releasedAt)
  }
  yield* print("request to grant (two commits and a prepare)", quantiles(up.slice(20)))
  yield* print("release to free (two commits, a host's report, polled)", quantiles(down.slice(20)))
}).pipe(Effect.scoped)

/** Commands through the committer into JetStream, so many at a time. */
const committing = (concurrency: number) =>
  Effect.gen(function* () {
    const log = yield* EventLog
    const state = emptyState(1, genesis(log.stream))
    const committer = yield* makeCommitter({ log, state, code: genesis("code"), bytes: 0, onStored: () => Effect.void })
    yield* Effect.forkScoped(Effect.tapCause(committer.run, (cause) => Effect.logError("the committer failed", cause)))
    const total = 4_000
    const requests = Array.from({ length: total }, () => requestBody({ waitMs: 1_000 }))
    const startedAt = performance.now()
    yield* Effect.forEach(
      requests,
      (body) => committer.submit({ _tag: "session.request", principal: "dev" as Principal, ...body }),
      { concurrency }
    )
    const seconds = (performance.now() - startedAt) / 1000
    const { last } = yield* log.extent
    yield* print(
      `${concurrency} requests at a time: events, commits`,
      `${Math.round((2 * total) / seconds)}/s, ${Math.round(last / seconds)}/s (${(total / last).toFixed(1)} decisions a commit)`
    )

    const foldedAt = performance.now()
    const replica = yield* makeReplica
    yield* replica.reach(last)
    const foldSeconds = (performance.now() - foldedAt) / 1000
    yield* print("  replica: events read, chained and folded", `${Math.round((2 * total) / foldSeconds)}/s`)
    const auditedAt = performance.now()
    const audited = yield* verifyLog
    yield* print(
      "  audit (chain and invariants)",
      `${Math.round(audited.commits / ((performance.now() - auditedAt) / 1000))} commits/s`
    )
  }).pipe(Effect.scoped, Effect.provide(layerEventLog({ site: `commit-${concurrency}` as Site })))

/** A decision among many hosts, and the bare fold. */
const pure = Effect.gen(function* () {
  const state = emptyState(1, genesis("BENCH"))
  for (let n = 0; n < 10_000; n++) {
    fold(state, {
      _tag: "HostJoined",
      aggregate: "host",
      host: `host${n}` as HostId,
      incarnation: mintIncarnation(),
      version: "0.1.0",
      endpoint: { host: "h", port: 1 },
      gpus: Array.from({ length: 8 }, (_, g) => gpu(g)),
      labels: {},
      sessions: []
    })
  }
  const ask = { request: { count: 2 }, labels: {}, excluded: new Map(), now: 0 }
  const placements = 100
  const placing = cpuMs(() => {
    for (let n = 0; n < placements; n++) place(state.hosts.values(), ask)
  })
  yield* print("placement among 10,000 hosts of 8 GPUs", `${(placing / placements).toFixed(1)} ms of CPU time`)

  const body = requestBody()
  const turns = 200_000
  const cause = mintCommandId()
  const usage = { calls: 0, bytesIn: 0, bytesOut: 0, launches: 0, peakMemory: 0 }
  const folding = cpuMs(() => {
    for (let n = 0; n < turns; n++) {
      const session = n.toString(16).padStart(32, "0") as SessionId
      const requested = { session, principal: "dev" as Principal, gpus: body.gpus, labels: {}, waitMs: 0 }
      const { client, publicKey } = body
      fold(state, { _tag: "SessionRequested", aggregate: "session", ...requested, publicKey, client }, cause)
      fold(state, { _tag: "SessionEnded", aggregate: "session", session, reason: "cancelled", usage })
    }
  })
  yield* print("the bare fold", `${Math.round((2 * turns) / (folding / 1000))} events/s of CPU time`)
})

const raw = Effect.gen(function* () {
  const log = yield* EventLog
  const samples: Array<number> = []
  const body = new Uint8Array(600)
  for (let n = 0; n < 1_000; n++) {
    const startedAt = performance.now()
    yield* log.append(body, n)
    samples.push(performance.now() - startedAt)
  }
  yield* print("append of 600 bytes, one in flight", quantiles(samples))
  const readAt = performance.now()
  yield* Stream.runDrain(log.read({ from: 1, follow: false }))
  yield* print("read of the same", `${Math.round(1_000 / ((performance.now() - readAt) / 1000))} messages/s`)
}).pipe(Effect.provide(layerEventLog({ site: "raw" as Site })))

const Live = Layer.unwrap(Effect.map(TestNatsServer, ({ url }) => layerNats({ servers: url, name: "bench" }))).pipe(
  Layer.provideMerge(layerTestNatsServer)
)

await Effect.runPromise(
  Effect.gen(function* () {
    yield* pure
    yield* raw
    yield* attaching
    for (const concurrency of [1, 16, 256]) yield* committing(concurrency)
  }).pipe(Effect.provide(Live))
)

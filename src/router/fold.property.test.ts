import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as fc from "fast-check"
import type { Command } from "../protocol/commands.ts"
import { type Commit, chainHash, decodeCommit, type Entry, encodeCommit, genesis } from "../protocol/commit.ts"
import { NO_USAGE } from "../protocol/gpu.ts"
import type { CommandId, HostId, Incarnation, SessionId } from "../protocol/ids.ts"
import type { Report, ReportBody } from "../protocol/reports.ts"
import type { Principal } from "../protocol/tokens.ts"
import { decide } from "./decide.ts"
import { decideReport } from "./decide-report.ts"
import { beginCommit, endCommit, foldCommit, foldEntry, reportStanding } from "./fold.ts"
import { violations } from "./invariants.ts"
import { copyState, emptyState, type State } from "./state.ts"
import { GIB, gpu } from "./testing.ts"

const STREAM = "JUICE_LOG_TEST_1"
const hex = (kind: string, n: number) => `${kind}${n.toString(16)}`.padStart(32, "0")
const sessionId = (n: number) => hex("5", n) as SessionId
const hostId = (n: number) => `host${n}` as HostId

/** What may happen next: mostly sensible, and often at the wrong moment. */
type Step =
  | { readonly _tag: "Wait"; readonly ms: number }
  | { readonly _tag: "Command"; readonly command: (id: CommandId, state: State) => Command }
  | {
      readonly _tag: "Report"
      readonly host: number
      readonly body: (state: State) => ReportBody
      readonly rejoin: boolean
    }

const session = fc.nat(7)
const host = fc.nat(2)
const attempt = fc.integer({ min: 1, max: 3 })
const KEY = "A".repeat(43)

const gpus = fc.oneof(
  fc.record({ count: fc.integer({ min: 1, max: 3 }) }),
  fc.record({ count: fc.integer({ min: 1, max: 2 }), vram: fc.integer({ min: 1, max: 20 }).map((n) => n * GIB) }),
  fc.record({ count: fc.integer({ min: 1, max: 2 }), share: fc.constantFrom(0.25, 0.5, 1) })
)

/** The attempt that a session is at, or another. */
const attemptOf = (state: State, n: number, other: number) => state.sessions.get(sessionId(n))?.attempt || other

const command = (make: (id: CommandId, state: State) => Command): Step => ({ _tag: "Command", command: make })
const report = (at: number, body: (state: State) => ReportBody, rejoin = false): Step => ({
  _tag: "Report",
  host: at,
  body,
  rejoin
})

const request = fc
  .record({ n: session, gpus, waitMs: fc.constantFrom(0, 1_000, 100_000), principal: fc.constantFrom("a", "b") })
  .map(({ gpus, n, principal, waitMs }) =>
    command((id) => ({
      _tag: "session.request",
      principal: principal as Principal,
      id,
      session: sessionId(n),
      gpus,
      labels: {},
      waitMs,
      publicKey: KEY,
      client: { version: "0.1.0", capabilities: [] }
    }))
  )

const answers = fc.record({ n: session, other: attempt }).chain(({ n, other }) =>
  fc.constantFrom(
    command((id, state) => ({
      _tag: "session.prepared",
      id,
      session: sessionId(n),
      attempt: attemptOf(state, n, other)
    })),
    command((id, state) => ({
      _tag: "session.refused",
      id,
      session: sessionId(n),
      attempt: attemptOf(state, n, other),
      reason: "no-answer"
    })),
    command((id, state) => ({
      _tag: "session.gone",
      id,
      session: sessionId(n),
      attempt: other,
      incarnation: state.sessions.get(sessionId(n))?.placement?.incarnation ?? (hex("1", 0) as Incarnation)
    }))
  )
)

const wishes = fc.record({ n: session, force: fc.boolean(), principal: fc.constantFrom("a", "b") }).chain((wish) =>
  fc.constantFrom(
    command((id) => ({
      _tag: "session.release",
      principal: wish.principal as Principal,
      id,
      session: sessionId(wish.n),
      force: wish.force
    })),
    command((id) => ({ _tag: "session.expire", id, session: sessionId(wish.n), reason: "wait-over" })),
    command((id) => ({ _tag: "session.expire", id, session: sessionId(wish.n), reason: "client-lost" })),
    command((id) => ({ _tag: "queue.place", id }))
  )
)

const liveness = fc
  .record({ n: host, tag: fc.constantFrom("host.suspect", "host.unknown", "host.seen", "host.fenced") })
  .map(({ n, tag }) =>
    command((id, state) => ({
      _tag: tag as "host.suspect",
      id,
      host: hostId(n),
      incarnation: state.hosts.get(hostId(n))?.incarnation ?? (hex("1", 0) as Incarnation),
      seen: 0
    }))
  )

const sweep = host.map((n) => command((id) => ({ _tag: "host.sweep", id, host: hostId(n) })))

const joined = fc
  .record({ n: host, gpus: fc.integer({ min: 0, max: 3 }), keep: fc.boolean(), rejoin: fc.boolean() })
  .map(({ gpus, keep, n, rejoin }) =>
    report(
      n,
      (state) => ({
        _tag: "host.joined",
        version: "0.1.0",
        endpoint: { host: "h", port: 1 },
        gpus: Array.from({ length: gpus }, (_, g) => gpu(g)),
        labels: {},
        fenceAfterMs: 1_000,
        sessions: keep
          ? [...(state.hosts.get(hostId(n))?.sessions ?? [])].map((id) => ({
              session: id,
              attempt: state.sessions.get(id)?.attempt ?? 1
            }))
          : []
      }),
      rejoin
    )
  )

const told = fc
  .record({ n: host, s: session, other: attempt, process: fc.integer({ min: 1, max: 3 }) })
  .chain((told) => {
    const id = sessionId(told.s)
    const usage = { calls: 1, bytesIn: 2, bytesOut: 3, launches: 4, peakMemory: 5 }
    return fc.constantFrom(
      report(told.n, () => ({ _tag: "process.attached", session: id, process: told.process })),
      report(told.n, () => ({ _tag: "process.ended", session: id, process: told.process, reason: "exit", usage })),
      report(told.n, (state) => ({
        _tag: "session.ended",
        session: id,
        attempt: attemptOf(state, told.s, told.other),
        reason: "client-exit",
        usage: NO_USAGE
      })),
      report(told.n, (state) => ({
        _tag: "session.refused",
        session: id,
        attempt: attemptOf(state, told.s, told.other),
        reason: "draining"
      })),
      report(told.n, () => ({ _tag: "session.interrupted", session: id })),
      report(told.n, () => ({ _tag: "session.resumed", session: id })),
      report(told.n, () => ({ _tag: "host.draining" })),
      report(told.n, () => ({ _tag: "host.left" }))
    )
  })

const wait = fc.constantFrom(10, 900, 12_000).map((ms): Step => ({ _tag: "Wait", ms }))
const steps = fc.array(
  fc.oneof(
    { arbitrary: request, weight: 6 },
    { arbitrary: answers, weight: 6 },
    { arbitrary: wishes, weight: 4 },
    { arbitrary: liveness, weight: 2 },
    { arbitrary: sweep, weight: 2 },
    { arbitrary: joined, weight: 3 },
    { arbitrary: told, weight: 6 },
    { arbitrary: wait, weight: 1 }
  ),
  { minLength: 1, maxLength: 60, size: "max" }
)

interface Written {
  readonly body: Uint8Array
  /** The state after it. */
  readonly state: State
}

/** Runs the steps as a leader would, one commit each, and keeps what it wrote. */
const write = (steps: ReadonlyArray<Step>): ReadonlyArray<Written> => {
  const state = emptyState(1, genesis(STREAM))
  const written: Array<Written> = []
  const hosts = new Map<number, { incarnation: Incarnation; n: number }>()
  let now = 1_000
  for (const [index, step] of steps.entries()) {
    if (step._tag === "Wait") {
      now += step.ms
      continue
    }
    const entry =
      step._tag === "Command" ? commandEntry(state, step, index, now) : reportEntry(state, hosts, step, index, now)
    if (entry === undefined) continue
    const commit: Commit = {
      format: 1,
      code: genesis("code"),
      epoch: state.epoch,
      now,
      seed: index,
      reportOffset: index,
      prev: state.head,
      entries: [entry]
    }
    const body = Result.getOrThrow(encodeCommit(commit))
    beginCommit(state, commit)
    foldEntry(state, entry)
    endCommit(state, commit, state.position.sequence + 1, chainHash(body))
    assert.deepStrictEqual(violations(state), [])
    written.push({ body, state: copyState(state) })
  }
  return written
}

const commandEntry = (
  state: State,
  step: Extract<Step, { _tag: "Command" }>,
  index: number,
  now: number
): Entry | undefined => {
  const command = step.command(hex("c", index) as CommandId, state)
  const before = copyState(state)
  const decision = decide(state, command, now, index)
  assert.deepStrictEqual(state, before, "a decision changes nothing")
  return decision._tag === "Events" && decision.events.length > 0 ? { command, events: decision.events } : undefined
}

const reportEntry = (
  state: State,
  hosts: Map<number, { incarnation: Incarnation; n: number }>,
  step: Extract<Step, { _tag: "Report" }>,
  index: number,
  now: number
): Entry | undefined => {
  const last = hosts.get(step.host)
  const body = step.body(state)
  const fresh = body._tag === "host.joined" && !step.rejoin
  if (last === undefined && body._tag !== "host.joined") return undefined
  const at =
    last === undefined || fresh ? { incarnation: hex("1", index) as Incarnation, n: 1 } : { ...last, n: last.n + 1 }
  hosts.set(step.host, at)
  const report: Report = { host: hostId(step.host), ...at, at: 0, body }
  assert.strictEqual(reportStanding(state, report), "next")
  return { report, events: decideReport(state, report, now, index) }
}

const replay = (bodies: ReadonlyArray<Uint8Array>, from = emptyState(1, genesis(STREAM))): State => {
  let sequence = from.position.sequence
  for (const body of bodies) {
    sequence += 1
    foldCommit(from, Result.getOrThrow(decodeCommit(body)), sequence, chainHash(body))
  }
  return from
}

describe("whatever happens, in whatever order", () => {
  it("GPUs are never over-committed, and decisions change nothing by themselves", () => {
    fc.assert(
      fc.property(steps, (steps) => void write(steps)),
      { numRuns: 100 }
    )
  })

  it("every session that was requested ends at most once, and nothing happens to it afterwards", () => {
    fc.assert(
      fc.property(steps, (steps) => {
        const ended = new Set<string>()
        for (const { body } of write(steps)) {
          for (const { events } of Result.getOrThrow(decodeCommit(body)).entries) {
            for (const event of events) {
              if (event.aggregate !== "session") continue
              assert.isFalse(ended.has(event.session), `${event._tag} after the end of ${event.session}`)
              if (event._tag === "SessionEnded") ended.add(event.session)
            }
          }
        }
      }),
      { numRuns: 60 }
    )
  })

  it("replaying any prefix of the log gives the state that the router had then", () => {
    fc.assert(
      fc.property(steps, fc.nat(), (steps, cut) => {
        const written = write(steps)
        if (written.length === 0) return
        const length = (cut % written.length) + 1
        const bodies = written.slice(0, length).map(({ body }) => body)
        assert.deepStrictEqual(replay(bodies), written[length - 1]!.state)
      }),
      { numRuns: 60 }
    )
  })

  it("a copy of a state and the tail of the log give the same as the whole", () => {
    fc.assert(
      fc.property(steps, fc.nat(), (steps, cut) => {
        const written = write(steps)
        if (written.length === 0) return
        const at = cut % written.length
        const tail = written.slice(at + 1).map(({ body }) => body)
        assert.deepStrictEqual(replay(tail, copyState(written[at]!.state)), written.at(-1)!.state)
      }),
      { numRuns: 60 }
    )
  })

  it("every host that comes back and every session that is released leaves nothing charged in the end", () => {
    fc.assert(
      fc.property(steps, (steps) => {
        const written = write(steps)
        const state = written.at(-1)?.state
        if (state === undefined) return
        // The facts come in: every host leaves, and what waits is cancelled.
        for (const [index, [id, { incarnation, reported }]] of [...state.hosts].entries()) {
          const report: Report = { host: id, incarnation, n: reported + 1, at: 0, body: { _tag: "host.left" } }
          foldEntry(state, { report, events: decideReport(state, report, state.now, index) })
        }
        for (const session of [...state.sessions.values()]) {
          const commands: ReadonlyArray<Command> = [
            {
              _tag: "session.prepared",
              id: hex("d", 1) as CommandId,
              session: session.session,
              attempt: session.attempt
            },
            { _tag: "session.expire", id: hex("d", 2) as CommandId, session: session.session, reason: "client-lost" }
          ]
          for (const command of commands) {
            const decision = decide(state, command, state.now, 0)
            if (decision._tag === "Events") foldEntry(state, { command, events: decision.events })
          }
        }
        for (const id of state.hosts.keys()) {
          const command: Command = { _tag: "host.sweep", id: hex("d", 3) as CommandId, host: id }
          const decision = decide(state, command, state.now, 0)
          if (decision._tag === "Events") foldEntry(state, { command, events: decision.events })
        }
        assert.deepStrictEqual(violations(state), [])
        assert.strictEqual(state.charged.size, 0)
        assert.isTrue([...state.sessions.values()].every(({ state }) => state === "ended"))
      }),
      { numRuns: 60 }
    )
  })
})

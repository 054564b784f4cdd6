/**
 * The audit: walks the whole log and checks it against itself.
 *
 *   the chain       every commit follows from the raw bytes of the one before it
 *   the invariants  hold after every commit
 *   the decisions   come out again as recorded, wherever this very code made them
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import type { NatsError } from "../nats/errors.ts"
import { EventLog } from "../nats/event-log.ts"
import type { Stored } from "../nats/messages.ts"
import { type Commit, chainHash, type Entry, genesis } from "../protocol/commit.ts"
import { ChainBroken, type Malformed, type UnknownFormat } from "../protocol/errors.ts"
import type { Event } from "../protocol/events.ts"
import { codeHash } from "./code-hash.ts"
import { decide } from "./decide.ts"
import { decideReport } from "./decide-report.ts"
import { beginCommit, endCommit, foldEntry } from "./fold.ts"
import { hostViolations, sessionViolations, violations } from "./invariants.ts"
import { linkCommit } from "./replica.ts"
import { emptyState, type Host, type Session, type State } from "./state.ts"

export interface Audited {
  readonly commits: number
  readonly events: number
  /** Decisions that were made again; the others were made by other versions of the code. */
  readonly derived: number
  /** The hash of the last commit. */
  readonly head: string
  readonly state: State
}

/** What the code decides now on a recorded command or report. */
const rederive = (state: State, entry: Entry, now: number, seed: number): ReadonlyArray<Event> => {
  if ("report" in entry) return decideReport(state, entry.report, now, seed)
  const decision = decide(state, entry.command, now, seed)
  return decision._tag === "Events" ? decision.events : []
}

/** The order of an object's keys is no part of its meaning. */
const canonical = (value: unknown): string =>
  JSON.stringify(value, (_, part) =>
    part !== null && typeof part === "object" && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part
  )

/** Everything is looked at after so many commits; after each one, what it touched. */
const WHOLE_EVERY = 1_000

/** What is broken in the sessions and hosts that a commit touched. */
const touchedViolations = (state: State, commit: Commit): ReadonlyArray<string> => {
  const sessions = new Set<Session>()
  const hosts = new Set<Host>()
  const add = <T>(set: Set<T>, value: T | undefined) => value !== undefined && set.add(value)
  for (const event of commit.entries.flatMap(({ events }) => events)) {
    if (event.aggregate === "session") add(sessions, state.sessions.get(event.session))
    if ("host" in event) add(hosts, state.hosts.get(event.host))
  }
  for (const { placement } of sessions) {
    if (placement !== undefined) add(hosts, state.hosts.get(placement.host))
  }
  return [
    ...[...sessions].flatMap((session) => sessionViolations(state, session)),
    ...[...hosts].flatMap((host) => hostViolations(state, host))
  ]
}

/** Folds one commit, checking it; a sentence when something is wrong. */
const check = (state: State, commit: Commit, again: boolean, stored: Stored): string | undefined => {
  beginCommit(state, commit)
  for (const [index, entry] of commit.entries.entries()) {
    if (again) {
      const events = rederive(state, entry, commit.now, commit.seed + index)
      if (canonical(events) !== canonical(entry.events)) {
        return `decision ${index} comes out otherwise: ${canonical(events)}`
      }
    }
    foldEntry(state, entry)
  }
  endCommit(state, commit, stored.sequence, chainHash(stored.body))
  if (state.epoch !== commit.epoch) return `it claims epoch ${commit.epoch} where ${state.epoch} was elected`
  const broken = stored.sequence % WHOLE_EVERY === 0 ? violations(state) : touchedViolations(state, commit)
  return broken[0]
}

/** Verifies the log up to its present end; fails with ChainBroken at the first commit that does not hold. */
export const verifyLog: Effect.Effect<Audited, NatsError | Malformed | UnknownFormat | ChainBroken, EventLog> =
  Effect.gen(function* () {
    const log = yield* EventLog
    const code = yield* codeHash
    const state = emptyState(log.segment, genesis(log.stream))
    let events = 0
    let derived = 0
    yield* log.read({ from: 1, follow: false }).pipe(
      Stream.runForEach((message) =>
        Effect.gen(function* () {
          const linked = linkCommit(state, log.stream, message)
          if (Result.isFailure(linked)) return yield* Effect.fail(linked.failure)
          const commit = linked.success
          const again = commit.code === code
          const detail = check(state, commit, again, message)
          if (detail !== undefined) {
            return yield* new ChainBroken({ stream: log.stream, sequence: message.sequence, detail })
          }
          for (const entry of commit.entries) events += entry.events.length
          if (again) derived += commit.entries.length
        })
      )
    )
    const [broken] = violations(state)
    if (broken !== undefined) {
      return yield* new ChainBroken({ stream: log.stream, sequence: state.position.sequence, detail: broken })
    }
    return { commits: state.position.sequence, events, derived, head: state.head, state }
  })

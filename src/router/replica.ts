/**
 * A replica: the fold of the log as it stands in the stream, kept up to date. Every router has one, leading or not;
 * all answers come from it, so nobody is told what is not stored.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { NatsError } from "../nats/errors.ts"
import { EventLog } from "../nats/event-log.ts"
import type { Stored } from "../nats/messages.ts"
import { type Commit, chainHash, decodeCommit, genesis } from "../protocol/commit.ts"
import { ChainBroken, type Malformed, type UnknownFormat } from "../protocol/errors.ts"
import type { SessionId } from "../protocol/ids.ts"
import { foldCommit } from "./fold.ts"
import { emptyState, type State } from "./state.ts"

/** Why a log cannot be read on. */
export type LogFault = NatsError | Malformed | UnknownFormat | ChainBroken

export interface Replica {
  /** The fold; read it, never change it. */
  readonly state: State
  /** Waits until the log is folded up to this sequence. */
  readonly reach: (sequence: number) => Effect.Effect<void>
  /** Waits until `done()` holds; looked at now and after each commit that has an event of this session. */
  readonly untilSession: (session: SessionId, done: () => boolean) => Effect.Effect<void>
  /** Waits for an election of a later epoch than this. */
  readonly deposed: (epoch: number) => Effect.Effect<void>
  /** Never succeeds; fails when the log cannot be read on. */
  readonly failed: Effect.Effect<never, LogFault>
}

/** Decodes a stored message and checks that it follows from what was folded before. */
export const linkCommit = (
  state: State,
  stream: string,
  message: Stored
): Result.Result<Commit, Malformed | UnknownFormat | ChainBroken> =>
  Result.flatMap(decodeCommit(message.body), (commit): Result.Result<Commit, ChainBroken> => {
    const broken = (detail: string) => Result.fail(new ChainBroken({ stream, sequence: message.sequence, detail }))
    if (message.sequence !== state.position.sequence + 1) return broken("a commit is missing before it")
    if (commit.prev !== state.head) return broken("it does not follow from the commit before it")
    return commit.now < state.now ? broken("it is older than the commit before it") : Result.succeed(commit)
  })

/** Calls whoever waits, once. */
const wake = (waiting: Set<() => void> | undefined): void => {
  if (waiting === undefined) return
  for (const call of [...waiting]) call()
}

/** An effect that completes when `done()` holds; looked at now and whenever `waiting` is woken. */
const until = (waiting: Set<() => void>, done: () => boolean): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    const look = () => {
      if (!done()) return
      waiting.delete(look)
      resume(Effect.void)
    }
    waiting.add(look)
    look()
    return Effect.sync(() => waiting.delete(look))
  })

export const makeReplica: Effect.Effect<Replica, never, EventLog | Scope.Scope> = Effect.gen(function* () {
  const log = yield* EventLog
  const state = emptyState(log.segment, genesis(log.stream))
  const failed = yield* Deferred.make<never, LogFault>()
  const everyone = new Set<() => void>()
  const bySession = new Map<SessionId, Set<() => void>>()

  const take = (message: Stored): Result.Result<void, LogFault> => {
    const linked = linkCommit(state, log.stream, message)
    if (Result.isFailure(linked)) return Result.fail(linked.failure)
    foldCommit(state, linked.success, message.sequence, chainHash(message.body))
    for (const { events } of linked.success.entries) {
      for (const event of events) if (event.aggregate === "session") wake(bySession.get(event.session))
    }
    return Result.void
  }

  const takeAll = (messages: ReadonlyArray<Stored>): Effect.Effect<void, LogFault> =>
    Effect.suspend(() => {
      for (const message of messages) {
        const taken = take(message)
        if (Result.isFailure(taken)) return Effect.fail(taken.failure)
      }
      wake(everyone)
      return Effect.void
    })

  yield* Effect.forkScoped(
    log.read({ from: 1, follow: true }).pipe(
      Stream.runForEachArray(takeAll),
      Effect.catch((fault) => Deferred.fail(failed, fault))
    )
  )

  const untilSession = (session: SessionId, done: () => boolean): Effect.Effect<void> =>
    Effect.suspend(() => {
      const waiting = bySession.get(session) ?? new Set()
      bySession.set(session, waiting)
      const forget = Effect.sync(() => {
        if (waiting.size === 0 && bySession.get(session) === waiting) bySession.delete(session)
      })
      return Effect.ensuring(until(waiting, done), forget)
    })

  return {
    state,
    reach: (sequence) => until(everyone, () => state.position.sequence >= sequence),
    untilSession,
    deposed: (epoch) => until(everyone, () => state.epoch > epoch),
    failed: Deferred.await(failed)
  }
})

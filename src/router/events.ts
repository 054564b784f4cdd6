/**
 * The log for readers: commits and events from a position on, decoded, following or not.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { NatsError } from "../nats/errors.ts"
import { EventLog } from "../nats/event-log.ts"
import type { Position } from "../protocol/answers.ts"
import { type Commit, decodeCommit, entryCause, identified } from "../protocol/commit.ts"
import type { Malformed, UnknownFormat } from "../protocol/errors.ts"
import type { Event } from "../protocol/events.ts"

export interface ReadOptions {
  /** The first sequence to read; 1 by default. */
  readonly from?: number
  /** Whether to go on with what comes later. */
  readonly follow: boolean
}

export type ReadError = NatsError | Malformed | UnknownFormat

/** Commits with their positions. */
export const readCommits = (
  options: ReadOptions
): Stream.Stream<{ readonly position: Position; readonly commit: Commit }, ReadError, EventLog> =>
  Stream.unwrap(
    Effect.map(EventLog, (log) =>
      log.read({ from: options.from ?? 1, follow: options.follow }).pipe(
        Stream.mapEffect(({ body, sequence }) =>
          Effect.map(Effect.fromResult(decodeCommit(body)), (commit) => ({
            position: { segment: log.segment, sequence },
            commit
          }))
        )
      )
    )
  )

/** One event as the log tells it. */
export interface LoggedEvent {
  readonly position: Position
  /** Derived from the cause and the place: unique in the log. */
  readonly id: string
  /** The command's id or the report's key. */
  readonly cause: string
  /** Milliseconds since 1970. */
  readonly at: number
  readonly epoch: number
  readonly event: Event
}

const eventsOf = (position: Position, commit: Commit): ReadonlyArray<LoggedEvent> =>
  commit.entries.flatMap((entry) => {
    const cause = entryCause(entry)
    return identified(entry).map(({ event, id }) => ({
      position,
      id,
      cause,
      at: commit.now,
      epoch: commit.epoch,
      event
    }))
  })

/** Every event, in order. */
export const readEvents = (options: ReadOptions): Stream.Stream<LoggedEvent, ReadError, EventLog> =>
  readCommits(options).pipe(
    Stream.map(({ commit, position }) => eventsOf(position, commit)),
    Stream.flattenIterable
  )

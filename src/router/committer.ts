/**
 * The leader's writer: commands and reports in, commits out.
 *
 * One commit is in flight at a time. What arrives meanwhile is decided together and goes into the next: that is where
 * the throughput comes from. Each decision sees the ones before it, because its events are folded into the working
 * state at once; if the append fails, the working state is thrown away with the leadership.
 */
import { randomInt } from "node:crypto"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type { NatsError } from "../nats/errors.ts"
import type { EventLog } from "../nats/event-log.ts"
import type { ReportMessage } from "../nats/reports.ts"
import type { Command } from "../protocol/commands.ts"
import {
  type CommandEntry,
  type Commit,
  chainHash,
  ENVELOPE_BYTES,
  type Entry,
  encodeCommit,
  entryBytes,
  type ReportEntry
} from "../protocol/commit.ts"
import type { CommitTooLarge, Malformed } from "../protocol/errors.ts"
import type { Event } from "../protocol/events.ts"
import type { HostId } from "../protocol/ids.ts"
import { MAX_COMMIT_BYTES, MAX_WAITING_COMMANDS } from "../protocol/limits.ts"
import type { Report } from "../protocol/reports.ts"
import { decide, type Rejection } from "./decide.ts"
import { decideReport } from "./decide-report.ts"
import { beginCommit, endCommit, foldEntry, reportStanding } from "./fold.ts"
import { HeldReports, type Offered } from "./held-reports.ts"
import type { State } from "./state.ts"

/** What became of a command: its events are stored (none: nothing was to do), or it was rejected. */
export type Outcome =
  | { readonly _tag: "Committed"; readonly events: ReadonlyArray<Event>; readonly sequence: number }
  | { readonly _tag: "Rejected"; readonly rejection: Rejection }

type Item =
  | { readonly _tag: "Command"; readonly command: Command; readonly done: Deferred.Deferred<Outcome> }
  | ({ readonly _tag: "Report" } & ReportMessage)
  /** A report of this host that was held back may be due now. */
  | { readonly _tag: "Held"; readonly host: HostId }

export interface Committer {
  /** The state with every decision made so far, stored or not: for those who decide, never for answers. */
  readonly state: State
  /** Decides a command and waits until the outcome is stored. Waits for ever once the leadership is lost. */
  readonly submit: (command: Command) => Effect.Effect<Outcome>
  readonly offerReport: (message: ReportMessage) => Effect.Effect<void>
  /** Commands and reports that wait. */
  readonly waiting: Effect.Effect<number>
  /** Bytes of the log's stream so far. */
  readonly bytes: () => number
  /** Writes until it must stop: WrongLastSequence when another leader writes. */
  readonly run: Effect.Effect<never, NatsError | CommitTooLarge | Malformed>
}

/** Items that may wait; beyond it those who bring more wait themselves. */
const QUEUE = 4 * MAX_WAITING_COMMANDS
/** NATS adds to each message: subject, headers, index. */
const MESSAGE_OVERHEAD = 200

export const makeCommitter = Effect.fnUntraced(function* (options: {
  readonly log: EventLog["Service"]
  /** The state at the end of the log; the committer's own from now on. */
  readonly state: State
  readonly code: string
  /** Bytes that the stream takes now. */
  readonly bytes: number
  /** Called after each stored commit, in order, before those who wait for it are told. */
  readonly onStored: (entries: ReadonlyArray<Entry>) => Effect.Effect<void>
}): Effect.fn.Return<Committer> {
  const { log, state } = options
  const queue = yield* Queue.bounded<Item>(QUEUE)
  const held = new HeldReports(state.reportOffset)
  let bytes = options.bytes

  const submit = Effect.fnUntraced(function* (command: Command) {
    const done = yield* Deferred.make<Outcome>()
    yield* Queue.offer(queue, { _tag: "Command", command, done })
    return yield* Deferred.await(done)
  })

  /** One commit in the making. */
  interface Draft {
    readonly now: number
    readonly seed: number
    readonly entries: Array<Entry>
    size: number
    readonly outcomes: Array<{ readonly done: Deferred.Deferred<Outcome>; readonly outcome: () => Outcome }>
  }

  /** Adds an entry and folds it, or says that it has no room. */
  const add = (draft: Draft, entry: Entry): boolean => {
    const size = entryBytes(entry)
    if (draft.entries.length > 0 && draft.size + size > MAX_COMMIT_BYTES) return false
    draft.entries.push(entry)
    draft.size += size
    foldEntry(state, entry)
    return true
  }

  const seedOf = (draft: Draft): number => draft.seed + draft.entries.length

  const takeCommand = (draft: Draft, item: Extract<Item, { _tag: "Command" }>): boolean => {
    const decision = decide(state, item.command, draft.now, seedOf(draft))
    if (decision._tag === "Rejected") {
      draft.outcomes.push({ done: item.done, outcome: () => decision })
      return true
    }
    const { events } = decision
    const entry: CommandEntry = { command: item.command, events }
    if (events.length > 0 && !add(draft, entry)) return false
    draft.outcomes.push({
      done: item.done,
      outcome: () => ({ _tag: "Committed", events, sequence: state.position.sequence })
    })
    return true
  }

  const takeReport = (draft: Draft, offered: Offered): boolean => {
    const standing = reportStanding(state, offered.report)
    if (standing === "seen") return true
    if (standing === "early") {
      held.hold(offered)
      return true
    }
    const entry: ReportEntry = {
      report: offered.report,
      events: decideReport(state, offered.report, draft.now, seedOf(draft))
    }
    return add(draft, entry)
  }

  const isDue = (report: Report): boolean => reportStanding(state, report) !== "early"

  /** Takes in one item; false when the commit has no room for it. `next` is what to look at right after it. */
  const take = (draft: Draft, item: Item): { readonly fits: boolean; readonly next?: Item } => {
    if (item._tag === "Command") return { fits: takeCommand(draft, item) }
    if (item._tag === "Report") {
      const { offset, report } = item
      if (report !== undefined && !takeReport(draft, { report, offset })) return { fits: false }
      held.sawOffset(offset)
      return report === undefined ? { fits: true } : { fits: true, next: { _tag: "Held", host: report.host } }
    }
    const due = held.find(item.host, isDue)
    if (due === undefined) return { fits: true }
    if (!takeReport(draft, due)) return { fits: false }
    held.drop(due)
    return { fits: true, next: item }
  }

  const store = Effect.fnUntraced(function* (draft: Draft) {
    const commit: Commit = {
      format: state.format,
      code: options.code,
      epoch: state.epoch,
      now: draft.now,
      seed: draft.seed,
      reportOffset: Math.max(state.reportOffset, held.offset),
      prev: state.head,
      entries: draft.entries
    }
    const body = yield* Effect.fromResult(encodeCommit(commit))
    const sequence = yield* log.append(body, state.position.sequence)
    bytes += body.length + MESSAGE_OVERHEAD
    endCommit(state, commit, sequence, chainHash(body))
    yield* options.onStored(draft.entries)
  })

  const run = Effect.gen(function* () {
    let items: Array<Item> = []
    while (true) {
      if (items.length === 0) items = [...(yield* Queue.takeAll(queue))]
      const now = Math.max(state.now, Date.now())
      const draft: Draft = { now, seed: randomInt(2 ** 32), entries: [], size: ENVELOPE_BYTES, outcomes: [] }
      beginCommit(state, { now })
      let at = 0
      for (; at < items.length; at++) {
        const { fits, next } = take(draft, items[at]!)
        if (!fits) break
        if (next !== undefined) items.splice(at + 1, 0, next)
      }
      items = items.slice(at)
      if (draft.entries.length > 0) yield* store(draft)
      for (const { done, outcome } of draft.outcomes) yield* Deferred.succeed(done, outcome())
    }
  })

  return {
    state,
    submit,
    offerReport: (message) => Effect.asVoid(Queue.offer(queue, { _tag: "Report", ...message })),
    waiting: Queue.size(queue),
    bytes: () => bytes,
    run
  }
})

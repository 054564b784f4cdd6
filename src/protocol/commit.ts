/**
 * The log's message: one commit, as UTF-8 JSON, the whole envelope in the body.
 *
 * A commit holds one or more entries, each a command or a report and the events that it led to, so a decision that
 * makes several events is atomic on every server version, and several decisions can share one message.
 *
 * `prev` chains them: SHA-256 over the previous message's raw stored body; for the first message of a stream, over the
 * stream's name. Never over a decoded form, which changes when formats do.
 */
import { createHash } from "node:crypto"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { parseJson } from "./codec.ts"
import { Command } from "./commands.ts"
import { CommitTooLarge, Malformed, UnknownFormat } from "./errors.ts"
import { Event, Millis } from "./events.ts"
import { eventId } from "./ids.ts"
import { MAX_COMMIT_BYTES } from "./limits.ts"
import { Report, reportKey } from "./reports.ts"

/** The newest format that this code reads and writes. */
export const FORMAT = 1

const Sha256 = Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/, { expected: "a SHA-256 in hex" }))

export const CommandEntry = Schema.Struct({ command: Command, events: Schema.Array(Event) })
export type CommandEntry = typeof CommandEntry.Type

export const ReportEntry = Schema.Struct({ report: Report, events: Schema.Array(Event) })
export type ReportEntry = typeof ReportEntry.Type

export const Entry = Schema.Union([CommandEntry, ReportEntry])
export type Entry = typeof Entry.Type

export const Commit = Schema.Struct({
  format: Schema.Natural,
  /** The hash of the decide-and-fold bundle that made these decisions. */
  code: Sha256,
  /** The leader's epoch; in an election's commit, the epoch that it begins. */
  epoch: Schema.Natural,
  /** Milliseconds since 1970: the time of every decision in it; never before the previous commit's. */
  now: Millis,
  /** Decision i of the commit was made with `seed + i`. */
  seed: Schema.Natural,
  /** The sequence in the report stream up to which reports are accounted for. */
  reportOffset: Schema.Natural,
  prev: Sha256,
  entries: Schema.Array(Entry)
})
export type Commit = typeof Commit.Type

/** The cause of an entry's events, unique in the log: the command's id or the report's key. */
export const entryCause = (entry: Entry): string => ("command" in entry ? entry.command.id : reportKey(entry.report))

/** The entry's events with their ids, which derive from the cause and the place. */
export const identified = (entry: Entry): ReadonlyArray<{ readonly id: string; readonly event: Event }> =>
  entry.events.map((event, index) => ({ id: eventId(entryCause(entry), index), event }))

const encoder = new TextEncoder()
const toUnknown = Schema.encodeUnknownResult(Commit)
const fromUnknown = Schema.decodeUnknownResult(Commit)

/** A commit as it is stored. Malformed when something in it is not what the schema says: a fault of the writer. */
export const encodeCommit = (commit: Commit): Result.Result<Uint8Array, CommitTooLarge | Malformed> =>
  Result.flatMap(
    Result.mapError(toUnknown(commit), (error) => new Malformed({ what: "commit", detail: error.message })),
    (json): Result.Result<Uint8Array, CommitTooLarge> => {
      const bytes = encoder.encode(JSON.stringify(json))
      return bytes.length > MAX_COMMIT_BYTES
        ? Result.fail(new CommitTooLarge({ bytes: bytes.length }))
        : Result.succeed(bytes)
    }
  )

/** The room that an entry takes in a commit, in bytes, its separating comma included. */
export const entryBytes = (entry: Entry): number => encoder.encode(JSON.stringify(entry)).length + 1
/** The room that everything else in a commit may take. */
export const ENVELOPE_BYTES = 512

/** `upcasts[n]` turns the JSON of format n into that of format n + 1. Formats are added, and never taken away. */
const upcasts: Record<number, (json: Record<string, unknown>) => Record<string, unknown>> = {}

const hasFormat = Schema.is(Schema.Struct({ format: Schema.Natural }))

/** Reads a stored body of any format ever written. UnknownFormat stops the reader: it must not guess. */
export const decodeCommit = (body: Uint8Array): Result.Result<Commit, Malformed | UnknownFormat> =>
  Result.flatMap(parseJson("commit", body), (json): Result.Result<Commit, Malformed | UnknownFormat> => {
    if (!hasFormat(json)) return Result.fail(new Malformed({ what: "commit", detail: "it names no format" }))
    let current: { readonly format: number } = json
    while (current.format !== FORMAT) {
      const upcast = upcasts[current.format]
      if (upcast === undefined) return Result.fail(new UnknownFormat({ format: json.format, newest: FORMAT }))
      current = upcast(current as unknown as Record<string, unknown>) as unknown as { readonly format: number }
    }
    return Result.mapError(fromUnknown(current), (error) => new Malformed({ what: "commit", detail: error.message }))
  })

/** The `prev` of a stream's first commit. */
export const genesis = (stream: string): string => createHash("sha256").update(stream).digest("hex")

/** The `prev` of the commit that follows one with this stored body. */
export const chainHash = (body: Uint8Array): string => createHash("sha256").update(body).digest("hex")

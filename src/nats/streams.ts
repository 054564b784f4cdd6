/**
 * The streams of a site: how each must be kept, and the check that the server does so.
 */
import {
  type DiscardPolicy,
  JetStreamApiCodes,
  JetStreamApiError,
  type JetStreamManager,
  type RetentionPolicy,
  type StorageType,
  type StreamConfig,
  type StreamInfo
} from "@nats-io/jetstream"
import * as Effect from "effect/Effect"
import { logStream, logSubject, reportPattern, reportStream } from "../protocol/subjects.ts"
import type { Site } from "../protocol/tokens.ts"
import { Nats } from "./connection.ts"
import { NatsError, natsError, WrongConfiguration } from "./errors.ts"

const NANOS_PER_MS = 1_000_000

/** A stream's wanted configuration: each field given here must come back from the server as it is. */
export type WantedStream = Partial<StreamConfig> & Pick<StreamConfig, "name" | "subjects">

/** Bytes of one log segment. Servers set aside what a stream may grow to, so this must fit onto a small disk. */
export const LOG_BYTES = 256 * 1024 * 1024
/** Reports are kept this long: far longer than any leader needs to read them. */
const REPORTS_AGE_MS = 7 * 24 * 3_600 * 1_000
const REPORTS_BYTES = 32 * 1024 * 1024

/**
 * A segment of the session log: nothing can be deleted or purged from it, and a full one refuses what is new rather
 * than forget what is old.
 */
export const wantedLog = (site: Site, segment: number, options?: { readonly maxBytes?: number }): WantedStream => ({
  name: logStream(site, segment),
  subjects: [logSubject(site, segment)],
  storage: "file" as StorageType,
  retention: "limits" as RetentionPolicy,
  discard: "new" as DiscardPolicy,
  deny_delete: true,
  deny_purge: true,
  allow_rollup_hdrs: false,
  max_age: 0,
  max_msgs: -1,
  max_msgs_per_subject: -1,
  max_bytes: options?.maxBytes ?? LOG_BYTES
})

/** The reports of a site's hosts: a limits stream in order, old ones go by age. */
export const wantedReports = (site: Site): WantedStream => ({
  name: reportStream(site),
  subjects: [reportPattern(site)],
  storage: "file" as StorageType,
  retention: "limits" as RetentionPolicy,
  discard: "old" as DiscardPolicy,
  max_age: REPORTS_AGE_MS * NANOS_PER_MS,
  max_msgs: -1,
  max_msgs_per_subject: -1,
  max_bytes: REPORTS_BYTES
})

/** The first field that the server keeps otherwise than wanted. */
export const mismatch = (wanted: WantedStream, got: StreamConfig, server: string): WrongConfiguration | undefined => {
  for (const [field, value] of Object.entries(wanted)) {
    if (field === "max_bytes") continue
    const kept = (got as unknown as Record<string, unknown>)[field]
    // Servers leave out fields that are false or zero.
    const normal = kept ?? (typeof value === "boolean" ? false : typeof value === "number" ? 0 : kept)
    if (JSON.stringify(normal) !== JSON.stringify(value)) {
      return new WrongConfiguration({
        stream: wanted.name,
        field,
        wanted: JSON.stringify(value),
        got: JSON.stringify(kept) ?? "nothing",
        server
      })
    }
  }
  return undefined
}

const STREAM_NAME_IN_USE = 10058
const hasCode = (cause: unknown, code: number): boolean => cause instanceof JetStreamApiError && cause.code === code

const addOrFind = async (manager: JetStreamManager, wanted: WantedStream): Promise<StreamInfo> => {
  try {
    return await manager.streams.info(wanted.name)
  } catch (cause) {
    if (!hasCode(cause, JetStreamApiCodes.StreamNotFound)) throw cause
  }
  try {
    return await manager.streams.add(wanted)
  } catch (cause) {
    // Somebody else made it in between: whether as wanted is checked next.
    if (hasCode(cause, STREAM_NAME_IN_USE)) return await manager.streams.info(wanted.name)
    throw cause
  }
}

const keep = Effect.fn("Streams.keep")(function* (
  wanted: WantedStream,
  find: (manager: JetStreamManager, wanted: WantedStream) => Promise<StreamInfo>
) {
  const nats = yield* Nats
  const operation = `keep the stream ${wanted.name}`
  const info = yield* Effect.tryPromise({ try: () => find(nats.manager, wanted), catch: natsError(operation) })
  const wrong = mismatch(wanted, info.config, nats.connection.info?.version ?? "of unknown version")
  if (wrong !== undefined) return yield* new NatsError({ operation, reason: wrong })
  return info
})

/**
 * Makes the stream if it is missing, and compares what the server keeps with what is wanted: servers ignore unknown
 * fields silently. Fails with WrongConfiguration where they differ. How large a stream may grow is decided when it is
 * made; an operator may have made it with another size.
 */
export const ensureStream = (wanted: WantedStream) => keep(wanted, addOrFind)

/** The same of a stream that must exist: NotFound when it does not. */
export const checkStream = (wanted: WantedStream) => keep(wanted, (manager, { name }) => manager.streams.info(name))

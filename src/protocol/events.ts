/**
 * Events: facts, recorded in the log and never changed. Placement state is always and only a fold over them.
 *
 * Every event names its aggregate and the id within it, so a reader can route one whose type it does not know.
 * New types and new optional fields may be added within a format; nothing here may be renamed or removed, because
 * every commit ever written must go on decoding (test/data/log holds one of each format).
 */
import * as Schema from "effect/Schema"
import { Endpoint, Gpu, GpuGrant, GpuRequest, Labels, Usage } from "./gpu.ts"
import { HostId, Incarnation, ProcessNumber, RouterId, SessionId } from "./ids.ts"
import { Principal } from "./tokens.ts"

/** 32 raw bytes as unpadded base64url: an X25519 public key. */
export const PublicKey = Schema.String.check(
  Schema.isPattern(/^[A-Za-z0-9_-]{43}$/, { expected: "an X25519 public key: 32 bytes as unpadded base64url" })
)

/** A short machine-made reason or name; never free text of a user. */
export const Word = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_.:+-]{1,80}$/, { expected: "a short name" }))

/** Milliseconds since 1970, as the router recorded them. */
export const Millis = Schema.Natural

export const Version = Schema.String.check(Schema.isPattern(/^[0-9A-Za-z.+-]{1,40}$/, { expected: "a version" }))

/** What a client says of itself. */
export const ClientInfo = Schema.Struct({
  version: Version,
  /** Names of optional features that the client understands. */
  capabilities: Schema.Array(Word)
})
export type ClientInfo = typeof ClientInfo.Type

/** How a client process ended, as its broker saw it. */
export const Exit = Schema.Struct({
  code: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 255 }))),
  signal: Schema.optionalKey(Word)
})
export type Exit = typeof Exit.Type

/** A CUDA error: its number and name, for example 700 and CUDA_ERROR_ILLEGAL_ADDRESS. */
export const CudaError = Schema.Struct({ code: Schema.Int, name: Word })
export type CudaError = typeof CudaError.Type

/** Why a process ended. */
export const ProcessEndReason = Schema.Literals([
  /** it closed its link in order */
  "exit",
  /** its broker saw it die without closing */
  "killed",
  /** its worker ended on a CUDA error that no context survives */
  "error",
  /** its worker crashed */
  "worker-crashed",
  /** it sent frames that the link does not allow */
  "protocol-violation",
  /** its client fell silent for longer than the grace period */
  "client-lost",
  /** its session ended around it */
  "session-ended",
  /** its host shut down */
  "host-left"
])
export type ProcessEndReason = typeof ProcessEndReason.Type

/** Why a session ended. */
export const SessionEndReason = Schema.Literals([
  /** the client closed every connection in order: the program ended */
  "client-exit",
  /** session.release */
  "released",
  /** the client fell silent for longer than the grace period, or stopped asking while it waited */
  "client-lost",
  /** it was ready, and no client connected in time */
  "never-connected",
  /** session.release before the session was ready */
  "cancelled",
  /** its limit on waiting for capacity passed */
  "wait-over",
  /** every attempt to place it was refused, and it would not wait */
  "refused",
  /** the host came back as a new incarnation, or answered, without it */
  "host-lost",
  /** the host left in order and ended it */
  "host-left",
  /** the host could not reach its site for its declared fence deadline */
  "host-fenced",
  /** the host could not go on with it */
  "host-failed",
  /** an administrator ended it although its host is unknown */
  "administrator"
])
export type SessionEndReason = typeof SessionEndReason.Type

/** Why a host would not, or did not, take a session. */
export const RefusalReason = Schema.Literals([
  "does-not-fit",
  "unknown-gpu",
  "older-epoch",
  "older-attempt",
  "other-incarnation",
  "draining",
  "bad-key",
  "failed",
  /** no answer within the time limit, or nobody listens */
  "no-answer"
])
export type RefusalReason = typeof RefusalReason.Type

/** Why a placement decision came out as it did: how many hosts each predicate turned away, and the best few. */
export const PlacementWhy = Schema.Struct({
  hosts: Schema.Natural,
  rejected: Schema.Record(Schema.String, Schema.Natural),
  best: Schema.Array(Schema.Struct({ host: HostId, score: Schema.Finite }))
})
export type PlacementWhy = typeof PlacementWhy.Type

const sessionEvent = <const Tag extends string, const Fields extends Schema.Struct.Fields>(tag: Tag, fields: Fields) =>
  Schema.Struct({ _tag: Schema.tag(tag), aggregate: Schema.tag("session"), session: SessionId, ...fields })
const hostEvent = <const Tag extends string, const Fields extends Schema.Struct.Fields>(tag: Tag, fields: Fields) =>
  Schema.Struct({
    _tag: Schema.tag(tag),
    aggregate: Schema.tag("host"),
    host: HostId,
    incarnation: Incarnation,
    ...fields
  })
const routerEvent = <const Tag extends string, const Fields extends Schema.Struct.Fields>(tag: Tag, fields: Fields) =>
  Schema.Struct({ _tag: Schema.tag(tag), aggregate: Schema.tag("router"), ...fields })

export const SessionRequested = sessionEvent("SessionRequested", {
  principal: Principal,
  gpus: GpuRequest,
  labels: Labels,
  /** How long the client is willing to wait for capacity; 0 refuses at once. */
  waitMs: Schema.Natural,
  publicKey: PublicKey,
  client: ClientInfo
})
export const SessionQueued = sessionEvent("SessionQueued", { until: Millis })
export const SessionPlaced = sessionEvent("SessionPlaced", {
  host: HostId,
  incarnation: Incarnation,
  attempt: Schema.Natural,
  gpus: Schema.NonEmptyArray(GpuGrant),
  why: PlacementWhy
})
export const PlacementRefused = sessionEvent("PlacementRefused", {
  host: HostId,
  attempt: Schema.Natural,
  reason: RefusalReason,
  /** Until then this host is left out of the session's next attempts. */
  excludedUntil: Millis
})
export const SessionReady = sessionEvent("SessionReady", { host: HostId, attempt: Schema.Natural })
export const ProcessAttached = sessionEvent("ProcessAttached", { process: ProcessNumber })
export const ProcessEnded = sessionEvent("ProcessEnded", {
  process: ProcessNumber,
  reason: ProcessEndReason,
  exit: Schema.optionalKey(Exit),
  error: Schema.optionalKey(CudaError),
  usage: Usage
})
export const SessionInterrupted = sessionEvent("SessionInterrupted", {})
export const SessionResumed = sessionEvent("SessionResumed", {})
export const SessionEnding = sessionEvent("SessionEnding", { reason: SessionEndReason })
export const SessionEnded = sessionEvent("SessionEnded", { reason: SessionEndReason, usage: Usage })

export const HostJoined = hostEvent("HostJoined", {
  version: Version,
  endpoint: Endpoint,
  gpus: Schema.Array(Gpu),
  labels: Labels,
  /** After so long without its site the host ends its sessions by itself; absent: never. */
  fenceAfterMs: Schema.optionalKey(Schema.Natural),
  /** Sessions whose workers this incarnation has taken over. */
  sessions: Schema.Array(SessionId)
})
export const HostSuspect = hostEvent("HostSuspect", {})
export const HostUnknown = hostEvent("HostUnknown", {})
export const HostRecovered = hostEvent("HostRecovered", {})
export const HostDraining = hostEvent("HostDraining", {})
export const HostLeft = hostEvent("HostLeft", {})

export const RouterElected = routerEvent("RouterElected", { router: RouterId, epoch: Schema.Natural, version: Version })
/** From the next commit on, commits are of this format. Committed only when all live replicas read it. */
export const FormatRaised = routerEvent("FormatRaised", { format: Schema.Natural })

export const SessionEvent = Schema.Union([
  SessionRequested,
  SessionQueued,
  SessionPlaced,
  PlacementRefused,
  SessionReady,
  ProcessAttached,
  ProcessEnded,
  SessionInterrupted,
  SessionResumed,
  SessionEnding,
  SessionEnded
])
export type SessionEvent = typeof SessionEvent.Type

export const HostEvent = Schema.Union([HostJoined, HostSuspect, HostUnknown, HostRecovered, HostDraining, HostLeft])
export type HostEvent = typeof HostEvent.Type

export const RouterEvent = Schema.Union([RouterElected, FormatRaised])
export type RouterEvent = typeof RouterEvent.Type

export const Event = Schema.Union([...SessionEvent.members, ...HostEvent.members, ...RouterEvent.members])
export type Event = typeof Event.Type

/** The event of one type. */
export type EventOf<Tag extends Event["_tag"]> = Extract<Event, { readonly _tag: Tag }>

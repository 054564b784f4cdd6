/**
 * What routers answer: commands' results, and the views that reads give of the fold.
 */
import * as Schema from "effect/Schema"
import { type Codec, jsonCodec } from "./codec.ts"
import { AnswerError } from "./errors.ts"
import { ClientInfo, Millis, RefusalReason, SessionEndReason, Version } from "./events.ts"
import { Endpoint, Gpu, GpuGrant, GpuRequest, Labels, Usage } from "./gpu.ts"
import { HostId, Incarnation, RouterId, SessionId } from "./ids.ts"
import { MAX_PAGE } from "./limits.ts"
import { Sealed } from "./prepare.ts"
import { Principal } from "./tokens.ts"

/** A place in the log: commit `sequence` of `segment`. */
export const Position = Schema.Struct({ segment: Schema.Natural, sequence: Schema.Natural })
export type Position = typeof Position.Type

/**
 * A session's state. queued: waiting for capacity; placed: a host has been asked; ready: the host waits for the
 * client; active: a process has attached; ending: the host has been asked to end it; ended.
 */
export const SessionState = Schema.Literals(["queued", "placed", "ready", "active", "ending", "ended"])
export type SessionState = typeof SessionState.Type

export const SessionView = Schema.Struct({
  session: SessionId,
  principal: Principal,
  state: SessionState,
  /** What is not known of it because its host is silent. */
  hostSilent: Schema.Boolean,
  interrupted: Schema.Boolean,
  request: GpuRequest,
  host: Schema.optionalKey(HostId),
  attempt: Schema.Natural,
  gpus: Schema.Array(GpuGrant),
  client: ClientInfo,
  requestedAt: Millis,
  readyAt: Schema.optionalKey(Millis),
  endedAt: Schema.optionalKey(Millis),
  /** Of an ending or ended session. */
  reason: Schema.optionalKey(SessionEndReason),
  /** The last refusal of a host, if one refused. */
  refusal: Schema.optionalKey(Schema.Struct({ host: HostId, reason: RefusalReason })),
  /** Processes that run now, and all that ever attached. */
  processes: Schema.Struct({ running: Schema.Natural, total: Schema.Natural }),
  /** Of the processes that have ended so far; the whole session's once it has ended. */
  usage: Usage
})
export type SessionView = typeof SessionView.Type

export const HostState = Schema.Literals(["up", "suspect", "unknown", "draining", "left"])
export type HostState = typeof HostState.Type

export const HostView = Schema.Struct({
  host: HostId,
  incarnation: Incarnation,
  state: HostState,
  version: Version,
  endpoint: Endpoint,
  labels: Labels,
  joinedAt: Millis,
  /** Sessions charged to it. */
  sessions: Schema.Natural,
  gpus: Schema.Array(
    Schema.Struct({
      ...Gpu.fields,
      /** Bytes of `vram` that sessions hold. */
      reserved: Schema.Natural,
      exclusive: Schema.Boolean,
      sessions: Schema.Natural
    })
  )
})
export type HostView = typeof HostView.Type

/** Where the client finds its session, and the key, sealed to it. */
export const Grant = Schema.Struct({
  host: HostId,
  incarnation: Incarnation,
  attempt: Schema.Natural,
  endpoint: Endpoint,
  gpus: Schema.Array(GpuGrant),
  sealed: Sealed
})
export type Grant = typeof Grant.Type

/** The value that answers `session.request`; `grant` when the session is ready or active. */
export const SessionRequestResult = Schema.Struct({
  position: Position,
  session: SessionView,
  grant: Schema.optionalKey(Grant)
})
export type SessionRequestResult = typeof SessionRequestResult.Type

/** The value that answers `session.release`. */
export const SessionReleaseResult = Schema.Struct({ position: Position, session: SessionView })
export type SessionReleaseResult = typeof SessionReleaseResult.Type

/**
 * Every read may say `after`: a position, from an earlier answer, that the replica must have folded before it
 * answers, so that one reads one's own writes.
 */
const after = { after: Schema.optionalKey(Position) }

export const SessionGetQuery = Schema.Struct({ ...after, session: SessionId })
export type SessionGetQuery = typeof SessionGetQuery.Type

/** Newest first. Without `ended`, only those that have not ended. `before`: the last id of the previous page. */
export const SessionsListQuery = Schema.Struct({
  ...after,
  ended: Schema.optionalKey(Schema.Boolean),
  before: Schema.optionalKey(SessionId),
  limit: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: MAX_PAGE })))
})
export type SessionsListQuery = typeof SessionsListQuery.Type

/** Without `left`, only hosts that are here. `from`: the `next` of the previous page. */
export const HostsListQuery = Schema.Struct({
  ...after,
  left: Schema.optionalKey(Schema.Boolean),
  from: Schema.optionalKey(HostId)
})
export type HostsListQuery = typeof HostsListQuery.Type

export const RouterStatusQuery = Schema.Struct({ ...after })
export type RouterStatusQuery = typeof RouterStatusQuery.Type

/** `now`: the time of the last commit, which the view shows. */
const seenAt = { position: Position, now: Millis }

export const SessionGetResult = Schema.Struct({ ...seenAt, session: SessionView })
export type SessionGetResult = typeof SessionGetResult.Type

/** `next`, when there is more: what the next page's query names. */
export const SessionsListResult = Schema.Struct({
  ...seenAt,
  sessions: Schema.Array(SessionView),
  next: Schema.optionalKey(SessionId)
})
export type SessionsListResult = typeof SessionsListResult.Type

export const HostsListResult = Schema.Struct({
  ...seenAt,
  hosts: Schema.Array(HostView),
  next: Schema.optionalKey(HostId)
})
export type HostsListResult = typeof HostsListResult.Type

export const RouterStatusResult = Schema.Struct({
  ...seenAt,
  /** The replica that answers. */
  router: RouterId,
  version: Version,
  leading: Schema.Boolean,
  /** The leader of the last election, and its epoch; 0 before the first. */
  leader: Schema.optionalKey(RouterId),
  epoch: Schema.Natural,
  /** SHA-256 of the last commit's stored body: what the next commit's `prev` must be. */
  head: Schema.String,
  hosts: Schema.Natural,
  /** Sessions that have not ended. */
  sessions: Schema.Natural,
  queued: Schema.Natural
})
export type RouterStatusResult = typeof RouterStatusResult.Type

const Failed = Schema.Struct({ _tag: Schema.tag("Failed"), error: AnswerError })

/** An answer: a value, or an error of protocol/errors.ts. */
export type Answer<T> =
  | { readonly _tag: "Ok"; readonly value: T }
  | { readonly _tag: "Failed"; readonly error: AnswerError }

/** The codec of answers whose value is of this schema. */
export const answerCodec = <T>(what: string, schema: Schema.Codec<T, unknown>): Codec<Answer<T>> =>
  jsonCodec(what, Schema.Union([Schema.Struct({ _tag: Schema.tag("Ok"), value: schema }), Failed]) as never)

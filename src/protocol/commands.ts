/**
 * Commands: wishes that the leader decides on. Those of clients travel by request/reply; the leader's own (what it
 * learnt from a host's answer or a timer) never leave it, except into the log.
 *
 * A command as the log records it (`Command`) has everything that its decision depended on besides the state and the
 * commit's time and seed, so every decision can be made again from the log alone.
 */
import * as Schema from "effect/Schema"
import { ClientInfo, Millis, PublicKey, RefusalReason, Version } from "./events.ts"
import { GpuRequest, Labels } from "./gpu.ts"
import { CommandId, HostId, Incarnation, RouterId, SessionId } from "./ids.ts"
import { MAX_WAIT } from "./limits.ts"
import { Principal } from "./tokens.ts"

// What clients send. The principal is not in the body: it is the subject's token, which the server's permissions bind.

const sessionRequest = {
  /** Minted by the client and repeated with every repetition of this wish. */
  id: CommandId,
  session: SessionId,
  gpus: GpuRequest,
  /** Labels that the host must have. */
  labels: Labels,
  /** Milliseconds the client will wait for capacity; 0 refuses at once. */
  waitMs: Schema.Natural.check(Schema.isLessThanOrEqualTo(MAX_WAIT)),
  /** The client's ephemeral X25519 key: the session key is sealed to it. */
  publicKey: PublicKey,
  client: ClientInfo
}
const sessionRelease = {
  id: CommandId,
  session: SessionId,
  /** End it in the log although its host is unknown and cannot confirm; refused while the host answers. */
  force: Schema.optionalKey(Schema.Boolean)
}

/** The body of `session.request`. */
export const SessionRequestBody = Schema.Struct(sessionRequest)
export type SessionRequestBody = typeof SessionRequestBody.Type

/** The body of `session.release`. */
export const SessionReleaseBody = Schema.Struct(sessionRelease)
export type SessionReleaseBody = typeof SessionReleaseBody.Type

// What the log records.

const command = <const Tag extends string, const Fields extends Schema.Struct.Fields>(tag: Tag, fields: Fields) =>
  Schema.Struct({ _tag: Schema.tag(tag), ...fields })

export const SessionRequest = command("session.request", { principal: Principal, ...sessionRequest })
export const SessionRelease = command("session.release", { principal: Principal, ...sessionRelease })

/** A host answered prepare: it holds the session. */
export const SessionPrepared = command("session.prepared", {
  id: CommandId,
  session: SessionId,
  attempt: Schema.Natural
})
/** A host refused prepare, or did not answer it. */
export const SessionRefused = command("session.refused", {
  id: CommandId,
  session: SessionId,
  attempt: Schema.Natural,
  reason: RefusalReason
})
/** A host answered release: it has nothing of this session. */
export const SessionGone = command("session.gone", {
  id: CommandId,
  session: SessionId,
  attempt: Schema.Natural,
  incarnation: Incarnation
})
/** A queued session's limit passed, or its client stopped asking. */
export const SessionExpire = command("session.expire", {
  id: CommandId,
  session: SessionId,
  reason: Schema.Literals(["wait-over", "client-lost"])
})
/** Capacity may have become free: try the queue. */
export const QueuePlace = command("queue.place", { id: CommandId })

const hostCommand = <const Tag extends string>(tag: Tag) =>
  command(tag, { id: CommandId, host: HostId, incarnation: Incarnation, seen: Millis })
/** `seen`: when the host was last heard of, by the leader's clock. */
export const HostSilent = hostCommand("host.suspect")
export const HostMissing = hostCommand("host.unknown")
/** A suspect or unknown host is heard of again. */
export const HostSeen = hostCommand("host.seen")
/** The host's own declared fence deadline has passed: it has ended its sessions by itself. */
export const HostFenced = hostCommand("host.fenced")
/** The host has left, or has come back as a new incarnation: end some of the sessions that it no longer has. */
export const HostSweep = command("host.sweep", { id: CommandId, host: HostId })

export const RouterElect = command("router.elect", { id: CommandId, router: RouterId, version: Version })

export const Command = Schema.Union([
  SessionRequest,
  SessionRelease,
  SessionPrepared,
  SessionRefused,
  SessionGone,
  SessionExpire,
  QueuePlace,
  HostSilent,
  HostMissing,
  HostSeen,
  HostFenced,
  HostSweep,
  RouterElect
])
export type Command = typeof Command.Type
export type CommandOf<Tag extends Command["_tag"]> = Extract<Command, { readonly _tag: Tag }>

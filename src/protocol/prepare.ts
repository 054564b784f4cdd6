/**
 * What the router asks of a host, by request/reply on `…host.<host>.<verb>`.
 *
 * prepare  take this session: reserve its GPUs, make its key, answer with the key sealed to the client. Repeating the
 *          same (session, attempt) answers again and reserves nothing twice; a new leader does so after a fail-over.
 * release  end this session: its processes, workers and reservation. The host answers at once and reports
 *          `session.ended` when all is gone.
 * resend   publish the reports again from number `from` on.
 */
import * as Schema from "effect/Schema"
import { PublicKey, RefusalReason, SessionEndReason } from "./events.ts"
import { Endpoint, GpuGrant } from "./gpu.ts"
import { Incarnation, SessionId } from "./ids.ts"
import { Principal } from "./tokens.ts"

const Base64Url = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_-]+$/), Schema.isMaxLength(512))

export const PrepareRequest = Schema.Struct({
  session: SessionId,
  principal: Principal,
  incarnation: Incarnation,
  /** Which try at placing this session; a host refuses one lower than it has seen of the session. */
  attempt: Schema.Natural,
  /** The leader's epoch; a host refuses one lower than it has seen. */
  epoch: Schema.Natural,
  gpus: Schema.NonEmptyArray(GpuGrant),
  /** The client's ephemeral X25519 key. */
  publicKey: PublicKey
})
export type PrepareRequest = typeof PrepareRequest.Type

/** A session key sealed to the client (see seal.ts). */
export const Sealed = Schema.Struct({ sealedKey: Base64Url, hostPublicKey: PublicKey, nonce: Base64Url })
export type Sealed = typeof Sealed.Type

export const Prepared = Schema.Struct({ _tag: Schema.tag("Prepared"), endpoint: Endpoint, sealed: Sealed })
export type Prepared = typeof Prepared.Type

export const PrepareRefused = Schema.Struct({ _tag: Schema.tag("PrepareRefused"), reason: RefusalReason })
export type PrepareRefused = typeof PrepareRefused.Type

export const PrepareReply = Schema.Union([Prepared, PrepareRefused])
export type PrepareReply = typeof PrepareReply.Type

export const ReleaseRequest = Schema.Struct({
  session: SessionId,
  attempt: Schema.Natural,
  epoch: Schema.Natural,
  reason: SessionEndReason
})
export type ReleaseRequest = typeof ReleaseRequest.Type

/**
 * `releasing`: a `session.ended` report follows. `unknown`: the host has nothing of this session and, in this
 * incarnation, never reports of it again. `refused`: the request is of an older epoch.
 */
export const ReleaseReply = Schema.Struct({
  incarnation: Incarnation,
  outcome: Schema.Literals(["releasing", "unknown", "refused"])
})
export type ReleaseReply = typeof ReleaseReply.Type

export const ResendRequest = Schema.Struct({ incarnation: Incarnation, from: Schema.Natural })
export type ResendRequest = typeof ResendRequest.Type

/** `sent` reports follow on the report subject; 0 when the incarnation is not the host's. */
export const ResendReply = Schema.Struct({ sent: Schema.Natural })
export type ResendReply = typeof ResendReply.Type

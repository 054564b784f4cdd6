/**
 * The one error of this package, with tagged reasons, and the one mapper from the NATS client's own classes.
 */
import { JetStreamApiError } from "@nats-io/jetstream"
import { errors as core } from "@nats-io/nats-core"
import * as Schema from "effect/Schema"

/** An append's expectation did not hold: somebody else's message has the place. */
export class WrongLastSequence extends Schema.TaggedError<WrongLastSequence>()("WrongLastSequence", {
  expected: Schema.Natural
}) {
  override get message() {
    return `another message already follows sequence ${this.expected}`
  }
}

/** No answer in time; what was asked may or may not have happened. */
export class TimedOut extends Schema.TaggedError<TimedOut>()("TimedOut", {}) {
  override get message() {
    return "no answer in time"
  }
}

/** Nobody listens on the subject. */
export class NoResponders extends Schema.TaggedError<NoResponders>()("NoResponders", {}) {
  override get message() {
    return "nobody listens"
  }
}

/** The connection is closed or broken. */
export class Disconnected extends Schema.TaggedError<Disconnected>()("Disconnected", { detail: Schema.String }) {
  override get message() {
    return `the connection is gone (${this.detail})`
  }
}

/** The stream, bucket, key or message does not exist. */
export class NotFound extends Schema.TaggedError<NotFound>()("NotFound", { detail: Schema.String }) {
  override get message() {
    return this.detail
  }
}

/** The credentials do not allow it. */
export class Denied extends Schema.TaggedError<Denied>()("Denied", { detail: Schema.String }) {
  override get message() {
    return this.detail
  }
}

/** JetStream is not enabled on the server, or no stream takes the subject. */
export class NoJetStreamHere extends Schema.TaggedError<NoJetStreamHere>()("NoJetStreamHere", {}) {
  override get message() {
    return "JetStream is not enabled, or no stream takes the subject"
  }
}

/** The stream or the server's storage is full. */
export class Full extends Schema.TaggedError<Full>()("Full", { detail: Schema.String }) {
  override get message() {
    return this.detail
  }
}

/** The server keeps a stream otherwise than it must be; servers ignore silently what they do not know. */
export class WrongConfiguration extends Schema.TaggedError<WrongConfiguration>()("WrongConfiguration", {
  stream: Schema.String,
  field: Schema.String,
  wanted: Schema.String,
  got: Schema.String,
  server: Schema.String
}) {
  override get message() {
    return `the stream ${this.stream} has ${this.field} = ${this.got} where juice needs ${this.wanted} (nats-server ${this.server}): correct or remove the stream, or run a newer nats-server`
  }
}

/** A stream that never loses a message has lost some. */
export class Gap extends Schema.TaggedError<Gap>()("Gap", {
  stream: Schema.String,
  expected: Schema.Natural,
  got: Schema.Natural
}) {
  override get message() {
    return `the stream ${this.stream} goes on at ${this.got} where ${this.expected} must follow: messages are missing`
  }
}

/** Anything else that the server said no to. */
export class Rejected extends Schema.TaggedError<Rejected>()("Rejected", {
  code: Schema.Int,
  detail: Schema.String
}) {
  override get message() {
    return `${this.detail} (${this.code})`
  }
}

export const NatsErrorReason = Schema.Union([
  WrongLastSequence,
  TimedOut,
  NoResponders,
  Disconnected,
  NotFound,
  Denied,
  NoJetStreamHere,
  Full,
  WrongConfiguration,
  Gap,
  Rejected
])
export type NatsErrorReason = typeof NatsErrorReason.Type

/** `operation`: what was being done, for people: "append to JUICE_LOG_LOCAL_1". */
export class NatsError extends Schema.TaggedError<NatsError>()("NatsError", {
  operation: Schema.String,
  reason: NatsErrorReason
}) {
  override get message() {
    return `${this.operation}: ${this.reason.message}`
  }
}

/** Conflicts of an expected sequence: the classic code, and the constant one of clustered streams from 2.12 on. */
const CONFLICT = new Set([10071, 10164])
const NOT_FOUND = new Set([10014, 10037, 10059])
const NO_JETSTREAM = new Set([10039, 10076])
/** insufficient resources, maximum bytes or messages exceeded, storage resources exceeded */
const FULL = new Set([10023, 10047, 10077, 10122])

const apiReason = (code: number, detail: string): NatsErrorReason => {
  if (CONFLICT.has(code)) return new WrongLastSequence({ expected: 0 })
  if (NOT_FOUND.has(code)) return new NotFound({ detail })
  if (NO_JETSTREAM.has(code)) return new NoJetStreamHere({})
  if (FULL.has(code)) return new Full({ detail })
  return new Rejected({ code, detail })
}

const reasonOf = (cause: unknown): NatsErrorReason => {
  if (cause instanceof JetStreamApiError) return apiReason(cause.code, cause.message)
  // The client does not export this class.
  if (cause instanceof Error && cause.name === "JetStreamNotEnabled") return new NoJetStreamHere({})
  if (cause instanceof core.TimeoutError) return new TimedOut({})
  if (cause instanceof core.NoRespondersError) return new NoResponders({})
  if (cause instanceof core.RequestError) {
    if (cause.isNoResponders()) return new NoResponders({})
    return cause.cause === undefined ? new Disconnected({ detail: cause.message }) : reasonOf(cause.cause)
  }
  if (cause instanceof core.PermissionViolationError || cause instanceof core.AuthorizationError) {
    return new Denied({ detail: cause.message })
  }
  if (
    cause instanceof core.ClosedConnectionError ||
    cause instanceof core.DrainingConnectionError ||
    cause instanceof core.ConnectionError
  ) {
    return new Disconnected({ detail: cause.message })
  }
  return new Rejected({ code: 0, detail: cause instanceof Error ? cause.message : String(cause) })
}

/** The mapper: `Effect.tryPromise({ try, catch: natsError("…") })`. */
export const natsError =
  (operation: string) =>
  (cause: unknown): NatsError =>
    cause instanceof NatsError ? cause : new NatsError({ operation, reason: reasonOf(cause) })

/** Whether trying again can help: the server was not there, not yet up, or slow. */
export const isTransient = (error: NatsError): boolean =>
  ["TimedOut", "NoResponders", "Disconnected", "NoJetStreamHere"].includes(error.reason._tag)

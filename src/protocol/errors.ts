/**
 * Every error that crosses a process boundary or reaches a user. Each has a stable code (its tag in kebab case, in
 * --json output and in answers), one sentence that says what happened and what to do, and the exit code that the
 * `juice` command ends with.
 */
import * as Runtime from "effect/Runtime"
import * as Schema from "effect/Schema"
import { PlacementWhy, SessionEndReason } from "./events.ts"
import { HostId, SessionId } from "./ids.ts"

/** Exit codes of `juice`; a program that ran passes its own through. */
export const ExitCode = {
  /** wrong flags or arguments */
  usage: 2,
  /** no such pool, or it cannot be reached */
  unavailable: 69,
  /** something of ours broke */
  software: 70,
  /** no GPU could be had; trying again later may help */
  noCapacity: 75,
  /** the credentials do not allow it */
  notAllowed: 77,
  /** the program was found but could not be executed */
  notExecutable: 126,
  /** the program was not found */
  notFound: 127
} as const

const seconds = (ms: number): string => `${Math.ceil(ms / 1000)} s`

export class NoNatsServer extends Schema.TaggedError<NoNatsServer>()("NoNatsServer", {
  server: Schema.String,
  detail: Schema.optionalKey(Schema.String)
}) {
  override get message() {
    const detail = this.detail === undefined ? "" : ` (${this.detail})`
    return `no NATS server answers at ${this.server}${detail}: start one, for example with \`juice up\`, or name the right one with --nats or JUICE_NATS`
  }
  override get [Runtime.errorExitCode]() {
    return ExitCode.unavailable
  }
}

export class NatsRefused extends Schema.TaggedError<NatsRefused>()("NatsRefused", {
  server: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return `the NATS server at ${this.server} refused the connection or the request (${this.detail}): check the credentials and their permissions`
  }
  override get [Runtime.errorExitCode]() {
    return ExitCode.notAllowed
  }
}

export class NoJetStream extends Schema.TaggedError<NoJetStream>()("NoJetStream", { server: Schema.String }) {
  override get message() {
    return `the NATS server at ${this.server} has no JetStream: start it with -js, or enable jetstream in its configuration`
  }
  override get [Runtime.errorExitCode]() {
    return ExitCode.unavailable
  }
}

export class NoRouter extends Schema.TaggedError<NoRouter>()("NoRouter", { site: Schema.String }) {
  override get message() {
    return `no router serves the site "${this.site}": start one with \`juice router\` or \`juice up\`, or name the right site with --site or JUICE_SITE`
  }
  override get [Runtime.errorExitCode]() {
    return ExitCode.unavailable
  }
}

export class NoHost extends Schema.TaggedError<NoHost>()("NoHost", { site: Schema.String }) {
  override get message() {
    return `the site "${this.site}" has no GPU host: start one with \`juice host\`, or wait for one with --wait SECONDS`
  }
  override get [Runtime.errorExitCode]() {
    return ExitCode.noCapacity
  }
}

/** How many hosts each predicate turned away, as words. */
const turnedAway = (why: typeof PlacementWhy.Type): string =>
  Object.entries(why.rejected)
    .map(([predicate, count]) => `${count} of ${why.hosts}: ${predicate}`)
    .join(", ")

export class NoCapacity extends Schema.TaggedError<NoCapacity>()("NoCapacity", { why: PlacementWhy }) {
  override get message() {
    return `no host can give the GPUs asked for now (${turnedAway(this.why)}): ask for less, or wait for capacity with --wait SECONDS`
  }
  override get [Runtime.errorExitCode]() {
    return ExitCode.noCapacity
  }
}

export class WaitOver extends Schema.TaggedError<WaitOver>()("WaitOver", { waitMs: Schema.Natural }) {
  override get message() {
    return `no GPU became free within ${seconds(this.waitMs)}: try again, or wait longer with --wait SECONDS`
  }
  override get [Runtime.errorExitCode]() {
    return ExitCode.noCapacity
  }
}

export class HostVanished extends Schema.TaggedError<HostVanished>()("HostVanished", {
  host: HostId,
  endpoint: Schema.optionalKey(Schema.String)
}) {
  override get message() {
    const at = this.endpoint === undefined ? "" : ` at ${this.endpoint}`
    return `the GPU host "${this.host}"${at} vanished: see \`juice hosts\` and try again`
  }
  override get [Runtime.errorExitCode]() {
    return ExitCode.noCapacity
  }
}

export class Busy extends Schema.TaggedError<Busy>()("Busy", { retryAfterMs: Schema.Natural }) {
  override get message() {
    return `the router has too much to do: try again in ${seconds(this.retryAfterMs)}`
  }
  override get [Runtime.errorExitCode]() {
    return ExitCode.noCapacity
  }
}

/** The session was given up: by every host in turn, or by somebody's wish. */
export class SessionOver extends Schema.TaggedError<SessionOver>()("SessionOver", {
  session: SessionId,
  reason: SessionEndReason
}) {
  override get message() {
    return `the session ${this.session} has ended (${this.reason}): see \`juice events --session ${this.session}\` and start another`
  }
  override get [Runtime.errorExitCode]() {
    return ExitCode.noCapacity
  }
}

export class NoSuchSession extends Schema.TaggedError<NoSuchSession>()("NoSuchSession", { session: Schema.String }) {
  override get message() {
    return `there is no session ${this.session} of yours: see \`juice sessions\``
  }
  override get [Runtime.errorExitCode]() {
    return ExitCode.unavailable
  }
}

/** The id is in use for a session of other contents or of another principal. */
export class SessionConflict extends Schema.TaggedError<SessionConflict>()("SessionConflict", { session: SessionId }) {
  override get message() {
    return `the session id ${this.session} is already used for another request: mint a new id`
  }
  override get [Runtime.errorExitCode]() {
    return ExitCode.software
  }
}

/** A request that no pool could ever fulfil, or that contradicts itself. */
export class BadRequest extends Schema.TaggedError<BadRequest>()("BadRequest", { detail: Schema.String }) {
  override get message() {
    return `the request cannot be fulfilled as it stands: ${this.detail}`
  }
  override get [Runtime.errorExitCode]() {
    return ExitCode.usage
  }
}

/** Bytes that are not the message they should be. */
export class Malformed extends Schema.TaggedError<Malformed>()("Malformed", {
  what: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return `a ${this.what} cannot be read (${this.detail}): both ends must run compatible versions of juice`
  }
  override get [Runtime.errorExitCode]() {
    return ExitCode.software
  }
}

export class UnknownFormat extends Schema.TaggedError<UnknownFormat>()("UnknownFormat", {
  format: Schema.Natural,
  newest: Schema.Natural
}) {
  override get message() {
    return `the log has commits of format ${this.format} and this juice reads formats up to ${this.newest}: run a version of juice that reads format ${this.format}`
  }
  override get [Runtime.errorExitCode]() {
    return ExitCode.software
  }
}

/** The log is not what was written: a commit does not follow from the one before it. */
export class ChainBroken extends Schema.TaggedError<ChainBroken>()("ChainBroken", {
  stream: Schema.String,
  sequence: Schema.Natural,
  detail: Schema.String
}) {
  override get message() {
    return `the log ${this.stream} is broken at sequence ${this.sequence} (${this.detail}): it was altered or belongs to another site; restore it from a copy`
  }
  override get [Runtime.errorExitCode]() {
    return ExitCode.software
  }
}

export class CommitTooLarge extends Schema.TaggedError<CommitTooLarge>()("CommitTooLarge", { bytes: Schema.Natural }) {
  override get message() {
    return `a commit of ${this.bytes} bytes is over the log's limit: this is a fault of the router, please report it`
  }
  override get [Runtime.errorExitCode]() {
    return ExitCode.software
  }
}

/** The log's stream has no room for new sessions; the space kept back is for the endings of those that run. */
export class LogFull extends Schema.TaggedError<LogFull>()("LogFull", { site: Schema.String }) {
  override get message() {
    return `the session log of the site "${this.site}" is nearly full and takes no new sessions: give its stream more space`
  }
  override get [Runtime.errorExitCode]() {
    return ExitCode.unavailable
  }
}

export class SealBroken extends Schema.TaggedError<SealBroken>()("SealBroken", { session: SessionId }) {
  override get message() {
    return `the key of session ${this.session} was not sealed to this client: start another session`
  }
  override get [Runtime.errorExitCode]() {
    return ExitCode.software
  }
}

/** Whatever an answer of the router may carry in place of a value. */
export const AnswerError = Schema.Union([
  NoHost,
  NoCapacity,
  WaitOver,
  Busy,
  SessionOver,
  NoSuchSession,
  SessionConflict,
  BadRequest,
  Malformed,
  LogFull,
  HostVanished
])
export type AnswerError = typeof AnswerError.Type

/** The stable code of an error: its tag in kebab case. */
export const errorCode = (error: { readonly _tag: string }): string =>
  error._tag.replace(/(?<=[a-z0-9])[A-Z]/g, (letter) => `-${letter}`).toLowerCase()

/** Errors of `juice attach` itself; those of the system stand in protocol/errors.ts. */
import * as Runtime from "effect/Runtime"
import * as Schema from "effect/Schema"
import { ExitCode } from "../protocol/errors.ts"
import { HostId } from "../protocol/ids.ts"

/** The program is not there: 127, as a shell says it. */
export class ProgramNotFound extends Schema.TaggedError<ProgramNotFound>()("ProgramNotFound", {
  program: Schema.String
}) {
  override get message() {
    return `${this.program}: no such program: check its name and PATH`
  }
  override get [Runtime.errorExitCode]() {
    return ExitCode.notFound
  }
}

export class ProgramNotExecutable extends Schema.TaggedError<ProgramNotExecutable>()("ProgramNotExecutable", {
  program: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return `${this.program}: cannot be executed (${this.detail}): check it with \`ls -l\` and \`file\``
  }
  override get [Runtime.errorExitCode]() {
    return ExitCode.notExecutable
  }
}

/** Whoever listens at the host's endpoint does not hold the session's key. */
export class HostNotProven extends Schema.TaggedError<HostNotProven>()("HostNotProven", {
  host: HostId,
  endpoint: Schema.String
}) {
  override get message() {
    return `the service at ${this.endpoint} is not the GPU host "${this.host}": another program has its port, or something stands in between`
  }
  override get [Runtime.errorExitCode]() {
    return ExitCode.unavailable
  }
}

/** The host took the connection and turned the session away. */
export class HostRefused extends Schema.TaggedError<HostRefused>()("HostRefused", {
  host: HostId,
  reason: Schema.String
}) {
  override get message() {
    return `the GPU host "${this.host}" did not take the session (${this.reason}): try again`
  }
  override get [Runtime.errorExitCode]() {
    return ExitCode.noCapacity
  }
}

/** A signal came before the program had started: the session is given back and `juice` dies by the signal. */
export class Interrupted extends Schema.TaggedError<Interrupted>()("Interrupted", { signal: Schema.String }) {
  override get message() {
    return `interrupted by ${this.signal} before the program started`
  }
}

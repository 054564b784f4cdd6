/** Errors of the command line itself; those of the system stand in protocol/errors.ts. */
import * as Runtime from "effect/Runtime"
import * as Schema from "effect/Schema"
import { ExitCode } from "../protocol/errors.ts"

/** Wrong flags, arguments or settings: a sentence that says which and what is right. */
export class Usage extends Schema.TaggedError<Usage>()("Usage", { detail: Schema.String }) {
  override get message() {
    return this.detail
  }
  override get [Runtime.errorExitCode]() {
    return ExitCode.usage
  }
}

/** The nats-server program that `juice up` starts is not there. */
export class NoNatsProgram extends Schema.TaggedError<NoNatsProgram>()("NoNatsProgram", { tried: Schema.String }) {
  override get message() {
    return `nats-server was not found (${this.tried}): install it with \`sudo apt-get install nats-server\`, or name it with --nats-server PATH or JUICE_NATS_SERVER`
  }
  override get [Runtime.errorExitCode]() {
    return ExitCode.unavailable
  }
}

/** A service that we started ended when it should not have. */
export class ServiceFailed extends Schema.TaggedError<ServiceFailed>()("ServiceFailed", {
  service: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return `${this.service} failed: ${this.detail}`
  }
  override get [Runtime.errorExitCode]() {
    return ExitCode.software
  }
}

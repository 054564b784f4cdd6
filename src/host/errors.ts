/** Errors of the host service. */
import * as Runtime from "effect/Runtime"
import * as Schema from "effect/Schema"
import { ExitCode } from "../protocol/errors.ts"

/** A worker did not come up: its driver failed, it crashed, or it took too long. */
export class WorkerFailed extends Schema.TaggedError<WorkerFailed>()("WorkerFailed", { detail: Schema.String }) {
  override get message() {
    return `a GPU worker did not start: ${this.detail}`
  }
  override get [Runtime.errorExitCode]() {
    return ExitCode.unavailable
  }
}

/** The GPUs asked for are not here. */
export class NoGpus extends Schema.TaggedError<NoGpus>()("NoGpus", { detail: Schema.String }) {
  override get message() {
    return `no GPU to offer: ${this.detail}; \`--gpus soft:1\` offers a software GPU`
  }
  override get [Runtime.errorExitCode]() {
    return ExitCode.unavailable
  }
}

export class BadGpuChoice extends Schema.TaggedError<BadGpuChoice>()("BadGpuChoice", { text: Schema.String }) {
  override get message() {
    return `--gpus ${this.text} is not understood: use auto, all, none, soft:N, or UUIDs as \`nvidia-smi -L\` shows them, separated by commas`
  }
  override get [Runtime.errorExitCode]() {
    return ExitCode.usage
  }
}

/** Another process of ours uses the same folder. */
export class DataDirectoryInUse extends Schema.TaggedError<DataDirectoryInUse>()("DataDirectoryInUse", {
  directory: Schema.String,
  pid: Schema.Int
}) {
  override get message() {
    return `the folder ${this.directory} belongs to another juice that runs (process ${this.pid}): stop that one, or give this one another --data-dir`
  }
  override get [Runtime.errorExitCode]() {
    return ExitCode.usage
  }
}

export class DataDirectoryBroken extends Schema.TaggedError<DataDirectoryBroken>()("DataDirectoryBroken", {
  directory: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return `the folder ${this.directory} cannot be used (${this.detail}): name another with --data-dir`
  }
  override get [Runtime.errorExitCode]() {
    return ExitCode.usage
  }
}

export class CannotListen extends Schema.TaggedError<CannotListen>()("CannotListen", {
  address: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return `the data port ${this.address} cannot be opened (${this.detail}): choose another with --data-port`
  }
  override get [Runtime.errorExitCode]() {
    return ExitCode.unavailable
  }
}

/** The data plane's stream is not encrypted yet, so it stays on this machine unless told otherwise. */
export class PlaintextBeyondLoopback extends Schema.TaggedError<PlaintextBeyondLoopback>()("PlaintextBeyondLoopback", {
  address: Schema.String
}) {
  override get message() {
    return `--data-address ${this.address} is reachable from other machines, and the data between programs and GPUs is not encrypted yet: use a network that you trust and say so with --insecure-plaintext`
  }
  override get [Runtime.errorExitCode]() {
    return ExitCode.usage
  }
}

export type HostError =
  | WorkerFailed
  | NoGpus
  | DataDirectoryInUse
  | DataDirectoryBroken
  | CannotListen
  | PlaintextBeyondLoopback

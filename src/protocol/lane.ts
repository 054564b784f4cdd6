/**
 * The broker's lane: messages between `juice attach` and the host of its session, over the connection that is the
 * lease. One JSON object a line, at most MAX_LINE bytes; docs/architecture.md shows the conversation.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { jsonCodec } from "./codec.ts"
import { Malformed } from "./errors.ts"
import { Exit } from "./events.ts"
import { ProcessNumber } from "./ids.ts"

/** Bytes of one line, its newline included. */
export const MAX_LINE = 1024 * 1024
/** Both ends say something at least this often (ms). */
export const PING_INTERVAL = 2_000
/** An end that has been silent for this long (ms) is gone. */
export const LANE_SILENCE = 10_000
/** A session without connections lives on for this long (ms). */
export const LINGER = 2_000

const Pid = Schema.Int.check(Schema.isGreaterThan(0))

const message = <const Type extends string, const Fields extends Schema.Struct.Fields>(type: Type, fields: Fields) =>
  Schema.Struct({ type: Schema.Literal(type), ...fields })

const Ping = message("ping", {})

export const FromHost = Schema.Union([
  /** First. `proof`: hex HMAC-SHA256 of the broker key; `snapshot`: base64; `linger`: seconds. */
  message("welcome", {
    proof: Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/)),
    snapshot: Schema.String,
    linger: Schema.Finite
  }),
  /** The answer to a process: from `ok: true` on, its connections are welcome. */
  message("process", { process: ProcessNumber, ok: Schema.Literal(true) }),
  message("process", { process: ProcessNumber, ok: Schema.Literal(false), error: Schema.String }),
  Ping,
  /** The session is over, for the reason of this sentence. */
  message("end", { reason: Schema.String })
])
export type FromHost = typeof FromHost.Type

export const FromBroker = Schema.Union([
  /** A client process asks for its identity: sent before it gets one. */
  message("process", { process: ProcessNumber, pid: Pid }),
  /** It is gone. `exit` is known of the program itself only. */
  message("processEnded", { process: ProcessNumber, exit: Schema.optionalKey(Exit) }),
  Ping,
  /** The broker is about to be stopped by job control: until it speaks again, its silence means nothing. */
  message("pause", {}),
  /** The program has ended. */
  message("bye", {})
])
export type FromBroker = typeof FromBroker.Type

export const fromHostCodec = jsonCodec("message of a host", FromHost)
export const fromBrokerCodec = jsonCodec("message of a broker", FromBroker)

/** Cuts a stream of bytes into lines, without their newlines. Fails once a line is longer than MAX_LINE. */
export class LineSplitter {
  #rest = Buffer.alloc(0)

  push(chunk: Uint8Array): Result.Result<ReadonlyArray<Buffer>, Malformed> {
    let rest = this.#rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#rest, chunk])
    const lines: Array<Buffer> = []
    for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
      if (end >= MAX_LINE) break
      lines.push(rest.subarray(0, end))
      rest = rest.subarray(end + 1)
    }
    this.#rest = Buffer.from(rest)
    return this.#rest.length >= MAX_LINE
      ? Result.fail(new Malformed({ what: "line", detail: `it is longer than ${MAX_LINE} bytes` }))
      : Result.succeed(lines)
  }
}

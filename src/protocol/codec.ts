/**
 * Messages as bytes: UTF-8 JSON, checked against a schema on the way in. One codec for each message, made once.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { Malformed } from "./errors.ts"

export interface Codec<T> {
  readonly encode: (value: T) => Uint8Array
  /** Malformed when the bytes are no JSON or the JSON is not such a message; unknown fields are ignored. */
  readonly decode: (bytes: Uint8Array) => Result.Result<T, Malformed>
}

const encoder = new TextEncoder()
const decoder = new TextDecoder("utf-8", { fatal: true })

/** The JSON value of some bytes. */
export const parseJson = (what: string, bytes: Uint8Array): Result.Result<unknown, Malformed> =>
  Result.try({
    try: () => JSON.parse(decoder.decode(bytes)) as unknown,
    catch: () => new Malformed({ what, detail: "it is not UTF-8 JSON" })
  })

/** `what` names the message in errors: "prepare request". */
export const jsonCodec = <T>(what: string, schema: Schema.Codec<T, unknown>): Codec<T> => {
  const fromUnknown = Schema.decodeUnknownResult(schema)
  const toUnknown = Schema.encodeSync(schema)
  return {
    encode: (value) => encoder.encode(JSON.stringify(toUnknown(value))),
    decode: (bytes) =>
      Result.flatMap(parseJson(what, bytes), (json) =>
        Result.mapError(fromUnknown(json), (error) => new Malformed({ what, detail: error.message }))
      )
  }
}

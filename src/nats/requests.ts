/**
 * Request and reply: asking, and serving, with Effect on both ends.
 */
import type { Msg } from "@nats-io/nats-core"
import { Svcm } from "@nats-io/services"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type { Codec } from "../protocol/codec.ts"
import type { Malformed } from "../protocol/errors.ts"
import { Nats } from "./connection.ts"
import { type NatsError, natsError } from "./errors.ts"

/** Asks and decodes the answer. */
export const ask = <Q, A>(options: {
  readonly subject: string
  readonly query: Q
  readonly encode: Codec<Q>
  readonly decode: Codec<A>
  readonly timeout: number
}): Effect.Effect<A, NatsError | Malformed, Nats> =>
  Effect.gen(function* () {
    const nats = yield* Nats
    const body = yield* nats.request(options.subject, options.encode.encode(options.query), options.timeout)
    return yield* Effect.fromResult(options.decode.decode(body))
  })

/** Answers one request: the body of the answer, or undefined for none. It must not fail. */
export type Handler = (request: {
  readonly subject: string
  readonly body: Uint8Array
}) => Effect.Effect<Uint8Array | undefined>

/** Runs handlers in fibers of the scope; a defect in one is logged and leaves the asker without an answer. */
const runner = Effect.fnUntraced(function* () {
  const fibers = yield* FiberSet.make<void>()
  const run = yield* FiberSet.runtime(fibers)<never>()
  return (message: Msg, handler: Handler): void => {
    run(
      handler({ subject: message.subject, body: message.data }).pipe(
        Effect.tap((answer) => Effect.sync(() => answer !== undefined && message.respond(answer))),
        Effect.tapCause((cause) => Effect.logError(`a request on ${message.subject} failed`, cause)),
        Effect.ignoreCause
      )
    )
  }
})

/** Answers requests on a subject for as long as the scope is open; with `queue`, one of the group does. */
export const serve = Effect.fnUntraced(function* (options: {
  readonly subject: string
  readonly queue?: string
  readonly handler: Handler
}): Effect.fn.Return<void, NatsError, Nats | Scope.Scope> {
  const nats = yield* Nats
  const run = yield* runner()
  yield* Effect.acquireRelease(
    Effect.try({
      try: () =>
        nats.connection.subscribe(options.subject, {
          ...(options.queue === undefined ? {} : { queue: options.queue }),
          callback: (error, message) => {
            if (error === null) run(message, options.handler)
          }
        }),
      catch: natsError(`serve ${options.subject}`)
    }),
    (subscription) => Effect.sync(() => subscription.unsubscribe())
  )
  yield* nats.ping
})

/** Delivers messages of a subject, decoded; those that cannot be read are logged and dropped. */
export const listen = <T>(options: {
  readonly subject: string
  readonly codec: Codec<T>
  readonly onMessage: (message: T, subject: string) => Effect.Effect<void>
}): Effect.Effect<void, NatsError, Nats | Scope.Scope> =>
  serve({
    subject: options.subject,
    handler: ({ body, subject }) => {
      const decoded = options.codec.decode(body)
      return Result.isFailure(decoded)
        ? Effect.as(Effect.logWarning(`a message on ${subject} was dropped: ${decoded.failure.message}`), undefined)
        : Effect.as(options.onMessage(decoded.success, subject), undefined)
    }
  })

/**
 * A service of the NATS micro protocol (discoverable with ping, info and stats) for as long as the scope is open.
 * Endpoint names are the last two tokens of their subjects, joined by a dash.
 */
export const serveMicro = Effect.fnUntraced(function* (options: {
  readonly name: string
  readonly version: string
  readonly description: string
  readonly metadata: Record<string, string>
  readonly endpoints: ReadonlyArray<{ readonly subject: string; readonly handler: Handler }>
}): Effect.fn.Return<void, NatsError, Nats | Scope.Scope> {
  const nats = yield* Nats
  const run = yield* runner()
  const service = yield* Effect.acquireRelease(
    Effect.tryPromise({
      try: () =>
        new Svcm(nats.connection).add({
          name: options.name,
          version: options.version,
          description: options.description,
          metadata: options.metadata
        }),
      catch: natsError(`serve ${options.name}`)
    }),
    (service) =>
      Effect.promise(() =>
        service.stop().then(
          () => undefined,
          () => undefined
        )
      ).pipe(Effect.timeoutOption(1_000))
  )
  yield* Effect.try({
    try: () => {
      for (const { handler, subject } of options.endpoints) {
        service.addEndpoint(subject.split(".").slice(-2).join("-"), {
          subject,
          handler: (error, message) => {
            if (error === null) run(message, handler)
          }
        })
      }
    },
    catch: natsError(`serve ${options.name}`)
  })
  yield* nats.ping
})

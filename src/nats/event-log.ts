/**
 * The session log: one segment of it, as a service.
 *
 * An append says which sequence it must follow, so the log itself decides who may write: there is one commit in
 * flight, and a deposed leader's next append fails.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { FIRST_SEGMENT, logStream, logSubject } from "../protocol/subjects.ts"
import type { Site } from "../protocol/tokens.ts"
import { Nats } from "./connection.ts"
import { isTransient, NatsError, natsError, WrongLastSequence } from "./errors.ts"
import { readStream, type Stored } from "./messages.ts"
import { checkStream, ensureStream, wantedLog } from "./streams.ts"

export class EventLog extends Context.Service<
  EventLog,
  {
    /** The stream's name: what the chain begins with. */
    readonly stream: string
    readonly segment: number
    /**
     * Stores `body` right after sequence `expected` and succeeds with its own sequence. When the answer is lost or
     * says conflict, the message at that place is read and compared: equal means that ours was stored. Fails with
     * WrongLastSequence when another message has the place. Tries on for as long as the server cannot be reached;
     * interrupt it to give up.
     */
    readonly append: (body: Uint8Array, expected: number) => Effect.Effect<number, NatsError>
    /** The stored message of this sequence. */
    readonly at: (sequence: number) => Effect.Effect<Stored | undefined, NatsError>
    /** The last sequence (0 when empty), the bytes it takes, and those it may take (-1: no limit). */
    readonly extent: Effect.Effect<
      { readonly last: number; readonly bytes: number; readonly maxBytes: number },
      NatsError
    >
    /** Stored messages from a sequence on, without a gap: to the present end, or following what comes. */
    readonly read: (options: { readonly from: number; readonly follow: boolean }) => Stream.Stream<Stored, NatsError>
  }
>()("juice/nats/EventLog") {}

export interface EventLogOptions {
  readonly site: Site
  readonly segment?: number
  /** Bytes that the segment may take; a new stream's only. */
  readonly maxBytes?: number
  /** For readers: do not make the stream; fail with NotFound when no router ever made it. */
  readonly existing?: boolean
}

const sameBytes = (a: Uint8Array, b: Uint8Array): boolean => Buffer.compare(a, b) === 0

/** What to make of a failed publish: the message that has our place decides. */
const settle = Effect.fnUntraced(function* (options: {
  readonly error: NatsError
  readonly body: Uint8Array
  readonly expected: number
  readonly at: (sequence: number) => Effect.Effect<Stored | undefined, NatsError>
}) {
  const { error, expected } = options
  const place = expected + 1
  const found = yield* options.at(place)
  if (found !== undefined) {
    if (sameBytes(found.body, options.body)) return { stored: place } as const
    return yield* new NatsError({ operation: error.operation, reason: new WrongLastSequence({ expected }) })
  }
  // A conflict with nothing in our place: the stream is shorter than we think, so it is not the one we folded.
  if (error.reason._tag === "WrongLastSequence") {
    return yield* new NatsError({ operation: error.operation, reason: new WrongLastSequence({ expected }) })
  }
  return { stored: undefined } as const
})

const RETRY_EVERY = 250

const make = Effect.fnUntraced(function* (options: EventLogOptions) {
  const nats = yield* Nats
  const context = yield* Effect.context<Nats>()
  const segment = options.segment ?? FIRST_SEGMENT
  const stream = logStream(options.site, segment)
  const subject = logSubject(options.site, segment)
  const wanted = wantedLog(options.site, segment, options.maxBytes === undefined ? {} : { maxBytes: options.maxBytes })
  yield* options.existing === true ? checkStream(wanted) : ensureStream(wanted)
  const manager = nats.manager

  const at = (sequence: number): Effect.Effect<Stored | undefined, NatsError> =>
    Effect.tryPromise({
      try: () => manager.streams.getMessage(stream, { seq: sequence }),
      catch: natsError(`read ${stream}`)
    }).pipe(
      Effect.map((message) =>
        message === null
          ? undefined
          : { sequence: message.seq, subject: message.subject, body: message.data, time: message.time.getTime() }
      )
    )

  const publish = (body: Uint8Array, expected: number) =>
    Effect.tryPromise({
      try: () =>
        nats.jetstream.publish(subject, body, {
          expect: { lastSequence: expected, streamName: stream },
          timeout: 2_000
        }),
      catch: natsError(`append to ${stream}`)
    })

  const append = Effect.fn("EventLog.append")(function* (body: Uint8Array, expected: number) {
    while (true) {
      const published = yield* Effect.result(publish(body, expected))
      if (published._tag === "Success") return published.success.seq
      const error = published.failure
      if (error.reason._tag !== "WrongLastSequence" && !isTransient(error)) return yield* error
      const settled = yield* Effect.result(settle({ error, body, expected, at }))
      if (settled._tag === "Failure") {
        if (!isTransient(settled.failure)) return yield* settled.failure
      } else if (settled.success.stored !== undefined) {
        return settled.success.stored
      }
      yield* Effect.sleep(RETRY_EVERY)
    }
  })

  return EventLog.of({
    stream,
    segment,
    append,
    at,
    extent: Effect.tryPromise({
      try: () => manager.streams.info(stream),
      catch: natsError(`look at ${stream}`)
    }).pipe(
      Effect.map(({ state, config }) => ({
        last: state.last_seq,
        bytes: state.bytes,
        maxBytes: config.max_bytes
      }))
    ),
    read: ({ follow, from }) =>
      readStream({ stream, from, follow, contiguous: true }).pipe(Stream.provideContext(context))
  })
})

/** The log of a site in JetStream; its stream is made if missing, and its configuration checked. */
export const layerEventLog = (options: EventLogOptions) => Layer.effect(EventLog, make(options))

/** A log in memory, for tests of what is above it: same conflicts, same order, no server. */
export const makeMemoryLog = (stream: string, segment = FIRST_SEGMENT): EventLog["Service"] => {
  const messages: Array<Stored> = []
  const waiting = new Set<() => void>()
  const tail = (from: number): Stream.Stream<Stored> =>
    Stream.unfold(from, (next: number) =>
      Effect.callback<readonly [Stored, number]>((resume) => {
        const look = () => {
          const message = messages[next - 1]
          if (message === undefined) return
          waiting.delete(look)
          resume(Effect.succeed([message, next + 1] as const))
        }
        waiting.add(look)
        look()
        return Effect.sync(() => waiting.delete(look))
      })
    )
  return EventLog.of({
    stream,
    segment,
    append: (body, expected) =>
      Effect.suspend(() => {
        if (messages.length !== expected) {
          return Effect.fail(
            new NatsError({ operation: `append to ${stream}`, reason: new WrongLastSequence({ expected }) })
          )
        }
        messages.push({ sequence: expected + 1, subject: stream, body, time: Date.now() })
        for (const look of [...waiting]) look()
        return Effect.succeed(expected + 1)
      }),
    at: (sequence) => Effect.sync(() => messages[sequence - 1]),
    extent: Effect.sync(() => ({
      last: messages.length,
      bytes: messages.reduce((sum, { body }) => sum + body.length, 0),
      maxBytes: -1
    })),
    read: ({ follow, from }) =>
      follow
        ? tail(Math.max(1, from))
        : Stream.suspend(() => Stream.fromIterable(messages.slice(Math.max(1, from) - 1)))
  })
}

export const layerEventLogMemory = (stream: string) => Layer.sync(EventLog, () => makeMemoryLog(stream))

/**
 * Messages of a stream as an Effect Stream: in order, without gap or repetition, unfiltered.
 */
import type { JsMsg, PushConsumer } from "@nats-io/jetstream"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import { Nats } from "./connection.ts"
import { Gap, NatsError, natsError } from "./errors.ts"

/** A stored message. `time`: when the server stored it (ms). */
export interface Stored {
  readonly sequence: number
  readonly subject: string
  readonly body: Uint8Array
  readonly time: number
}

const NANOS_PER_MS = 1_000_000
/** Messages that wait for a slow reader. */
const BUFFER = 4_096
/** How often a follower compares what it has with what the server has. */
const WATCH_INTERVAL = 2_000

const stored = (message: JsMsg): Stored => ({
  sequence: message.seq,
  subject: message.subject,
  body: message.data,
  time: Math.floor(message.info.timestampNanos / NANOS_PER_MS)
})

export interface ReadOptions {
  readonly stream: string
  /** The first sequence to deliver. */
  readonly from: number
  /** Whether to go on with what comes later; otherwise the stream ends with the last message there is now. */
  readonly follow: boolean
  /** Whether a hole in the sequences is an error (true), or old messages may have expired. */
  readonly contiguous: boolean
}

/**
 * Reads by an ordered push consumer, which recovers from a restarted server at once where a pull consumer was seen
 * to need up to 44 s. No filter: one that matches everything can cost twentyfold on replay. A follower that gets
 * nothing although the server has more starts a new consumer where it stands.
 */
export const readStream = (options: ReadOptions): Stream.Stream<Stored, NatsError, Nats> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const nats = yield* Nats
      const manager = nats.manager
      const operation = `read ${options.stream}`
      const info = Effect.tryPromise({ try: () => manager.streams.info(options.stream), catch: natsError(operation) })
      let next = Math.max(1, options.from)

      const open = Effect.acquireRelease(
        Effect.tryPromise({
          try: async () => {
            const consumer = await nats.jetstream.consumers.getPushConsumer(options.stream, { opt_start_seq: next })
            return consumer.consume()
          },
          catch: natsError(operation)
        }),
        (messages: Awaited<ReturnType<PushConsumer["consume"]>>) =>
          Effect.promise(() =>
            Promise.resolve(messages.close()).then(
              () => undefined,
              () => undefined
            )
          )
      )

      /** The error when a message does not follow the one before it. */
      const gapAt = (sequence: number): NatsError | undefined => {
        if (!options.contiguous || sequence === next) return undefined
        const reason = new Gap({ stream: options.stream, expected: next, got: sequence })
        return new NatsError({ operation, reason })
      }

      /**
       * Messages from where we stand, until the consumer ends. Pumped by a plain loop into a bounded queue, which is
       * several times faster than an effect for each message; a full queue stops the loop, and with it the server.
       */
      const pass = Stream.callback<Stored, NatsError>(
        Effect.fnUntraced(function* (queue) {
          const messages = yield* open
          const pump = async () => {
            for await (const message of messages) {
              if (message.seq < next) continue
              const gap = gapAt(message.seq)
              if (gap !== undefined) throw gap
              next = message.seq + 1
              const offered = stored(message)
              if (!Queue.offerUnsafe(queue, offered)) await Effect.runPromise(Queue.offer(queue, offered))
            }
          }
          pump().then(
            () => Queue.endUnsafe(queue),
            (cause) => Queue.failCauseUnsafe(queue, Cause.fail(natsError(operation)(cause)))
          )
        }),
        { bufferSize: BUFFER, strategy: "suspend" }
      )

      if (!options.follow) {
        const { state } = yield* info
        if (state.last_seq < next) return Stream.empty
        const last = state.last_seq
        return pass.pipe(Stream.takeUntil((message) => message.sequence >= last))
      }

      /** Completes when two looks in a row find the server ahead and nothing delivered in between. */
      const stalled = Effect.gen(function* () {
        let before = -1
        while (true) {
          yield* Effect.sleep(WATCH_INTERVAL)
          const server = yield* Effect.option(info)
          const ahead = server._tag === "Some" && server.value.state.last_seq >= next
          if (ahead && before === next) return
          before = ahead ? next : -1
        }
      })
      return pass.pipe(
        Stream.interruptWhen(stalled),
        // A consumer that could not be made or was lost is made again, where we stand; only a gap is final.
        Stream.catch((error) =>
          error.reason._tag === "Gap"
            ? Stream.fail(error)
            : Stream.fromEffectDrain(Effect.logWarning(`${error.message}; trying again`))
        ),
        Stream.repeat(Schedule.spaced(500))
      )
    })
  )

/** `juice events`: what the session log of a site has recorded. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { siteError } from "../../client/lease.ts"
import { Nats } from "../../nats/connection.ts"
import { natsError } from "../../nats/errors.ts"
import { layerEventLog } from "../../nats/event-log.ts"
import { NoJetStream, NoRouter } from "../../protocol/errors.ts"
import type { Event } from "../../protocol/events.ts"
import { FIRST_SEGMENT, logStream } from "../../protocol/subjects.ts"
import type { Site } from "../../protocol/tokens.ts"
import { type LoggedEvent, readEvents } from "../../router/events.ts"
import { Usage } from "../errors.ts"
import { type Common, natsLayer, siteOf } from "../nats.ts"
import { dayText, JSON_VERSION, print, timeText } from "../output.ts"
import { catchStopSignals } from "../signals.ts"
import { eventText, subjectText } from "../story.ts"

export interface EventsInput extends Common {
  readonly follow: boolean
  readonly since: Option.Option<string>
  readonly session: Option.Option<string>
  readonly json: boolean
}

/** Where to begin: with a commit of the log, or at a time. */
export type Since = { readonly sequence: number } | { readonly time: number }

const AGO: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** "10m" (ago), "2026-11-30T12:00:00Z" (a time) or "#42" (a commit). */
export const parseSince = (text: string, now = Date.now()): Effect.Effect<Since, Usage> => {
  const commit = /^#(\d+)$/.exec(text)
  if (commit !== null) return Effect.succeed({ sequence: Number(commit[1]) })
  const ago = /^(\d+)([smhd])$/.exec(text)
  if (ago !== null) return Effect.succeed({ time: now - Number(ago[1]) * AGO[ago[2]!]! })
  const time = Date.parse(text)
  return Number.isNaN(time)
    ? Effect.fail(
        new Usage({
          detail: `--since ${text}: write how long ago (10m, 2h, 1d), a time (2026-11-30T12:00Z) or a commit (#42)`
        })
      )
    : Effect.succeed({ time })
}

const isOf = (event: Event, session: Option.Option<string>): boolean =>
  Option.isNone(session) || (event.aggregate === "session" && event.session.endsWith(session.value.toLowerCase()))

/** Prints events as they come, a day's heading before the first of each day. */
const teller = (json: boolean): ((told: LoggedEvent) => void) => {
  if (json) {
    return (told) => print(JSON.stringify({ version: JSON_VERSION, ...told }))
  }
  let day = ""
  return ({ at, event }) => {
    if (dayText(at) !== day) {
      day = dayText(at)
      print(day)
    }
    print(`${timeText(at)}  ${subjectText(event).padEnd(18)} ${eventText(event)}`)
  }
}

/** A log that does not exist is an error; following it would wait for it for ever. */
const logIsThere = Effect.fnUntraced(function* (site: Site) {
  const { manager, servers } = yield* Nats
  const stream = logStream(site, FIRST_SEGMENT)
  yield* Effect.tryPromise({ try: () => manager.streams.info(stream), catch: natsError(`look at ${stream}`) }).pipe(
    Effect.catchTag("NatsError", (error) =>
      Effect.fail(
        error.reason._tag === "NotFound"
          ? new NoRouter({ site })
          : error.reason._tag === "NoJetStreamHere"
            ? new NoJetStream({ server: servers })
            : siteError(site, servers, error)
      )
    )
  )
})

const tellAll = Effect.fnUntraced(function* (input: EventsInput) {
  const site = yield* siteOf(input)
  const since = yield* Option.match(input.since, {
    onNone: () => Effect.succeed<Since>({ sequence: 1 }),
    onSome: (text) => parseSince(text)
  })
  const tell = teller(input.json)
  yield* logIsThere(site)
  const wanted = ({ at, event }: LoggedEvent) =>
    ("time" in since ? at >= since.time : true) && isOf(event, input.session)
  yield* readEvents({ from: "sequence" in since ? since.sequence : 1, follow: input.follow }).pipe(
    Stream.filter(wanted),
    Stream.runForEach((told) => Effect.sync(() => tell(told))),
    Effect.provide(layerEventLog({ site }))
  )
})

/** Succeeds with the signal that ended it, if one did. */
export const runEvents = Effect.fnUntraced(
  function* (input: EventsInput) {
    const nats = yield* Nats
    const { first } = yield* catchStopSignals
    const stopped = Effect.map(first, (signal): NodeJS.Signals | undefined => signal)
    return yield* Effect.raceFirst(Effect.as(tellAll(input), undefined), Effect.raceFirst(stopped, nats.closed))
  },
  Effect.scoped,
  (effect, input) => Effect.provide(effect, natsLayer(input, "juice events"))
)

/**
 * Questions that every replica answers from its fold.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type { Nats } from "../nats/connection.ts"
import type { NatsError } from "../nats/errors.ts"
import { serve } from "../nats/requests.ts"
import {
  answerCodec,
  HostsListQuery,
  HostsListResult,
  type Position,
  RouterStatusQuery,
  RouterStatusResult,
  SessionGetQuery,
  SessionGetResult,
  SessionsListQuery,
  SessionsListResult
} from "../protocol/answers.ts"
import { jsonCodec } from "../protocol/codec.ts"
import { type AnswerError, Busy, Malformed, NoSuchSession } from "../protocol/errors.ts"
import type { RouterId } from "../protocol/ids.ts"
import { principalOfSubject, READ_QUEUE, type ReadVerb, readPattern } from "../protocol/subjects.ts"
import type { Principal, Site } from "../protocol/tokens.ts"
import { VERSION } from "../protocol/version.ts"
import { answer } from "./api.ts"
import { countSessions, findSession, listHosts, listSessions, sessionView } from "./queries.ts"
import type { Replica } from "./replica.ts"

/** How long (ms) a replica may take to reach the position that the asker has seen. */
const CATCH_UP = 2_000

export const serveReads = Effect.fnUntraced(function* (options: {
  readonly site: Site
  readonly router: RouterId
  readonly replica: Replica
  readonly isLeading: () => boolean
}): Effect.fn.Return<void, NatsError, Nats | Scope.Scope> {
  const { replica, site } = options
  const { state } = replica

  /** Serves one verb: decode, catch up with what the asker has seen, look, answer. */
  const read = <Q extends { readonly after?: Position }, A>(
    verb: ReadVerb,
    query: ReturnType<typeof jsonCodec<Q>>,
    result: ReturnType<typeof answerCodec<A>>,
    look: (query: Q, principal: Principal) => Effect.Effect<A, AnswerError>
  ) =>
    serve({
      subject: readPattern(site, verb),
      queue: READ_QUEUE,
      handler: ({ body, subject }) =>
        answer(
          result,
          Effect.gen(function* () {
            const principal = principalOfSubject(subject)
            if (principal === undefined) {
              return yield* new Malformed({ what: "subject", detail: "it names no principal" })
            }
            const decoded = query.decode(body)
            if (Result.isFailure(decoded)) return yield* decoded.failure
            const { after } = decoded.success
            if (after !== undefined) yield* caughtUp(after)
            return yield* look(decoded.success, principal)
          })
        )
    })

  const caughtUp = (after: Position): Effect.Effect<void, Busy> =>
    replica
      .reach(after.sequence)
      .pipe(
        Effect.timeoutOrElse({ duration: CATCH_UP, orElse: () => Effect.fail(new Busy({ retryAfterMs: CATCH_UP })) })
      )

  const seenAt = () => ({ position: state.position, now: state.now })

  yield* read(
    "session.get",
    jsonCodec("session query", SessionGetQuery),
    answerCodec("session", SessionGetResult),
    (query, principal) => {
      const session = findSession(state, principal, query.session)
      return session === undefined
        ? Effect.fail(new NoSuchSession({ session: query.session }))
        : Effect.succeed({ ...seenAt(), session: sessionView(state, session) })
    }
  )
  yield* read(
    "sessions.list",
    jsonCodec("sessions query", SessionsListQuery),
    answerCodec("list of sessions", SessionsListResult),
    (query, principal) => Effect.succeed(listSessions(state, principal, query))
  )
  yield* read(
    "hosts.list",
    jsonCodec("hosts query", HostsListQuery),
    answerCodec("list of hosts", HostsListResult),
    (query) => Effect.succeed(listHosts(state, query))
  )
  yield* read(
    "router.status",
    jsonCodec("router query", RouterStatusQuery),
    answerCodec("router status", RouterStatusResult),
    () =>
      Effect.succeed({
        ...seenAt(),
        router: options.router,
        version: VERSION,
        leading: options.isLeading(),
        epoch: state.epoch,
        head: state.head,
        hosts: [...state.hosts.values()].filter(({ left }) => !left).length,
        ...countSessions(state),
        ...(state.leader === undefined ? {} : { leader: state.leader })
      })
  )
})

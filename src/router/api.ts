/**
 * What the leader answers to clients: session.request and session.release.
 *
 * session.request is a long poll. The answer is held until the session is ready or over, but no longer than
 * REQUEST_PATIENCE; then the client gets the present state and asks again with the same ids. Nothing is lost with a
 * leader: its successor answers the next repetition. A queued client's asking is also what shows that it lives.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Handler } from "../nats/requests.ts"
import {
  type Answer,
  answerCodec,
  type SessionReleaseResult,
  SessionReleaseResult as SessionReleaseResultSchema,
  type SessionRequestResult,
  SessionRequestResult as SessionRequestResultSchema
} from "../protocol/answers.ts"
import { type Codec, jsonCodec } from "../protocol/codec.ts"
import { SessionReleaseBody, SessionRequestBody } from "../protocol/commands.ts"
import {
  type AnswerError,
  BadRequest,
  Busy,
  HostVanished,
  LogFull,
  Malformed,
  NoCapacity,
  NoHost,
  NoSuchSession,
  SessionConflict,
  SessionOver,
  WaitOver
} from "../protocol/errors.ts"
import type { SessionId } from "../protocol/ids.ts"
import { MAX_MESSAGE_BYTES, MAX_WAITING_COMMANDS, REQUEST_PATIENCE } from "../protocol/limits.ts"
import { principalOfSubject } from "../protocol/subjects.ts"
import type { Principal, Site } from "../protocol/tokens.ts"
import type { Committer } from "./committer.ts"
import type { Rejection } from "./decide.ts"
import type { Driver } from "./driver.ts"
import { countRejection } from "./metrics.ts"
import { findSession, sessionView } from "./queries.ts"
import type { Replica } from "./replica.ts"
import type { Session } from "./state.ts"

const requestCodec = jsonCodec("session request", SessionRequestBody)
const releaseCodec = jsonCodec("session release", SessionReleaseBody)
const requestAnswer = answerCodec("answer to a session request", SessionRequestResultSchema)
const releaseAnswer = answerCodec("answer to a session release", SessionReleaseResultSchema)

/** Of the log's space, the part kept for the endings of sessions that run. */
const RESERVED_FOR_ENDINGS = 0.1
/** After so long (ms) a client that was told Busy should try again. */
const RETRY_AFTER = 1_000

export interface Api {
  readonly request: Handler
  readonly release: Handler
  /** Since when (ms of the steady clock) the client of a queued session has not asked; undefined while it asks. */
  readonly silentSince: (session: SessionId) => number | undefined
}

const rejectionError = (site: Site, rejection: Rejection): AnswerError => {
  switch (rejection._tag) {
    case "NoHost":
      return new NoHost({ site })
    case "NoCapacity":
      return new NoCapacity({ why: rejection.why })
    case "NoSuchSession":
      return new NoSuchSession({ session: rejection.session })
    case "SessionConflict":
      return new SessionConflict({ session: rejection.session })
    case "BadRequest":
      return new BadRequest({ detail: rejection.detail })
  }
}

/** What a client is told whose session ended before it was ready. */
const overError = (session: Session): AnswerError => {
  const reason = session.reason ?? "released"
  if (reason === "wait-over") return new WaitOver({ waitMs: session.waitMs })
  if (reason === "refused" && session.refusal?.reason === "no-answer") {
    return new HostVanished({ host: session.refusal.host })
  }
  return new SessionOver({ session: session.session, reason })
}

/** Decodes what a client sent, and who it is. */
const read = <Body>(
  codec: Codec<Body>,
  request: { readonly subject: string; readonly body: Uint8Array }
): Result.Result<{ readonly principal: Principal; readonly body: Body }, AnswerError> => {
  const principal = principalOfSubject(request.subject)
  if (principal === undefined) {
    return Result.fail(new Malformed({ what: "subject", detail: "it names no principal" }))
  }
  if (request.body.length > MAX_MESSAGE_BYTES) {
    return Result.fail(new BadRequest({ detail: `it has ${request.body.length} bytes` }))
  }
  return Result.map(codec.decode(request.body), (body) => ({ principal, body }))
}

export const makeApi = (options: {
  readonly site: Site
  readonly committer: Committer
  readonly driver: Driver
  readonly replica: Replica
  /** Bytes that the log's stream may take; -1: no limit. */
  readonly maxBytes: number
}): Api => {
  const { committer, driver, replica, site } = options
  const startedAt = performance.now()
  const asking = new Map<SessionId, { asks: number; since: number }>()

  const isFull = () => options.maxBytes > 0 && committer.bytes() > options.maxBytes * (1 - RESERVED_FOR_ENDINGS)

  const overloaded = Effect.map(committer.waiting, (waiting) => waiting > MAX_WAITING_COMMANDS)

  const settled = (id: SessionId): boolean => {
    const state = replica.state.sessions.get(id)?.state
    return state !== "queued" && state !== "placed"
  }

  /** Notes that a session's client is asking, for as long as the effect runs. */
  const whileAsking = <A>(id: SessionId, effect: Effect.Effect<A>): Effect.Effect<A> =>
    Effect.acquireUseRelease(
      Effect.sync(() => {
        const entry = asking.get(id) ?? { asks: 0, since: 0 }
        entry.asks += 1
        asking.set(id, entry)
        return entry
      }),
      () => effect,
      (entry) =>
        Effect.sync(() => {
          entry.asks -= 1
          entry.since = performance.now()
          if (replica.state.sessions.get(id)?.state !== "queued" && entry.asks === 0) asking.delete(id)
        })
    )

  const handleRequest = Effect.fnUntraced(function* (
    principal: Principal,
    body: SessionRequestBody
  ): Effect.fn.Return<SessionRequestResult, AnswerError> {
    const isNew = !committer.state.sessions.has(body.session)
    if (isNew && isFull()) return yield* new LogFull({ site })
    if (yield* overloaded) return yield* new Busy({ retryAfterMs: RETRY_AFTER })
    const outcome = yield* committer.submit({ _tag: "session.request", principal, ...body })
    if (outcome._tag === "Rejected") {
      yield* countRejection
      return yield* Effect.fail(rejectionError(site, outcome.rejection))
    }
    yield* replica.reach(outcome.sequence)
    yield* Effect.timeoutOption(
      replica.untilSession(body.session, () => settled(body.session)),
      REQUEST_PATIENCE
    )
    const session = replica.state.sessions.get(body.session)
    // Ended so long ago that it is forgotten; its id is not used again.
    if (session === undefined) return yield* new NoSuchSession({ session: body.session })
    if (session.state === "ended" || session.state === "ending") return yield* Effect.fail(overError(session))
    const answer = { position: replica.state.position, session: sessionView(replica.state, session) }
    if (session.state !== "ready" && session.state !== "active") return answer
    const grant = yield* driver.grantOf(body.session)
    return grant === undefined ? answer : { ...answer, grant }
  })

  const handleRelease = Effect.fnUntraced(function* (
    principal: Principal,
    body: SessionReleaseBody
  ): Effect.fn.Return<SessionReleaseResult, AnswerError> {
    if (yield* overloaded) return yield* new Busy({ retryAfterMs: RETRY_AFTER })
    const outcome = yield* committer.submit({ _tag: "session.release", principal, ...body })
    if (outcome._tag === "Rejected") return yield* Effect.fail(rejectionError(site, outcome.rejection))
    yield* replica.reach(outcome.sequence)
    const session = findSession(replica.state, principal, body.session)
    if (session === undefined) return yield* new NoSuchSession({ session: body.session })
    return { position: replica.state.position, session: sessionView(replica.state, session) }
  })

  return {
    request: (message) => {
      const decoded = read(requestCodec, message)
      if (Result.isFailure(decoded)) return Effect.succeed(failed(requestAnswer, decoded.failure))
      const { body, principal } = decoded.success
      return whileAsking(body.session, answer(requestAnswer, handleRequest(principal, body)))
    },
    release: (message) => {
      const decoded = read(releaseCodec, message)
      if (Result.isFailure(decoded)) return Effect.succeed(failed(releaseAnswer, decoded.failure))
      return answer(releaseAnswer, handleRelease(decoded.success.principal, decoded.success.body))
    },
    silentSince: (session) => {
      const entry = asking.get(session)
      if (entry === undefined) return startedAt
      return entry.asks > 0 ? undefined : entry.since
    }
  }
}

const failed = <T>(codec: Codec<Answer<T>>, error: AnswerError): Uint8Array => codec.encode({ _tag: "Failed", error })

/** The bytes of an answer, whatever came of it. */
export const answer = <T>(codec: Codec<Answer<T>>, effect: Effect.Effect<T, AnswerError>): Effect.Effect<Uint8Array> =>
  Effect.match(effect, {
    onSuccess: (value) => codec.encode({ _tag: "Ok", value }),
    onFailure: (error) => failed(codec, error)
  })

/**
 * The lease: asking the site for a session until there is one, and giving it back.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { Nats } from "../nats/connection.ts"
import type { NatsError } from "../nats/errors.ts"
import { ask } from "../nats/requests.ts"
import {
  answerCodec,
  type Grant,
  SessionGetQuery,
  SessionGetResult,
  SessionReleaseResult,
  SessionRequestResult
} from "../protocol/answers.ts"
import { jsonCodec } from "../protocol/codec.ts"
import { type SessionRelease, SessionReleaseBody, SessionRequestBody } from "../protocol/commands.ts"
import {
  type AnswerError,
  type Malformed,
  NatsRefused,
  NoNatsServer,
  NoRouter,
  type SealBroken,
  SessionOver
} from "../protocol/errors.ts"
import type { GpuRequest, Labels } from "../protocol/gpu.ts"
import { mintCommandId, mintSessionId, type SessionId } from "../protocol/ids.ts"
import { READ_TIMEOUT, REQUEST_TIMEOUT } from "../protocol/limits.ts"
import { generateSealKeyPair, openSealed } from "../protocol/seal.ts"
import { commandSubject, readSubject } from "../protocol/subjects.ts"
import type { Site } from "../protocol/tokens.ts"

/** Without an answer for this long (ms) there is no router: an election takes less than five seconds. */
const NOBODY_ANSWERS = 6_000
/** A router that takes requests and answers none (ms). */
const ROUTER_HANGS = 14_000
const ASK_AGAIN = 250

const requestCodec = jsonCodec("session request", SessionRequestBody)
const requestAnswer = answerCodec("answer to a session request", SessionRequestResult)
const releaseCodec = jsonCodec("session release", SessionReleaseBody)
const releaseAnswer = answerCodec("answer to a session release", SessionReleaseResult)
const getCodec = jsonCodec("session query", SessionGetQuery)
const getAnswer = answerCodec("answer to a session query", SessionGetResult)

export interface LeaseRequest {
  readonly site: Site
  readonly gpus: GpuRequest
  readonly labels: Labels
  readonly waitMs: number
  readonly version: string
  readonly log: (sentence: string) => void
}

export interface Lease {
  readonly session: SessionId
  readonly grant: Grant
  /** 32 bytes; known to this process and the host only. */
  readonly sessionKey: Uint8Array
}

export type LeaseError = AnswerError | NoRouter | NoNatsServer | NatsRefused | SealBroken

/** What a failed question to the site means to a user. */
export const siteError = (site: Site, servers: string, error: NatsError): NoRouter | NoNatsServer | NatsRefused => {
  switch (error.reason._tag) {
    case "Disconnected":
      return new NoNatsServer({ server: servers, detail: error.reason.message })
    case "Denied":
      return new NatsRefused({ server: servers, detail: error.reason.message })
    default:
      return new NoRouter({ site })
  }
}

const isNatsError = (error: NatsError | Malformed): error is NatsError => error._tag === "NatsError"

/**
 * Asks for a session until it is ready, ended or refused. The ids are minted once, so asking again is harmless, and a
 * request whose answer was lost with a router's leader is answered by the next. Interrupting it gives the session back.
 */
export const requestLease = Effect.fn("Lease.request")(function* (
  request: LeaseRequest
): Effect.fn.Return<Lease, LeaseError, Nats> {
  const nats = yield* Nats
  const keyPair = generateSealKeyPair()
  const body: SessionRequestBody = {
    id: mintCommandId(),
    session: mintSessionId(),
    gpus: request.gpus,
    labels: request.labels,
    waitMs: request.waitMs,
    publicKey: keyPair.publicKey,
    client: { version: request.version, capabilities: [] }
  }
  const subject = commandSubject(request.site, nats.principal, "session.request")

  const untilReady = Effect.gen(function* () {
    let silentSince = yield* Clock.currentTimeMillis
    let queued = false
    while (true) {
      const now = yield* Clock.currentTimeMillis
      const timeout = Math.max(500, Math.min(REQUEST_TIMEOUT, silentSince + ROUTER_HANGS - now))
      const asked = yield* Effect.result(
        ask({ subject, query: body, encode: requestCodec, decode: requestAnswer, timeout })
      )
      if (asked._tag === "Failure") {
        const error = asked.failure
        if (!isNatsError(error)) return yield* error
        const failure = siteError(request.site, nats.servers, error)
        if (failure._tag === "NatsRefused") return yield* failure
        const patience = error.reason._tag === "TimedOut" ? ROUTER_HANGS : NOBODY_ANSWERS
        if ((yield* Clock.currentTimeMillis) - silentSince >= patience) return yield* failure
        yield* Effect.sleep(ASK_AGAIN)
        continue
      }
      silentSince = yield* Clock.currentTimeMillis
      const answer = asked.success
      if (answer._tag === "Failed") {
        if (answer.error._tag !== "Busy") return yield* answer.error
        yield* Effect.sleep(answer.error.retryAfterMs)
        continue
      }
      const { grant, session } = answer.value
      if (grant !== undefined) return grant
      if (session.state === "ended" || session.state === "ending") {
        return yield* new SessionOver({ session: session.session, reason: session.reason ?? "refused" })
      }
      if (session.state === "queued" && !queued) {
        queued = true
        request.log(`session ${session.session} waits for a free GPU`)
      }
      yield* Effect.sleep(ASK_AGAIN)
    }
  })

  const give = releaseLease(request.site, body.session, request.log)
  return yield* Effect.gen(function* () {
    const grant = yield* untilReady
    const sessionKey = yield* Effect.fromResult(
      openSealed({ sealed: grant.sealed, session: body.session, attempt: grant.attempt, keyPair })
    )
    return { session: body.session, grant, sessionKey }
  }).pipe(
    Effect.onInterrupt(() => give),
    Effect.tapErrorTag("SealBroken", () => give)
  )
})

/** Gives a session back. Never fails: what the site does not hear now, the host tells it when the lease ends. */
export const releaseLease = Effect.fn("Lease.release")(function* (
  site: Site,
  session: SessionId,
  log: (sentence: string) => void
): Effect.fn.Return<void, never, Nats> {
  const nats = yield* Nats
  const query: typeof SessionReleaseBody.Type = { id: mintCommandId(), session } satisfies Omit<
    typeof SessionRelease.Type,
    "_tag" | "principal"
  >
  yield* ask({
    subject: commandSubject(site, nats.principal, "session.release"),
    query,
    encode: releaseCodec,
    decode: releaseAnswer,
    timeout: 2_000
  }).pipe(
    Effect.matchEffect({
      onFailure: (error) => Effect.sync(() => log(`the session could not be released now (${error.message})`)),
      onSuccess: (answer) =>
        Effect.sync(() => {
          if (answer._tag === "Failed") log(`the session was not released: ${answer.error.message}`)
        })
    })
  )
})

/**
 * Waits, for a short while, until the site has recorded the session's end: then its GPU can be had by whoever comes
 * next, as a script that runs one `juice attach` after another expects.
 */
export const awaitEnded = Effect.fn("Lease.awaitEnded")(function* (
  site: Site,
  session: SessionId
): Effect.fn.Return<void, never, Nats> {
  const nats = yield* Nats
  const look = ask({
    subject: readSubject(site, nats.principal, "session.get"),
    query: { session },
    encode: getCodec,
    decode: getAnswer,
    timeout: READ_TIMEOUT
  }).pipe(
    Effect.map((answer) => answer._tag === "Ok" && answer.value.session.state === "ended"),
    Effect.catch(() => Effect.succeed(false))
  )
  yield* Effect.gen(function* () {
    while (!(yield* look)) yield* Effect.sleep(10)
  }).pipe(Effect.timeoutOption(2_000))
})

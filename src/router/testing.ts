/**
 * What tests of the router share: samples, and a host that is only its control-plane half.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import { Nats } from "../nats/connection.ts"
import type { NatsError } from "../nats/errors.ts"
import { sendHeartbeat } from "../nats/heartbeats.ts"
import { ensureReports, publishReport, publishReportAgain } from "../nats/reports.ts"
import { ask, serve } from "../nats/requests.ts"
import {
  answerCodec,
  HostsListQuery,
  HostsListResult,
  RouterStatusQuery,
  RouterStatusResult,
  SessionReleaseResult,
  SessionRequestResult
} from "../protocol/answers.ts"
import { jsonCodec } from "../protocol/codec.ts"
import { SessionReleaseBody, SessionRequestBody } from "../protocol/commands.ts"
import { type Gpu, NO_USAGE } from "../protocol/gpu.ts"
import {
  type HostId,
  type Incarnation,
  mintCommandId,
  mintIncarnation,
  mintSessionId,
  type SessionId
} from "../protocol/ids.ts"
import { READ_TIMEOUT, REQUEST_TIMEOUT } from "../protocol/limits.ts"
import {
  PrepareReply,
  PrepareRequest,
  ReleaseReply,
  ReleaseRequest,
  ResendReply,
  ResendRequest
} from "../protocol/prepare.ts"
import type { Report, ReportBody } from "../protocol/reports.ts"
import { generateSealKeyPair, newSessionKey, type SealKeyPair, sealToClient } from "../protocol/seal.ts"
import { commandSubject, hostSubject, readSubject } from "../protocol/subjects.ts"
import type { Site } from "../protocol/tokens.ts"

export const GIB = 1024 ** 3

export const gpu = (n: number, vram = 16 * GIB, model = "Test GPU"): Gpu => ({
  uuid: `GPU-${n}`,
  model,
  vram,
  computeCapability: "9.0",
  kind: "software"
})

export const requestBody = (
  options: Partial<SessionRequestBody> = {},
  keys: SealKeyPair = generateSealKeyPair()
): SessionRequestBody => ({
  id: mintCommandId(),
  session: mintSessionId(),
  gpus: { count: 1 },
  labels: {},
  waitMs: 0,
  publicKey: keys.publicKey,
  client: { version: "0.1.0", capabilities: [] },
  ...options
})

const requestCodec = jsonCodec("session request", SessionRequestBody)
const requestAnswer = answerCodec("answer", SessionRequestResult)
const releaseCodec = jsonCodec("session release", SessionReleaseBody)
const releaseAnswer = answerCodec("answer", SessionReleaseResult)

/** One `session.request`, one answer. */
export const askSession = Effect.fnUntraced(function* (site: Site, body: SessionRequestBody) {
  const { principal } = yield* Nats
  return yield* ask({
    subject: commandSubject(site, principal, "session.request"),
    query: body,
    encode: requestCodec,
    decode: requestAnswer,
    timeout: REQUEST_TIMEOUT
  })
})

/** Asks again and again, as a client does, until the session is ready or refused. */
export const attach = (site: Site, body: SessionRequestBody): Effect.Effect<SessionRequestResult, Error, Nats> =>
  Effect.gen(function* () {
    while (true) {
      const answer = yield* Effect.result(askSession(site, body))
      if (answer._tag === "Success") {
        if (answer.success._tag === "Failed") return yield* Effect.fail(answer.success.error)
        if (answer.success.value.grant !== undefined) return answer.success.value
      } else {
        yield* Effect.sleep(100)
      }
    }
  })

export const releaseSession = Effect.fnUntraced(function* (site: Site, session: SessionId) {
  const { principal } = yield* Nats
  return yield* ask({
    subject: commandSubject(site, principal, "session.release"),
    query: { id: mintCommandId(), session },
    encode: releaseCodec,
    decode: releaseAnswer,
    timeout: REQUEST_TIMEOUT
  })
})

export const askStatus = Effect.fnUntraced(function* (site: Site) {
  const { principal } = yield* Nats
  const answer = yield* ask({
    subject: readSubject(site, principal, "router.status"),
    query: {},
    encode: jsonCodec("router query", RouterStatusQuery),
    decode: answerCodec("router status", RouterStatusResult),
    timeout: READ_TIMEOUT
  })
  return answer._tag === "Ok" ? answer.value : yield* Effect.fail(answer.error)
})

export const askHosts = Effect.fnUntraced(function* (site: Site) {
  const { principal } = yield* Nats
  const answer = yield* ask({
    subject: readSubject(site, principal, "hosts.list"),
    query: {},
    encode: jsonCodec("hosts query", HostsListQuery),
    decode: answerCodec("hosts", HostsListResult),
    timeout: READ_TIMEOUT
  })
  return answer._tag === "Ok" ? answer.value.hosts : yield* Effect.fail(answer.error)
})

/** Tries until it succeeds with a value that will do. */
export const eventually = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  will: (value: A) => boolean = () => true
): Effect.Effect<A, never, R> =>
  Effect.gen(function* () {
    while (true) {
      const result = yield* Effect.result(effect)
      if (result._tag === "Success" && will(result.success)) return result.success
      yield* Effect.sleep(50)
    }
  })

export interface TestHost {
  readonly incarnation: Incarnation
  /** Sessions that it holds, each with its attempt. */
  readonly sessions: Map<SessionId, number>
  readonly prepares: Array<PrepareRequest>
  /** What it answers to prepare instead of preparing, while set. */
  refuse: "failed" | "silence" | undefined
  /** Whether heartbeats go out. */
  alive: boolean
  readonly report: (body: ReportBody) => Effect.Effect<void, NatsError, Nats>
  /** Numbers a report without publishing it. */
  readonly lose: (body: ReportBody) => void
  readonly end: (session: SessionId, reason: "client-exit" | "released") => Effect.Effect<void, NatsError, Nats>
}

/** A host of the control plane: joins, prepares, releases, reports, sends heartbeats; for as long as the scope. */
export const startTestHost = Effect.fnUntraced(function* (options: {
  readonly site: Site
  readonly host: HostId
  readonly gpus: ReadonlyArray<Gpu>
}): Effect.fn.Return<TestHost, NatsError, Nats | Scope.Scope> {
  const { host, site } = options
  const context = yield* Effect.context<Nats>()
  const incarnation = mintIncarnation()
  const sent: Array<Report> = []
  const sessions = new Map<SessionId, number>()
  const number = (body: ReportBody): Report => {
    const report: Report = { host, incarnation, n: sent.length + 1, at: Date.now(), body }
    sent.push(report)
    return report
  }
  const self: TestHost = {
    incarnation,
    sessions,
    prepares: [],
    refuse: undefined,
    alive: true,
    report: (body) => publishReport(site, number(body)),
    lose: number,
    end: (session, reason) => {
      const attempt = sessions.get(session)
      sessions.delete(session)
      return attempt === undefined
        ? Effect.void
        : self.report({ _tag: "session.ended", session, attempt, reason, usage: NO_USAGE })
    }
  }
  const encode = (codec: { readonly encode: (value: never) => Uint8Array }, value: unknown) =>
    codec.encode(value as never)

  yield* ensureReports(site)
  yield* serve({
    subject: hostSubject(site, host, "prepare"),
    handler: ({ body }) =>
      Effect.sync(() => {
        const request = Result.getOrThrow(jsonCodec("prepare", PrepareRequest).decode(body))
        self.prepares.push(request)
        if (self.refuse === "silence") return undefined
        const reply = jsonCodec("reply", PrepareReply)
        if (self.refuse === "failed") return encode(reply, { _tag: "PrepareRefused", reason: "failed" })
        sessions.set(request.session, request.attempt)
        const sealed = Result.getOrThrow(
          sealToClient({
            sessionKey: newSessionKey(),
            session: request.session,
            attempt: request.attempt,
            clientPublicKey: request.publicKey
          })
        )
        return encode(reply, { _tag: "Prepared", endpoint: { host: "127.0.0.1", port: 7400 }, sealed })
      })
  })
  yield* serve({
    subject: hostSubject(site, host, "release"),
    handler: ({ body }) =>
      Effect.gen(function* () {
        const { reason, session } = Result.getOrThrow(jsonCodec("release", ReleaseRequest).decode(body))
        const outcome = sessions.has(session) ? "releasing" : "unknown"
        const ended = reason === "cancelled" ? "released" : reason
        yield* self.end(session, ended as "released")
        return encode(jsonCodec("reply", ReleaseReply), { incarnation, outcome })
      }).pipe(Effect.provideContext(context), Effect.orDie)
  })
  yield* serve({
    subject: hostSubject(site, host, "resend"),
    handler: ({ body }) =>
      Effect.gen(function* () {
        const { from } = Result.getOrThrow(jsonCodec("resend", ResendRequest).decode(body))
        const again = sent.slice(from - 1)
        for (const report of again) yield* publishReportAgain(site, report)
        return encode(jsonCodec("reply", ResendReply), { sent: again.length })
      }).pipe(Effect.provideContext(context), Effect.orDie)
  })
  yield* self.report({
    _tag: "host.joined",
    version: "0.1.0",
    endpoint: { host: "127.0.0.1", port: 7400 },
    gpus: options.gpus,
    labels: {},
    sessions: []
  })
  yield* Effect.forkScoped(
    Effect.gen(function* () {
      while (true) {
        if (self.alive) {
          const heartbeat = { host, incarnation, n: sent.length, sessions: sessions.size }
          yield* Effect.ignore(sendHeartbeat(site, heartbeat))
        }
        yield* Effect.sleep(250)
      }
    })
  )
  return self
})

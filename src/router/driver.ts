/**
 * What the leader does about stored decisions: asks hosts to prepare and to release, and brings their answers back as
 * commands. It acts only on what the log has stored, and everything it does may be done twice: a successor that takes
 * over in the middle simply asks again.
 */
import * as Effect from "effect/Effect"
import * as FiberMap from "effect/FiberMap"
import type * as Scope from "effect/Scope"
import type { Nats } from "../nats/connection.ts"
import type { NatsError } from "../nats/errors.ts"
import { ask } from "../nats/requests.ts"
import type { Grant } from "../protocol/answers.ts"
import { jsonCodec } from "../protocol/codec.ts"
import type { Entry } from "../protocol/commit.ts"
import type { Malformed } from "../protocol/errors.ts"
import type { RefusalReason, SessionEndReason } from "../protocol/events.ts"
import { type HostId, mintCommandId, type SessionId } from "../protocol/ids.ts"
import { PREPARE_TIMEOUT, RELEASE_TIMEOUT } from "../protocol/limits.ts"
import {
  type Prepared,
  PrepareReply,
  PrepareRequest,
  ReleaseReply,
  ReleaseRequest,
  ResendReply,
  ResendRequest
} from "../protocol/prepare.ts"
import { hostSubject } from "../protocol/subjects.ts"
import type { Site } from "../protocol/tokens.ts"
import type { Committer } from "./committer.ts"
import { orphaned } from "./decide.ts"
import type { Resend } from "./liveness.ts"
import type { Placement, Session, State } from "./state.ts"

const prepareCodec = {
  request: jsonCodec("prepare request", PrepareRequest),
  reply: jsonCodec("prepare reply", PrepareReply)
}
const releaseCodec = {
  request: jsonCodec("release request", ReleaseRequest),
  reply: jsonCodec("release reply", ReleaseReply)
}
const resendCodec = {
  request: jsonCodec("resend request", ResendRequest),
  reply: jsonCodec("resend reply", ResendReply)
}

/** A host that reconnects is away for a moment; only after so long is "nobody listens" an answer. */
const NOBODY_PATIENCE = 2_000
const RETRY_EVERY = 250
/** A release is asked for again after as long, and ever more slowly, up to the second. */
const RELEASE_AGAIN = 1_000
const RELEASE_SLOWEST = 10_000

export interface Driver {
  /** Acts on entries that are stored. Starts fibers and does not wait for them. */
  readonly onStored: (entries: ReadonlyArray<Entry>) => Effect.Effect<void>
  /**
   * Starts whatever the state calls for and is not under way: what a predecessor left, and what fell between two
   * events. Run it at the start, and now and then.
   */
  readonly reconcile: Effect.Effect<void>
  /** The grant of a session that is ready; asked of its host again when this leader has not got it. */
  readonly grantOf: (session: SessionId) => Effect.Effect<Grant | undefined>
  /** Asks a host for reports that are missing. */
  readonly resend: (resend: Resend) => Effect.Effect<void>
}

export const makeDriver = Effect.fnUntraced(function* (options: {
  readonly site: Site
  readonly epoch: number
  readonly committer: Committer
}): Effect.fn.Return<Driver, never, Nats | Scope.Scope> {
  const { committer, epoch, site } = options
  const state: State = committer.state
  const context = yield* Effect.context<Nats>()
  const fibers = yield* FiberMap.make<string, void>()
  const grants = new Map<SessionId, Grant>()

  const start = (key: string, effect: Effect.Effect<void, never, Nats>) =>
    Effect.asVoid(FiberMap.run(fibers, key, Effect.provideContext(effect, context), { onlyIfMissing: true }))

  /** One prepare, as the host answers it; "no-answer" when it does not. */
  const askPrepare = Effect.fnUntraced(function* (session: Session, placement: Placement) {
    const startedAt = performance.now()
    while (true) {
      const answer = yield* ask({
        subject: hostSubject(site, placement.host, "prepare"),
        query: {
          session: session.session,
          principal: session.principal,
          incarnation: placement.incarnation,
          attempt: session.attempt,
          epoch,
          gpus: placement.gpus as PrepareRequest["gpus"],
          publicKey: session.publicKey
        },
        encode: prepareCodec.request,
        decode: prepareCodec.reply,
        timeout: PREPARE_TIMEOUT
      }).pipe(Effect.result)
      if (answer._tag === "Success") {
        return answer.success._tag === "Prepared" ? answer.success : answer.success.reason
      }
      yield* Effect.logDebug(`prepare of ${session.session} on ${placement.host}: ${answer.failure.message}`)
      const patience = performance.now() - startedAt < NOBODY_PATIENCE
      if (!(isOurs(answer.failure) || (isNobody(answer.failure) && patience))) return "no-answer" as const
      yield* Effect.sleep(RETRY_EVERY)
    }
  })

  const grant = (session: Session, placement: Placement, { endpoint, sealed }: Prepared): Grant => ({
    host: placement.host,
    incarnation: placement.incarnation,
    attempt: session.attempt,
    endpoint,
    gpus: placement.gpus,
    sealed
  })

  const prepare = Effect.fnUntraced(function* (id: SessionId, attempt: number) {
    const session = state.sessions.get(id)
    const placement = session?.placement
    if (session?.state !== "placed" || session.attempt !== attempt || placement === undefined) return
    const answer = yield* askPrepare(session, placement)
    if (typeof answer === "object") {
      grants.set(id, grant(session, placement, answer))
      const outcome = yield* committer.submit({ _tag: "session.prepared", id: mintCommandId(), session: id, attempt })
      if (outcome._tag === "Committed" && outcome.events.some(({ _tag }) => _tag === "SessionReady")) return
      // It was ended or placed elsewhere while the host prepared it.
      grants.delete(id)
      if (state.sessions.get(id)?.state !== "ending")
        yield* Effect.ignore(askRelease(placement.host, id, attempt, "cancelled"))
      return
    }
    yield* Effect.logInfo(`${placement.host} did not take session ${id}: ${answer}`)
    const refusal = { session: id, attempt, reason: answer satisfies RefusalReason }
    yield* committer.submit({ _tag: "session.refused", id: mintCommandId(), ...refusal })
    // It may have prepared and only its answer was lost: then it must not keep what it reserved.
    if (answer === "no-answer") yield* Effect.ignore(askRelease(placement.host, id, attempt, "refused"))
  })

  const askRelease = (host: HostId, session: SessionId, attempt: number, reason: SessionEndReason) =>
    ask({
      subject: hostSubject(site, host, "release"),
      query: { session, attempt, epoch, reason },
      encode: releaseCodec.request,
      decode: releaseCodec.reply,
      timeout: RELEASE_TIMEOUT
    })

  /** Asks until the session has ended: by the host's report, or because the host has nothing of it. */
  const release = Effect.fnUntraced(function* (id: SessionId) {
    let pause = RELEASE_AGAIN
    while (true) {
      const session = state.sessions.get(id)
      if (session?.state !== "ending" || session.placement === undefined) return
      // A prepare under way would come after the release and bring the session to life again.
      yield* finished(prepareKey(id, session.attempt))
      const { host } = session.placement
      const answer = yield* Effect.result(askRelease(host, id, session.attempt, session.reason ?? "released"))
      if (answer._tag === "Success" && answer.success.outcome === "unknown") {
        yield* committer.submit({
          _tag: "session.gone",
          id: mintCommandId(),
          session: id,
          attempt: session.attempt,
          incarnation: answer.success.incarnation
        })
      }
      yield* Effect.sleep(pause)
      pause = Math.min(pause * 2, RELEASE_SLOWEST)
    }
  })

  const finished = (key: string) =>
    Effect.gen(function* () {
      while (yield* FiberMap.has(fibers, key)) yield* Effect.sleep(20)
    })

  const sweep = Effect.fnUntraced(function* (host: HostId) {
    while (true) {
      const outcome = yield* committer.submit({ _tag: "host.sweep", id: mintCommandId(), host })
      if (outcome._tag !== "Committed" || outcome.events.length === 0) return
    }
  })

  /** Sessions that a host says it has although they have ended or are elsewhere. */
  const dropStrays = Effect.fnUntraced(function* (host: HostId, claimed: ReadonlyArray<Claim>) {
    for (const { attempt, session } of claimed) {
      const known = state.sessions.get(session)
      const right = known?.placement?.host === host && known.attempt === attempt
      if (!right) yield* Effect.ignore(askRelease(host, session, attempt, "released"))
    }
  })

  /** Places what waits, one session a decision, until nothing fits. */
  const placeQueued = Effect.gen(function* () {
    while (state.queue.size > 0) {
      const outcome = yield* committer.submit({ _tag: "queue.place", id: mintCommandId() })
      if (outcome._tag !== "Committed" || outcome.events.length === 0) return
    }
  })

  const onEvent = (event: Entry["events"][number]): Effect.Effect<void> => {
    switch (event._tag) {
      case "SessionPlaced":
        return start(prepareKey(event.session, event.attempt), prepare(event.session, event.attempt))
      case "SessionEnding":
        return start(`release ${event.session}`, release(event.session))
      case "SessionEnded":
      case "PlacementRefused":
        grants.delete(event.session)
        return state.queue.size > 0 ? start("place", placeQueued) : Effect.void
      case "HostJoined":
      case "HostRecovered":
        return Effect.andThen(
          start(`sweep ${event.host}`, sweep(event.host)),
          state.queue.size > 0 ? start("place", placeQueued) : Effect.void
        )
      case "HostLeft":
        return start(`sweep ${event.host}`, sweep(event.host))
      default:
        return Effect.void
    }
  }

  const onStored = Effect.fnUntraced(function* (entries: ReadonlyArray<Entry>) {
    for (const entry of entries) {
      for (const event of entry.events) yield* onEvent(event)
      if ("report" in entry && entry.report.body._tag === "host.joined" && entry.report.body.sessions.length > 0) {
        const { body, host } = entry.report
        yield* start(`strays ${host}`, dropStrays(host, body.sessions))
      }
    }
  })

  const reconcile = Effect.gen(function* () {
    for (const session of state.sessions.values()) {
      if (session.state === "placed") {
        yield* start(prepareKey(session.session, session.attempt), prepare(session.session, session.attempt))
      }
      if (session.state === "ending") yield* start(`release ${session.session}`, release(session.session))
    }
    for (const host of state.hosts.values()) {
      const stale = [...host.sessions].some((id) => {
        const session = state.sessions.get(id)
        return session !== undefined && orphaned(host, session) !== undefined
      })
      if (stale) yield* start(`sweep ${host.host}`, sweep(host.host))
    }
    if (state.queue.size > 0) yield* start("place", placeQueued)
  })

  const grantOf = Effect.fnUntraced(function* (id: SessionId) {
    const session = state.sessions.get(id)
    const placement = session?.placement
    if (session === undefined || placement === undefined) return undefined
    const known = grants.get(id)
    if (known?.attempt === session.attempt) return known
    const answer = yield* askPrepare(session, placement)
    if (typeof answer !== "object") return undefined
    const fresh = grant(session, placement, answer)
    grants.set(id, fresh)
    return fresh
  })

  const resend = ({ from, host, incarnation }: Resend) =>
    start(
      `resend ${host}`,
      ask({
        subject: hostSubject(site, host, "resend"),
        query: { incarnation, from },
        encode: resendCodec.request,
        decode: resendCodec.reply,
        timeout: RELEASE_TIMEOUT
      }).pipe(
        Effect.tap(({ sent }) => Effect.logInfo(`${host} sends ${sent} reports again, from number ${from}`)),
        Effect.ignore
      )
    )

  return {
    onStored,
    reconcile,
    grantOf: (session) => Effect.provideContext(grantOf(session), context),
    resend
  }
})

interface Claim {
  readonly session: SessionId
  readonly attempt: number
}

const prepareKey = (session: SessionId, attempt: number): string => `prepare ${session} ${attempt}`

/** Our own connection failed: that says nothing of the host. */
const isOurs = (error: NatsError | Malformed): boolean =>
  error._tag === "NatsError" && error.reason._tag === "Disconnected"

const isNobody = (error: NatsError | Malformed): boolean =>
  error._tag === "NatsError" && error.reason._tag === "NoResponders"

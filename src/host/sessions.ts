/**
 * All sessions of a host: what the router asks of them, and which of them a connection belongs to.
 */
import * as Result from "effect/Result"
import type { Addon } from "../native/addon.ts"
import { BROKER_LANE, GoodbyeReason, MAX_BULK_LANES, provesKey, readPreface } from "../native/preface.ts"
import type { SessionEndReason } from "../protocol/events.ts"
import type { Endpoint, Gpu } from "../protocol/gpu.ts"
import type { Incarnation, SessionId } from "../protocol/ids.ts"
import type { PrepareReply, PrepareRequest, ReleaseReply, ReleaseRequest } from "../protocol/prepare.ts"
import type { Report } from "../protocol/reports.ts"
import { newSessionKey, sealToClient } from "../protocol/seal.ts"
import { turnAway } from "./connection.ts"
import { Ledger } from "./ledger.ts"
import { Session, type SessionOptions, type SessionWorld } from "./session.ts"

export interface SessionsOptions {
  readonly incarnation: Incarnation
  /** Where clients find this host. */
  readonly endpoint: Endpoint
  readonly gpus: ReadonlyArray<Gpu>
  readonly world: Omit<SessionWorld, "onOver" | "report">
  readonly outbox: {
    readonly append: (body: Report["body"]) => Report
    readonly isConfirmed: (n: number) => boolean
  }
  readonly addon: Pick<Addon, "closeFd">
}

/** The last report of a session that is over, and the attempt that it was of. */
interface Past {
  readonly attempt: number
  readonly n: number
}

/** Sessions that are over are remembered, so that a late request does not start them anew. */
const MAX_PAST = 10_000

const refused = (reason: Extract<PrepareReply, { readonly _tag: "PrepareRefused" }>["reason"]): PrepareReply => ({
  _tag: "PrepareRefused",
  reason
})

export class Sessions {
  readonly #options: SessionsOptions
  readonly #ledger: Ledger
  readonly #sessions = new Map<SessionId, Session>()
  readonly #past = new Map<SessionId, Past>()
  #epoch = 0
  #draining = false
  #onEmpty: (() => void) | undefined

  constructor(options: SessionsOptions) {
    this.#options = options
    this.#ledger = new Ledger(options.gpus)
  }

  get size(): number {
    return this.#sessions.size
  }

  /** Answers the router's prepare. The same request again gets the same session, sealed again. */
  prepare(request: PrepareRequest): PrepareReply {
    if (request.incarnation !== this.#options.incarnation) return refused("other-incarnation")
    if (request.epoch < this.#epoch) return refused("older-epoch")
    this.#epoch = request.epoch
    const present = this.#sessions.get(request.session)
    const past = this.#past.get(request.session)
    if (request.attempt < (present?.options.attempt ?? 0) || (past !== undefined && request.attempt <= past.attempt)) {
      return refused("older-attempt")
    }
    if (present?.options.attempt === request.attempt) {
      // The key is sealed to the client that asked first; another one must not get it.
      return present.options.publicKey === request.publicKey ? this.#sealed(present.options) : refused("bad-key")
    }
    if (this.#draining) return refused("draining")
    if (present !== undefined) {
      present.supersede()
      if (this.#sessions.has(request.session)) return refused("failed")
    }
    return this.#open(request)
  }

  #open(request: PrepareRequest): PrepareReply {
    const options: SessionOptions = {
      session: request.session,
      attempt: request.attempt,
      grants: request.gpus,
      publicKey: request.publicKey,
      sessionKey: newSessionKey()
    }
    const reply = this.#sealed(options)
    if (reply._tag === "PrepareRefused") return reply
    const reserved = this.#ledger.reserve(request.session, request.gpus)
    if (reserved !== "ok") return refused(reserved)
    let last = 0
    const session = new Session(options, {
      ...this.#options.world,
      report: (body) => {
        last = this.#options.outbox.append(body).n
      },
      onOver: (over) => this.#forget(over, last)
    })
    this.#sessions.set(request.session, session)
    return reply
  }

  #sealed({ attempt, publicKey, session, sessionKey }: SessionOptions): PrepareReply {
    const sealed = sealToClient({ sessionKey, session, attempt, clientPublicKey: publicKey })
    return Result.isFailure(sealed)
      ? refused("bad-key")
      : { _tag: "Prepared", endpoint: this.#options.endpoint, sealed: sealed.success }
  }

  #forget(session: Session, n: number): void {
    const { attempt, session: id } = session.options
    this.#sessions.delete(id)
    this.#ledger.free(id)
    this.#past.delete(id)
    this.#past.set(id, { attempt, n })
    if (this.#past.size > MAX_PAST) this.#past.delete(this.#past.keys().next().value!)
    if (this.#sessions.size === 0) this.#onEmpty?.()
  }

  /** Answers the router's release. */
  release(request: ReleaseRequest): ReleaseReply {
    const { incarnation } = this.#options
    if (request.epoch < this.#epoch) return { incarnation, outcome: "refused" }
    this.#epoch = request.epoch
    const session = this.#sessions.get(request.session)
    if (session !== undefined && request.attempt >= session.options.attempt) {
      session.end(request.reason, `it was released (${request.reason})`)
      return { incarnation, outcome: "releasing" }
    }
    const past = this.#past.get(request.session)
    const told = past === undefined || request.attempt < past.attempt || this.#options.outbox.isConfirmed(past.n)
    return { incarnation, outcome: told ? "unknown" : "releasing" }
  }

  /** Takes a connection whose preface has come: to its session, or away. */
  accept(fd: number, bytes: Buffer, peer: string): void {
    const preface = readPreface(bytes)
    const session = preface === undefined ? undefined : this.#sessions.get(preface.session as SessionId)
    const key = preface === undefined ? undefined : session?.keyFor(preface)
    const isLane = preface?.lane === BROKER_LANE || (preface?.lane ?? MAX_BULK_LANES + 1) <= MAX_BULK_LANES
    // One answer for all that is wrong: whoever holds no key learns nothing of what is here.
    if (session === undefined || preface === undefined || key === undefined || !isLane || !provesKey(bytes, key)) {
      this.#options.world.log(`a connection from ${peer} was turned away: it proves no session's key`)
      if (preface?.lane === BROKER_LANE) this.#options.addon.closeFd(fd)
      else
        turnAway(
          this.#options.world.adopt(fd),
          GoodbyeReason.proof,
          "the session is not known here, or the key is not its own"
        )
      return
    }
    session.connect(fd, preface, bytes)
  }

  /** No new sessions; those that nobody has used yet go back. Calls `onEmpty` once none is left. */
  drain(onEmpty: () => void): void {
    this.#draining = true
    this.#onEmpty = onEmpty
    for (const session of [...this.#sessions.values()]) session.giveBack("draining")
    if (this.#sessions.size === 0) onEmpty()
  }

  /** Ends every session, in order. */
  endAll(reason: SessionEndReason, sentence: string): void {
    for (const session of [...this.#sessions.values()]) session.end(reason, sentence)
  }

  /** Ends every session at once. */
  killAll(reason: SessionEndReason, sentence: string): void {
    for (const session of [...this.#sessions.values()]) session.kill(reason, sentence)
  }
}

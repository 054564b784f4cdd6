/**
 * One session on its host: prepared, then held by its broker's lane, then ended. Everything here happens on Node's one
 * thread, so each method sees the session whole.
 */
import * as Effect from "effect/Effect"
import { BROKER_LANE, GoodbyeReason, type Preface } from "../native/preface.ts"
import { limitMemory } from "../native/snapshot.ts"
import type { ProcessEndReason, RefusalReason, SessionEndReason } from "../protocol/events.ts"
import { type GpuGrant, NO_USAGE, type Usage } from "../protocol/gpu.ts"
import type { ProcessNumber, SessionId } from "../protocol/ids.ts"
import type { FromBroker } from "../protocol/lane.ts"
import type { ReportBody } from "../protocol/reports.ts"
import { BROKER_KEY_LABEL, deriveKey, processKeyLabel } from "../protocol/seal.ts"
import { type BrokerLane, openBrokerLane } from "./broker-lane.ts"
import { type Adopt, turnAway } from "./connection.ts"
import type { Pool } from "./pool.ts"
import { ClientProcess, type ProcessEnd } from "./process.ts"

/** Times of a session's life, in ms. */
export interface SessionTimes {
  /** A prepared session waits so long for its broker. */
  readonly prepared: number
  /** A session lives on for so long after its broker's connection is gone. */
  readonly linger: number
  /** A broker that says nothing. */
  readonly silence: number
  /** See ClientProcessOptions. */
  readonly patience: number
  readonly mercy: number
}

export interface SessionOptions {
  readonly session: SessionId
  readonly attempt: number
  readonly grants: ReadonlyArray<GpuGrant>
  /** 32 bytes. */
  readonly sessionKey: Uint8Array
  /** The client's public key: the same request again has the same. */
  readonly publicKey: string
}

/** What a session needs of its host. */
export interface SessionWorld {
  readonly pool: Pool
  readonly times: SessionTimes
  readonly adopt: Adopt
  readonly report: (body: ReportBody) => void
  readonly log: (sentence: string) => void
  readonly run: (effect: Effect.Effect<void>) => void
  /** All of it is gone and reported. */
  readonly onOver: (session: Session) => void
}

/** At most so many connections in a session's life: each has a nonce that must not come twice. */
const MAX_NONCES = 100_000

const sum = (a: Usage, b: Usage): Usage => ({
  calls: a.calls + b.calls,
  bytesIn: a.bytesIn + b.bytesIn,
  bytesOut: a.bytesOut + b.bytesOut,
  launches: a.launches + b.launches,
  peakMemory: Math.max(a.peakMemory, b.peakMemory)
})

export class Session {
  readonly options: SessionOptions
  readonly #world: SessionWorld
  readonly #processes = new Map<ProcessNumber, ClientProcess>()
  readonly #nonces = new Set<string>()
  #usage: Usage = NO_USAGE
  #broker: BrokerLane | undefined
  /** A broker has held it: before that it can be given back. */
  #used = false
  #lastProcess = 0
  #silent = false
  /** The broker has taken leave: once the processes are gone too, the session ends. */
  #leaving = false
  #ending: { readonly reason: SessionEndReason; readonly sentence: string } | undefined
  #superseded = false
  #over = false
  #timer: NodeJS.Timeout | undefined

  constructor(options: SessionOptions, world: SessionWorld) {
    this.options = options
    this.#world = world
    this.#after(world.times.prepared, () => this.end("never-connected", "no client came"))
  }

  get used(): boolean {
    return this.#used
  }
  get #uuids(): ReadonlyArray<string> {
    return this.options.grants.map(({ uuid }) => uuid)
  }

  /** The key that proves a connection of this session; undefined for a process that no broker has announced. */
  keyFor(preface: Preface): Uint8Array | undefined {
    const { session, sessionKey } = this.options
    if (preface.lane === BROKER_LANE) {
      return preface.process === 0n ? deriveKey(sessionKey, session, BROKER_KEY_LABEL) : undefined
    }
    const process = Number(preface.process) as ProcessNumber
    return this.#processes.has(process) ? deriveKey(sessionKey, session, processKeyLabel(process)) : undefined
  }

  /** Takes a proven connection. */
  connect(fd: number, preface: Preface, bytes: Buffer): void {
    const nonce = preface.nonce.toString("hex")
    if (this.#nonces.has(nonce) || this.#nonces.size >= MAX_NONCES) {
      turnAway(this.#world.adopt(fd), GoodbyeReason.proof, "this connection has been opened before")
      return
    }
    this.#nonces.add(nonce)
    if (preface.lane === BROKER_LANE) {
      this.#brokerArrived(fd, preface.nonce)
      return
    }
    this.#processes.get(Number(preface.process) as ProcessNumber)!.connect(preface.lane, fd, bytes)
  }

  /** Ends all of it: its processes, then itself. The first reason given stands. */
  end(reason: SessionEndReason, sentence: string): void {
    if (this.#ending !== undefined || this.#over) return
    this.#ending = { reason, sentence }
    clearTimeout(this.#timer)
    this.#world.log(`session ${this.options.session} ends: ${sentence}`)
    const why = reason === "host-left" ? "host-left" : "session-ended"
    for (const process of [...this.#processes.values()]) process.end(why, sentence)
    this.#finishIfEmpty()
  }

  /** As end, at once: workers are killed. */
  kill(reason: SessionEndReason, sentence: string): void {
    this.end(reason, sentence)
    for (const process of [...this.#processes.values()]) process.kill("host-left")
  }

  /** Gives a session that nobody has used back to the router, to be placed elsewhere. */
  giveBack(reason: RefusalReason): void {
    if (this.#over || this.#used || this.#ending !== undefined) return
    const { attempt, session } = this.options
    this.#retire({ _tag: "session.refused", session, attempt, reason })
  }

  /** Ends it for a newer attempt at the same session: nobody waits for a report of this one. */
  supersede(): void {
    this.#superseded = true
    this.end("host-failed", "it was placed anew")
  }

  #after(ms: number, act: () => void): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(act, ms)
  }

  #brokerArrived(fd: number, nonce: Buffer): void {
    const { session, sessionKey } = this.options
    const lane = openBrokerLane(
      {
        socket: this.#world.adopt(fd),
        nonce,
        brokerKey: deriveKey(sessionKey, session, BROKER_KEY_LABEL),
        silence: this.#world.times.silence
      },
      {
        onMessage: (message) => this.#receive(message),
        onGone: (how) => this.#brokerGone(lane, how)
      }
    )
    if (this.#ending !== undefined || this.#broker !== undefined) {
      lane.end(this.#ending?.sentence ?? "another juice attach holds this session")
      return
    }
    this.#broker = lane
    this.#used = true
    clearTimeout(this.#timer)
    this.#world.run(
      this.#world.pool.look(this.#uuids).pipe(
        Effect.matchEffect({
          onSuccess: ({ snapshot }) =>
            Effect.sync(() => {
              const limits = this.options.grants.map((grant) => (grant.exclusive ? undefined : grant.vram))
              lane.welcome(limitMemory(snapshot, limits))
            }),
          onFailure: (error) => Effect.sync(() => this.end("host-failed", error.message))
        })
      )
    )
  }

  #brokerGone(lane: BrokerLane, how: "closed" | "silent"): void {
    if (this.#broker !== lane) return
    this.#broker = undefined
    this.#silent = how === "silent"
    if (this.#ending !== undefined) return
    // The lease is the broker's connection: what outlives it (a grandchild of a killed attach) ends with the linger.
    this.#after(this.#world.times.linger, () => this.#endUnheld())
  }

  #endUnheld(): void {
    if (this.#silent) this.end("client-lost", "its client has fallen silent")
    else if (this.#processes.size > 0) this.end("client-lost", "its client is gone and left processes behind")
    else this.end("client-exit", "its client is gone")
  }

  #receive(message: Exclude<FromBroker, { readonly type: "ping" | "pause" }>): void {
    switch (message.type) {
      case "process":
        this.#announce(message.process)
        break
      case "processEnded":
        this.#processes.get(message.process)?.brokerSawEnd(message.exit)
        break
      case "bye":
        this.#farewell()
        break
    }
  }

  #announce(process: ProcessNumber): void {
    if (this.#ending !== undefined || process <= this.#lastProcess) {
      const error = this.#ending === undefined ? "this process number has been used" : "the session is ending"
      this.#broker?.send({ type: "process", process, ok: false, error })
      return
    }
    this.#lastProcess = process
    const { grants, session, sessionKey } = this.options
    const shares = grants.filter(({ exclusive }) => !exclusive).map(({ vram }) => vram)
    const client = new ClientProcess({
      process,
      session,
      key: deriveKey(sessionKey, session, processKeyLabel(process)),
      memoryLimit: shares.length === 0 ? 0 : Math.min(...shares),
      patience: this.#world.times.patience,
      mercy: this.#world.times.mercy,
      adopt: this.#world.adopt,
      onAttached: () => this.#world.report({ _tag: "process.attached", session, process }),
      onEnd: (end) => this.#processEnded(end)
    })
    this.#processes.set(process, client)
    this.#broker?.send({ type: "process", process, ok: true })
    this.#world.run(
      this.#world.pool.take(this.#uuids).pipe(
        Effect.matchEffect({
          onSuccess: (worker) => Effect.sync(() => client.serveWith(worker)),
          onFailure: (error) =>
            Effect.logError(error.message).pipe(Effect.andThen(Effect.sync(() => client.fail(error.message))))
        })
      )
    )
  }

  #processEnded(end: ProcessEnd): void {
    const { session } = this.options
    this.#processes.delete(end.process)
    this.#usage = sum(this.#usage, end.usage)
    if (end.attached) {
      const { attached: _, ...body } = end
      this.#world.report({ _tag: "process.ended", session, ...body })
    }
    const text: Record<ProcessEndReason, string> = {
      exit: "left in order",
      killed: "died",
      error: `failed with ${end.error?.name}`,
      "worker-crashed": "lost its worker, which crashed",
      "protocol-violation": "broke the protocol",
      "client-lost": "was lost",
      "session-ended": "ended with its session",
      "host-left": "ended with its host"
    }
    this.#world.log(`session ${session}: process ${end.process} ${text[end.reason]}`)
    if (this.#ending !== undefined) this.#finishIfEmpty()
    else if (this.#leaving && this.#processes.size === 0) this.end("client-exit", "its program has ended")
  }

  /** The program has ended: its processes are leaving and have a moment to do so in order. */
  #farewell(): void {
    this.#leaving = true
    const end = () => this.end("client-exit", "its program has ended")
    if (this.#processes.size === 0) end()
    else this.#after(this.#world.times.mercy, end)
  }

  #finishIfEmpty(): void {
    if (this.#processes.size > 0 || this.#over) return
    const { attempt, session } = this.options
    this.#retire({ _tag: "session.ended", session, attempt, reason: this.#ending!.reason, usage: this.#usage })
  }

  #retire(body: ReportBody): void {
    this.#over = true
    clearTimeout(this.#timer)
    if (!this.#superseded) this.#world.report(body)
    this.#broker?.end(this.#ending?.sentence ?? "the session was given back")
    this.#broker = undefined
    this.#world.onOver(this)
  }
}

/**
 * One client process of a session, from its broker's announcement until its worker is gone and its end is reported.
 */
import { Ending, type FromWorker } from "../native/control.ts"
import { GoodbyeReason } from "../native/preface.ts"
import { cudaResultName } from "../native/result.ts"
import type { CudaError, Exit, ProcessEndReason } from "../protocol/events.ts"
import { NO_USAGE, type Usage } from "../protocol/gpu.ts"
import type { ProcessNumber, SessionId } from "../protocol/ids.ts"
import { type Adopt, turnAway } from "./connection.ts"
import type { Worker } from "./worker.ts"

/** How the process ended, for its report. */
export interface ProcessEnd {
  readonly process: ProcessNumber
  /** Whether it ever had its worker: otherwise there is nothing to report. */
  readonly attached: boolean
  readonly reason: ProcessEndReason
  readonly exit?: Exit
  readonly error?: typeof CudaError.Type
  readonly usage: Usage
}

export interface ClientProcessOptions {
  readonly process: ProcessNumber
  readonly session: SessionId
  readonly key: Uint8Array
  readonly memoryLimit: number
  /** After its worker's end, the broker's word on how the process died is awaited this long (ms). */
  readonly patience: number
  /** A worker that was told to end is killed after this (ms). */
  readonly mercy: number
  readonly adopt: Adopt
  readonly onAttached: () => void
  readonly onEnd: (end: ProcessEnd) => void
}

interface Lane {
  readonly fd: number
  readonly preface: Buffer
}

export class ClientProcess {
  readonly #options: ClientProcessOptions
  #worker: Worker | undefined
  /** Connections that came before the worker was there. */
  #waiting: Array<Lane> = []
  #hasCommandLane = false
  #attached = false
  #last: Extract<FromWorker, { readonly _tag: "ended" }> | undefined
  #leftInOrder = false
  #workerIsGone = false
  /** Its worker went without a word and without being asked to. */
  #crashed = false
  /** Its worker did not end when it was told to, so we ended it. */
  #killed = false
  #toldGone = false
  #exit: Exit | undefined
  #endedFor: "session-ended" | "host-left" | undefined
  #timer: NodeJS.Timeout | undefined
  #over = false

  constructor(options: ClientProcessOptions) {
    this.#options = options
  }

  get over(): boolean {
    return this.#over
  }

  /** The worker that is to serve it, ready and unclaimed. */
  serveWith(worker: Worker): void {
    if (this.#over || this.#toldGone || this.#endedFor !== undefined) {
      worker.kill()
      this.#finish()
      return
    }
    const { key, memoryLimit, process, session } = this.#options
    this.#worker = worker
    worker.listen({ onMessage: (message) => this.#receive(message), onExit: () => this.#workerGone() })
    worker.claim({ session, process: BigInt(process), key, memoryLimit })
    for (const { fd, preface } of this.#waiting) worker.passLane(fd, preface)
    this.#waiting = []
  }

  /** No worker could be had. */
  fail(sentence: string): void {
    for (const { fd } of this.#waiting) turnAway(this.#options.adopt(fd), GoodbyeReason.workerFailed, sentence)
    this.#waiting = []
    this.#finish()
  }

  /** A proven connection of the process. Lane 0 comes first, and once. */
  connect(lane: number, fd: number, preface: Buffer): void {
    if (this.#over || this.#toldGone || this.#endedFor !== undefined) {
      turnAway(this.#options.adopt(fd), GoodbyeReason.sessionEnded, "the process has ended")
      return
    }
    if ((lane === 0) === this.#hasCommandLane) {
      turnAway(this.#options.adopt(fd), GoodbyeReason.protocol, "a process opens its command lane first, and once")
      return
    }
    this.#hasCommandLane = true
    if (this.#worker === undefined) this.#waiting.push({ fd, preface })
    else this.#worker.passLane(fd, preface)
  }

  /** The broker saw it end. Its worker notices by itself; one that does not is helped along. */
  brokerSawEnd(exit: Exit | undefined): void {
    this.#toldGone = true
    this.#exit = exit ?? this.#exit
    const worker = this.#worker
    if (worker === undefined || this.#workerIsGone) {
      this.#finish()
      return
    }
    this.#after(this.#options.mercy, () => {
      worker.end(GoodbyeReason.done, "the process has ended")
      this.#after(this.#options.mercy, () => {
        this.#killed = true
        worker.kill()
      })
    })
  }

  /** Its session or its host ends. */
  end(why: "session-ended" | "host-left", sentence: string): void {
    if (this.#over || this.#endedFor !== undefined) return
    this.#endedFor = why
    for (const { fd } of this.#waiting) turnAway(this.#options.adopt(fd), GoodbyeReason.sessionEnded, sentence)
    this.#waiting = []
    const worker = this.#worker
    if (worker === undefined || this.#workerIsGone) {
      this.#finish()
      return
    }
    worker.end(GoodbyeReason.sessionEnded, sentence)
    this.#after(this.#options.mercy, () => worker.kill())
  }

  /** As end, without any delay. */
  kill(why: "session-ended" | "host-left"): void {
    this.end(why, "the host stops")
    this.#worker?.kill()
  }

  #after(ms: number, act: () => void): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(act, ms)
  }

  #receive(message: FromWorker): void {
    if (message._tag === "attached") {
      this.#attached = true
      this.#options.onAttached()
    }
    if (message._tag === "ended") {
      this.#last = message
      // A goodbye that answers ours is not the client's own.
      this.#leftInOrder = message.ending === Ending.goodbye && this.#endedFor === undefined
    }
  }

  #workerGone(): void {
    this.#workerIsGone = true
    // Also when the broker was first to tell: a process ends at once on the error that its worker's death gives it.
    this.#crashed = this.#last === undefined && this.#endedFor === undefined && !this.#killed
    if (this.#toldGone || this.#endedFor !== undefined) {
      this.#finish()
      return
    }
    // Whether the process died or left in order, and with what status, the broker knows in a moment.
    this.#after(this.#options.patience, () => this.#finish())
  }

  #finish(): void {
    if (this.#over) return
    this.#over = true
    clearTimeout(this.#timer)
    for (const { fd } of this.#waiting)
      turnAway(this.#options.adopt(fd), GoodbyeReason.sessionEnded, "the process has ended")
    this.#waiting = []
    const figures = this.#worker?.usage()
    const sticky = this.#last?.sticky || figures?.lastError || 0
    this.#options.onEnd({
      process: this.#options.process,
      attached: this.#attached,
      reason: this.#reason(sticky),
      ...(this.#exit === undefined ? {} : { exit: this.#exit }),
      ...(sticky === 0 ? {} : { error: { code: sticky, name: cudaResultName(sticky) } }),
      usage:
        figures === undefined
          ? NO_USAGE
          : {
              calls: figures.calls,
              bytesIn: figures.bytesIn,
              bytesOut: figures.bytesOut,
              launches: figures.launches,
              peakMemory: figures.memoryPeak
            }
    })
  }

  #reason(sticky: number): ProcessEndReason {
    const ending = this.#last?.ending
    if (ending === Ending.violation) return "protocol-violation"
    if (sticky !== 0) return "error"
    if (this.#leftInOrder) return "exit"
    if (this.#crashed) return "worker-crashed"
    if (this.#endedFor !== undefined) return this.#endedFor
    if (this.#exit?.code !== undefined) return "exit"
    return this.#toldGone ? "killed" : "client-lost"
  }
}

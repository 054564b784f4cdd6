/**
 * Whether hosts are heard of. Heartbeats change nothing by themselves: silence that lasts becomes a command, and what
 * the command does is decided like any other.
 *
 * Times are counted by the process's own steady clock and begin anew with each leadership and each reconnect: a leader
 * that was away must not take its own absence for the hosts'. When most hosts fall silent at once it doubts itself
 * rather than them, and waits longer.
 */
import type { Command } from "../protocol/commands.ts"
import type { Heartbeat } from "../protocol/heartbeat.ts"
import { type HostId, type Incarnation, mintCommandId } from "../protocol/ids.ts"
import { HOST_SUSPECT, HOST_UNKNOWN } from "../protocol/limits.ts"
import type { Host, State } from "./state.ts"

/** From this many hosts on, most of them silent at once is more likely our own fault. */
const DOUBT_FROM = 3
/** How much longer a doubting router waits. */
const DOUBT_FACTOR = 3
/** After its own deadline a host is given this long before its sessions are taken for ended. */
const FENCE_MARGIN = 5_000
/** A host's missing reports are asked for when they have been missing this long, and again after as long. */
const RESEND_AFTER = 2_000

interface Heard {
  readonly incarnation: Incarnation
  readonly n: number
  readonly at: number
}

export interface Resend {
  readonly host: HostId
  readonly incarnation: Incarnation
  readonly from: number
}

export class Liveness {
  readonly #heard = new Map<HostId, Heard>()
  /** Since when the log lacks reports of a host. */
  readonly #lacking = new Map<HostId, number>()
  #since: number

  /** `now`: milliseconds of a steady clock, here and everywhere below. */
  constructor(now: number) {
    this.#since = now
  }

  /** The router was away until now: nobody's silence before counts. */
  restart(now: number): void {
    this.#since = now
  }

  heartbeat(heartbeat: Heartbeat, now: number): void {
    this.#heard.set(heartbeat.host, { incarnation: heartbeat.incarnation, n: heartbeat.n, at: now })
  }

  #silentFor(host: Host, now: number): number {
    const heard = this.#heard.get(host.host)
    const at = heard?.incarnation === host.incarnation ? heard.at : Number.NEGATIVE_INFINITY
    return now - Math.max(at, this.#since)
  }

  #wasHeard(host: Host): boolean {
    const heard = this.#heard.get(host.host)
    return heard?.incarnation === host.incarnation && heard.at >= this.#since
  }

  /** What silence and sound of the hosts call for now. `wall`: the time of day (ms), for the record. */
  commands(state: State, now: number, wall: number): ReadonlyArray<Command> {
    const hosts = [...state.hosts.values()].filter(({ left }) => !left)
    const silent = hosts.filter((host) => this.#silentFor(host, now) > HOST_SUSPECT).length
    const patience = hosts.length >= DOUBT_FROM && silent * 2 > hosts.length ? DOUBT_FACTOR : 1
    return hosts.flatMap((host) => this.#command(host, now, wall, patience) ?? [])
  }

  #command(host: Host, now: number, wall: number, patience: number): Command | undefined {
    const silence = this.#silentFor(host, now)
    const about = {
      id: mintCommandId(),
      host: host.host,
      incarnation: host.incarnation,
      seen: Math.floor(wall - silence)
    }
    if (host.silence !== "none" && silence <= HOST_SUSPECT && this.#wasHeard(host)) {
      return { _tag: "host.seen", ...about }
    }
    if (host.silence === "none" && silence > HOST_SUSPECT * patience) return { _tag: "host.suspect", ...about }
    if (host.silence === "suspect" && silence > HOST_UNKNOWN * patience) return { _tag: "host.unknown", ...about }
    if (
      host.silence === "unknown" &&
      host.fenceAfterMs !== undefined &&
      host.sessions.size > 0 &&
      silence > host.fenceAfterMs + FENCE_MARGIN
    ) {
      return { _tag: "host.fenced", ...about }
    }
    return undefined
  }

  /** Reports that hosts have written, as their heartbeats say, and that the log still lacks. */
  resends(state: State, now: number): ReadonlyArray<Resend> {
    return [...this.#heard].flatMap(([id, heard]) => {
      const host = state.hosts.get(id)
      const known = host?.incarnation === heard.incarnation
      const reported = known ? host.reported : 0
      if (host?.past.includes(heard.incarnation) === true || heard.n <= reported) {
        this.#lacking.delete(id)
        return []
      }
      const since = this.#lacking.get(id)
      if (since !== undefined && now - since < RESEND_AFTER) return []
      this.#lacking.set(id, now)
      return since === undefined ? [] : [{ host: id, incarnation: heard.incarnation, from: reported + 1 }]
    })
  }
}

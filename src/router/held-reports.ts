/**
 * Reports that came too early: kept until those in between arrive. Where the log's offset may stand is before the
 * oldest of them, so a successor reads them again.
 */
import type { HostId } from "../protocol/ids.ts"
import type { Report } from "../protocol/reports.ts"

export interface Offered {
  readonly report: Report
  /** Its sequence in the report stream. */
  readonly offset: number
}

/** Of one host at most; later ones are asked for again when their turn comes. */
const HELD = 1_000

export class HeldReports {
  readonly #byHost = new Map<HostId, Map<string, Offered>>()
  #processed: number

  /** `processed`: the offset that the last commit names. */
  constructor(processed: number) {
    this.#processed = processed
  }

  /** A message of the report stream was looked at, whatever came of it. */
  sawOffset(offset: number): void {
    this.#processed = Math.max(this.#processed, offset)
  }

  hold(offered: Offered): void {
    const { report } = offered
    const held = this.#byHost.get(report.host) ?? new Map<string, Offered>()
    this.#byHost.set(report.host, held)
    if (held.size < HELD) held.set(`${report.incarnation}.${report.n}`, offered)
  }

  /** The first held report of a host for which `due` holds; it stays held until it is dropped. */
  find(host: HostId, due: (report: Report) => boolean): Offered | undefined {
    for (const offered of this.#byHost.get(host)?.values() ?? []) {
      if (due(offered.report)) return offered
    }
    return undefined
  }

  drop({ report }: Offered): void {
    const held = this.#byHost.get(report.host)
    held?.delete(`${report.incarnation}.${report.n}`)
    if (held?.size === 0) this.#byHost.delete(report.host)
  }

  /** The offset up to which everything is accounted for. */
  get offset(): number {
    let oldest = Number.POSITIVE_INFINITY
    for (const held of this.#byHost.values()) {
      for (const { offset } of held.values()) oldest = Math.min(oldest, offset)
    }
    return Math.min(this.#processed, oldest - 1)
  }
}

/**
 * The outbox of reports: an append file, synced at each report, so that what happened while the site could not be
 * reached, or just before a crash, is told when it can.
 *
 * Reports are numbered from 1 in each incarnation. Those of earlier incarnations that were never confirmed are kept
 * and go first. A torn last line is what a crash leaves: that report was never promised to anybody.
 */
import {
  closeSync,
  fdatasyncSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync
} from "node:fs"
import { join } from "node:path"
import * as Result from "effect/Result"
import { reportCodec } from "../nats/reports.ts"
import type { HostId, Incarnation } from "../protocol/ids.ts"
import type { Report, ReportBody } from "../protocol/reports.ts"

const FILE = "reports.ndjson"
const CONFIRMED = "reports.confirmed"
/** A file without unconfirmed reports is emptied when it has grown over this. */
const MAX_BYTES = 8 * 1024 * 1024
/** Reports of this incarnation that can be sent again on request. */
const MAX_KEPT = 10_000

interface Place {
  readonly incarnation: string
  readonly n: number
}

const readLines = (path: string): Array<Report> => {
  let text: string
  try {
    text = readFileSync(path, "utf8")
  } catch {
    return []
  }
  const reports: Array<Report> = []
  for (const line of text.split("\n").slice(0, -1)) {
    const report = reportCodec.decode(Buffer.from(line))
    if (Result.isSuccess(report)) reports.push(report.success)
  }
  return reports
}

const readPlace = (path: string): Place | undefined => {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as Place
  } catch {
    return undefined
  }
}

const line = (report: Report): Buffer => Buffer.concat([reportCodec.encode(report), Buffer.from("\n")])

export class Outbox {
  readonly incarnation: Incarnation
  readonly #host: HostId
  readonly #confirmedPath: string
  readonly #complain: (error: Error) => void
  readonly #file: number
  readonly #pending: Array<Report>
  #kept: Array<Report> = []
  #bytes = 0
  /** The last write failed, perhaps in the middle of a line. */
  #torn = false
  #last = 0
  #confirmed = 0
  #wake: () => void = () => {}

  /**
   * Opens the outbox in the folder, which is made if it is missing. Throws what the file system throws; later on, a
   * disk that fails is only complained of, and what could not be written is still told.
   */
  constructor(directory: string, host: HostId, incarnation: Incarnation, complain: (error: Error) => void = () => {}) {
    this.#complain = complain
    this.#host = host
    this.incarnation = incarnation
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    this.#confirmedPath = join(directory, CONFIRMED)
    const path = join(directory, FILE)
    const old = readLines(path)
    const place = readPlace(this.#confirmedPath)
    const at = old.findIndex((report) => report.incarnation === place?.incarnation && report.n === place.n)
    this.#pending = old.slice(at + 1).filter((report) => report.host === host)

    // The file begins anew with what is still to be told; whichever of both a crash leaves is complete.
    const next = `${path}.new`
    rmSync(next, { force: true })
    this.#file = openSync(next, "a", 0o600)
    for (const report of this.#pending) this.#write(report)
    fdatasyncSync(this.#file)
    renameSync(next, path)
    const folder = openSync(directory, "r")
    fsyncSync(folder)
    closeSync(folder)
  }

  #write(report: Report): void {
    const bytes = this.#torn ? Buffer.concat([Buffer.from("\n"), line(report)]) : line(report)
    const written = writeSync(this.#file, bytes)
    this.#bytes += written
    if (written < bytes.length) throw new Error("the disk is full")
  }

  #record(report: Report): void {
    try {
      this.#write(report)
      fdatasyncSync(this.#file)
      this.#torn = false
    } catch (error) {
      this.#torn = true
      this.#complain(error as Error)
    }
  }

  /** Records a report. On return it is on disk and will be told, whatever happens to this process. */
  append(body: ReportBody, now = Date.now()): Report {
    const report = { host: this.#host, incarnation: this.incarnation, n: this.#last + 1, at: now, body }
    this.#record(report)
    this.#last = report.n
    this.#pending.push(report)
    this.#kept.push(report)
    if (this.#kept.length > MAX_KEPT) this.#kept = this.#kept.slice(MAX_KEPT / 2)
    this.#wake()
    return report
  }

  /** The first report that is not confirmed. */
  get next(): Report | undefined {
    return this.#pending[0]
  }
  /** The number of this incarnation's last report; 0 before the first. */
  get last(): number {
    return this.#last
  }
  /** Whether the site has confirmed this incarnation's report n. */
  isConfirmed(n: number): boolean {
    return n <= this.#confirmed
  }

  /** The site has stored the report, which was `next`. */
  confirm(report: Report): void {
    this.#pending.shift()
    if (report.incarnation === this.incarnation) this.#confirmed = report.n
    try {
      this.#mark({ incarnation: report.incarnation, n: report.n })
    } catch (error) {
      this.#complain(error as Error)
    }
  }

  /** Not synced: after a crash a few are told twice, which is harmless. */
  #mark(place: Place): void {
    const next = `${this.#confirmedPath}.new`
    writeFileSync(next, JSON.stringify(place), { mode: 0o600 })
    renameSync(next, this.#confirmedPath)
    if (this.#pending.length === 0 && this.#bytes > MAX_BYTES) {
      ftruncateSync(this.#file, 0)
      this.#bytes = 0
    }
  }

  /** This incarnation's reports from number `from` on, as far back as they are kept. */
  from(from: number): ReadonlyArray<Report> {
    return this.#kept.filter((report) => report.n >= from)
  }

  /** Calls `wake` whenever there is a new report. */
  onAppend(wake: () => void): void {
    this.#wake = wake
  }

  close(): void {
    closeSync(this.#file)
  }
}

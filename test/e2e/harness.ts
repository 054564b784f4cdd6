/**
 * What the end-to-end tests stand on: a site as its users start it, programs attached to it, its log as it grows, and
 * the processes and files that all of them leave or do not leave.
 */
import { mkdtempSync, rmSync, utimesSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import {
  examplesDirectory,
  type Running,
  type RunOptions,
  type Site,
  type SiteOptions,
  startSite
} from "../../src/demo/site.ts"
import { commandLine, filesUnder, processesMarked, programOf, until } from "./processes.ts"

export const example = (name: string): string => join(examplesDirectory(), name)

/** An event of the log, as `juice events --json` prints it. */
export interface LoggedEvent {
  readonly at: number
  readonly event: {
    readonly _tag: string
    readonly session?: string
    readonly host?: string
    readonly reason?: string
    readonly process?: number
    readonly exit?: { readonly code?: number; readonly signal?: string }
    readonly error?: { readonly code: number; readonly name: string }
    readonly gpus?: ReadonlyArray<{ readonly uuid: string }>
    readonly usage?: { readonly calls: number; readonly launches: number; readonly peakMemory: number }
  }
}
export type Event = LoggedEvent["event"]

export interface Attached extends Running {
  /** Its session's id. */
  readonly session: Promise<string>
  /** The pid of the program itself. */
  readonly program: () => Promise<number>
  /** Waits for a text on its standard output. */
  readonly says: (text: string) => Promise<void>
}

export interface AttachOptions extends RunOptions {
  /** Flags of `juice attach` itself. */
  readonly flags?: ReadonlyArray<string>
}

interface HostsListing {
  readonly hosts: ReadonlyArray<{
    readonly host: string
    readonly state: string
    readonly endpoint: { readonly host: string; readonly port: number }
    readonly sessions: number
    readonly gpus: ReadonlyArray<{ readonly name: string; readonly reserved: number; readonly sessions: number }>
  }>
}

/** How a session ended, as the log has it. */
export interface Ending {
  readonly reason: string
  readonly processes: ReadonlyArray<Event>
}

export interface TestSite extends Site {
  /** Every event so far. */
  readonly events: () => ReadonlyArray<Event>
  /** Starts `juice attach -- PROGRAM ARGS`. */
  readonly attach: (program: string, args?: ReadonlyArray<string>, options?: AttachOptions) => Attached
  readonly hosts: () => Promise<HostsListing["hosts"]>
  /** Waits until the log says that the session has ended. */
  readonly ended: (session: string, deadline?: number) => Promise<Ending>
  /** Its processes whose command line matches: its services', its workers', its programs'. */
  readonly processes: (commandLine: RegExp) => ReadonlyArray<number>
  /** The workers of all its hosts on this machine. */
  readonly workers: () => ReadonlyArray<number>
  /** Waits until no session holds anything: every GPU is free, and only the workers of the pool are there. */
  readonly untilFree: (pooledWorkers?: number) => Promise<void>
  /** Processes of the site and its programs, but for the log's reader here, and what they have in temporary folders. */
  readonly remains: () => { readonly processes: ReadonlyArray<string>; readonly files: ReadonlyArray<string> }
  /** Makes what is in the temporary folders look an hour old. */
  readonly age: () => void
  /** Ends what is left of a site whose services are gone, but for its data. */
  readonly discard: () => void
  /** Stops it; fails where it does not end well or leaves anything behind. */
  readonly finish: (signal?: NodeJS.Signals) => Promise<void>
}

const followLog = (
  site: Site
): { readonly events: () => ReadonlyArray<Event>; readonly pid: number; readonly stop: () => void } => {
  const events: Array<Event> = []
  const follower = site.begin(["events", "--follow", "--json"], {
    tied: true,
    timeoutMs: Number.POSITIVE_INFINITY
  })
  let seen = 0
  const read = () => {
    const text = follower.stdout()
    for (let end = text.indexOf("\n", seen); end >= 0; end = text.indexOf("\n", seen)) {
      events.push((JSON.parse(text.slice(seen, end)) as LoggedEvent).event)
      seen = end + 1
    }
    return events
  }
  return { events: read, pid: follower.pid, stop: () => follower.child.kill("SIGKILL") }
}

/** A site whose log is followed. Its commands have temporary folders of their own, so that leftovers are seen. */
export const startTestSite = async (
  gpus: string,
  flags: ReadonlyArray<string> = [],
  place?: NonNullable<SiteOptions["place"]>
): Promise<TestSite> => {
  const temporary = mkdtempSync(join(tmpdir(), "juice-e2e-"))
  const site = await startSite(gpus, {
    flags,
    env: { TMPDIR: temporary, XDG_RUNTIME_DIR: temporary },
    ...(place === undefined ? {} : { place })
  })
  const log = followLog(site)
  await until("the log is followed", () => log.events().some(({ _tag }) => _tag === "HostJoined"))

  const attach: TestSite["attach"] = (program, args = [], { flags = [], ...options } = {}) => {
    const running = site.begin(["attach", "--verbose", ...flags, "--", program, ...args], options)
    const over = running.outcome.then(
      () => true,
      () => true
    )
    const story = () => `\n${running.stdout()}${running.stderr()}juice up wrote:\n${site.output()}`
    const need = <T>(what: string, look: () => T) =>
      until(`${program}: ${what}`, async () => {
        const seen = look()
        if (seen) return seen
        const ended = await Promise.race([over, Promise.resolve(false)])
        if (ended && !look()) throw new Error(`${program} ended before ${what}:${story()}`)
        return look()
      }).catch((error: Error) => {
        throw error.message.startsWith("not within") ? new Error(`${error.message}${story()}`) : error
      })
    const session = need("it has a session", () => /session ([0-9a-f]{32}): /.exec(running.stderr())?.[1])
    session.catch(() => {})
    return {
      ...running,
      session: session as Promise<string>,
      program: () => need("the program runs", () => programOf(running.pid)) as Promise<number>,
      says: async (text) => {
        await need(`it says "${text}"`, () => running.stdout().includes(text))
      }
    }
  }
  const hosts: TestSite["hosts"] = async () => {
    const listing = await site.juice(["hosts", "--json"])
    if (listing.code !== 0) throw new Error(`juice hosts: ${listing.stderr}`)
    return (JSON.parse(listing.stdout) as HostsListing).hosts
  }
  const processes: TestSite["processes"] = (line) =>
    processesMarked(temporary).filter((pid) => line.test(commandLine(pid)))
  const workers = () => processes(/juice-worker --driver/)
  const remains = () => ({
    processes: processes(/./)
      .filter((pid) => pid !== log.pid)
      .map(commandLine),
    files: filesUnder(temporary)
  })
  const discard = () => {
    log.stop()
    for (const pid of processesMarked(temporary)) process.kill(pid, "SIGKILL")
    rmSync(temporary, { recursive: true, force: true })
  }
  return {
    ...site,
    events: log.events,
    attach,
    hosts,
    processes,
    workers,
    ended: async (session, deadline) => {
      const end = await until(
        `the log says that session ${session} has ended`,
        () => log.events().find((event) => event._tag === "SessionEnded" && event.session === session),
        deadline
      )
      const processes = log.events().filter((event) => event._tag === "ProcessEnded" && event.session === session)
      return { reason: end.reason!, processes }
    },
    untilFree: async (pooledWorkers = 0) => {
      await until(`there are ${pooledWorkers} workers`, () => workers().length === pooledWorkers)
      await until("every GPU is free", async () =>
        (await hosts()).every((host) => host.gpus.every((gpu) => gpu.reserved === 0 && gpu.sessions === 0))
      )
    },
    remains,
    age: () => {
      const past = Date.now() / 1000 - 3600
      for (const file of filesUnder(temporary)) utimesSync(join(temporary, file), past, past)
    },
    discard,
    finish: async (signal) => {
      const code = await site.up.stop(signal)
      const left = remains()
      discard()
      await site.stop()
      if (code !== 0) throw new Error(`juice up ended with ${code}:\n${site.output()}`)
      if (left.processes.length + left.files.length > 0) throw new Error(`left behind: ${JSON.stringify(left)}`)
    }
  }
}

/**
 * The fold: events into placement state. Pure at its interface, in place inside: the state that is given is changed
 * and returned, and nothing else is touched. Every replica, replay and audit runs this and only this.
 */
import type { Commit, Entry } from "../protocol/commit.ts"
import type { Event, EventOf, HostEvent, RouterEvent, SessionEvent } from "../protocol/events.ts"
import type { GpuGrant } from "../protocol/gpu.ts"
import type { CommandId, HostId, SessionId } from "../protocol/ids.ts"
import type { Report } from "../protocol/reports.ts"
import { FORGOTTEN_AT_ONCE, type Host, newHost, REMEMBERED, type Session, type State } from "./state.ts"

/** Incarnations that a host is remembered to have left behind. */
const PAST = 16

/** Takes in one whole commit. `sequence`: its place; `hash`: of its stored body, which the next one chains to. */
export const foldCommit = (state: State, commit: Commit, sequence: number, hash: string): State => {
  beginCommit(state, commit)
  for (const entry of commit.entries) foldEntry(state, entry)
  endCommit(state, commit, sequence, hash)
  return state
}

/** What a commit says before its entries: the time of its decisions. The epoch changes by an election's event. */
export const beginCommit = (state: State, commit: Pick<Commit, "now">): void => {
  state.now = Math.max(state.now, commit.now)
}

/** What a commit says once its entries are folded: where the log stands. */
export const endCommit = (state: State, commit: Pick<Commit, "reportOffset">, sequence: number, hash: string): void => {
  state.reportOffset = commit.reportOffset
  state.position = { ...state.position, sequence }
  state.head = hash
}

/** One decision: that its report was taken in, and its events. */
export const foldEntry = (state: State, entry: Entry): void => {
  const cause = "command" in entry ? entry.command.id : undefined
  for (const event of entry.events) fold(state, event, cause)
  if ("report" in entry) countReport(state, entry.report)
}

const countReport = (state: State, report: Report): void => {
  const host = state.hosts.get(report.host)
  if (host !== undefined && host.incarnation === report.incarnation) host.reported = report.n
}

/** One event, at the state's time. `cause`: the command that it comes of, if one. */
export const fold = (state: State, event: Event, cause?: CommandId): State => {
  if (event.aggregate === "session") foldSession(state, event, cause)
  else if (event.aggregate === "host") foldHost(state, event)
  else foldRouter(state, event)
  return state
}

const foldRouter = (state: State, event: RouterEvent): void => {
  if (event._tag === "RouterElected") {
    state.epoch = event.epoch
    state.leader = event.router
  } else {
    state.format = event.format
  }
}

// Sessions

const foldSession = (state: State, event: SessionEvent, cause: CommandId | undefined): void => {
  if (event._tag === "SessionRequested") {
    state.sessions.set(event.session, requested(state, event, cause))
    return
  }
  const session = state.sessions.get(event.session)
  if (session === undefined) return
  switch (event._tag) {
    case "SessionQueued":
      session.state = "queued"
      session.queuedUntil = event.until
      state.queue.add(session.session)
      return
    case "SessionPlaced":
      state.queue.delete(session.session)
      session.state = "placed"
      session.attempt = event.attempt
      charge(state, session, event)
      return
    case "PlacementRefused":
      uncharge(state, session)
      session.refusal = { host: event.host, reason: event.reason }
      session.excluded.set(event.host, event.excludedUntil)
      return
    case "SessionReady":
      session.state = "ready"
      session.readyAt = state.now
      return
    case "ProcessAttached":
      if (session.state === "ready") session.state = "active"
      session.running.add(event.process)
      session.processes += 1
      return
    case "ProcessEnded":
      session.running.delete(event.process)
      session.usage = {
        calls: session.usage.calls + event.usage.calls,
        bytesIn: session.usage.bytesIn + event.usage.bytesIn,
        bytesOut: session.usage.bytesOut + event.usage.bytesOut,
        launches: session.usage.launches + event.usage.launches,
        peakMemory: Math.max(session.usage.peakMemory, event.usage.peakMemory)
      }
      return
    case "SessionInterrupted":
      session.interrupted = true
      return
    case "SessionResumed":
      session.interrupted = false
      return
    case "SessionEnding":
      state.queue.delete(session.session)
      session.state = "ending"
      session.reason = event.reason
      return
    case "SessionEnded":
      uncharge(state, session)
      state.queue.delete(session.session)
      session.state = "ended"
      session.endedAt = state.now
      session.reason = event.reason
      session.usage = event.usage
      session.interrupted = false
      session.running.clear()
      session.excluded.clear()
      remember(state, session.session)
  }
}

const requested = (state: State, event: EventOf<"SessionRequested">, cause: CommandId | undefined): Session => ({
  session: event.session,
  principal: event.principal,
  cause: cause ?? ("" as CommandId),
  request: event.gpus,
  labels: event.labels,
  waitMs: event.waitMs,
  publicKey: event.publicKey,
  client: event.client,
  requestedAt: state.now,
  state: "queued",
  queuedUntil: state.now,
  attempt: 0,
  placement: undefined,
  readyAt: undefined,
  endedAt: undefined,
  reason: undefined,
  refusal: undefined,
  excluded: new Map(),
  running: new Set(),
  processes: 0,
  interrupted: false,
  usage: { calls: 0, bytesIn: 0, bytesOut: 0, launches: 0, peakMemory: 0 }
})

/** Ended sessions are kept for a while, for those who ask again; the oldest are forgotten, many at once. */
const remember = (state: State, session: SessionId): void => {
  state.ended.add(session)
  if (state.ended.size < REMEMBERED + FORGOTTEN_AT_ONCE) return
  for (const oldest of state.ended) {
    if (state.ended.size <= REMEMBERED) return
    state.ended.delete(oldest)
    state.sessions.delete(oldest)
  }
}

// Charges

const charge = (state: State, session: Session, event: EventOf<"SessionPlaced">): void => {
  session.placement = { host: event.host, incarnation: event.incarnation, gpus: event.gpus }
  state.charged.set(session.principal, (state.charged.get(session.principal) ?? 0) + 1)
  const host = state.hosts.get(event.host)
  if (host === undefined) return
  host.sessions.add(session.session)
  for (const grant of event.gpus) chargeGpu(host, grant)
}

const chargeGpu = (host: Host, grant: GpuGrant): void => {
  const held = host.gpus.get(grant.uuid)
  if (held === undefined) return
  held.reserved += grant.vram
  held.sessions += 1
  held.exclusive ||= grant.exclusive
}

const uncharge = (state: State, session: Session): void => {
  const placement = session.placement
  if (placement === undefined) return
  session.placement = undefined
  const left = (state.charged.get(session.principal) ?? 0) - 1
  if (left > 0) state.charged.set(session.principal, left)
  else state.charged.delete(session.principal)
  const host = state.hosts.get(placement.host)
  if (host === undefined || !host.sessions.delete(session.session)) return
  for (const grant of placement.gpus) {
    const held = host.gpus.get(grant.uuid)
    if (held === undefined) continue
    held.reserved -= grant.vram
    held.sessions -= 1
    if (grant.exclusive) held.exclusive = false
  }
}

// Hosts

const foldHost = (state: State, event: HostEvent): void => {
  if (event._tag === "HostJoined") {
    joined(state, event)
    return
  }
  const host = state.hosts.get(event.host)
  if (host === undefined || host.incarnation !== event.incarnation) return
  switch (event._tag) {
    case "HostSuspect":
      host.silence = "suspect"
      return
    case "HostUnknown":
      host.silence = "unknown"
      return
    case "HostRecovered":
      host.silence = "none"
      return
    case "HostDraining":
      host.draining = true
      return
    case "HostLeft":
      host.left = true
      host.silence = "none"
  }
}

/**
 * A host offers its GPUs, for the first time or again. Whatever is charged to it stays charged until it has ended;
 * sessions that the new incarnation has taken over are its own from here on, the others are orphans (see orphans).
 */
const joined = (state: State, event: EventOf<"HostJoined">): void => {
  const host = state.hosts.get(event.host) ?? newHost(event)
  state.hosts.set(event.host, host)
  if (host.incarnation !== event.incarnation) {
    host.past.push(host.incarnation)
    if (host.past.length > PAST) host.past.shift()
    host.incarnation = event.incarnation
    host.reported = 0
    host.draining = false
  }
  host.version = event.version
  host.endpoint = event.endpoint
  host.labels = event.labels
  host.fenceAfterMs = event.fenceAfterMs
  host.joinedAt = state.now
  host.silence = "none"
  host.left = false
  host.gpus.clear()
  for (const gpu of event.gpus) host.gpus.set(gpu.uuid, { gpu, reserved: 0, sessions: 0, exclusive: false })
  const kept = new Set(event.sessions)
  for (const id of host.sessions) {
    const session = state.sessions.get(id)
    if (session?.placement === undefined) continue
    if (kept.has(id)) session.placement = { ...session.placement, incarnation: event.incarnation }
    for (const grant of session.placement.gpus) chargeGpu(host, grant)
  }
  // What a host refused before it came back says nothing about it now.
  for (const id of state.queue) state.sessions.get(id)?.excluded.delete(event.host)
}

/** Whether a report has been seen, is the next, or comes too early: then those in between are waited for. */
export const reportStanding = (
  state: State,
  report: Pick<Report, "host" | "incarnation" | "n" | "body">
): "next" | "seen" | "early" => {
  const host: Host | undefined = state.hosts.get(report.host as HostId)
  const first = report.n === 1 && report.body._tag === "host.joined"
  if (host === undefined) return first ? "next" : "early"
  if (host.incarnation !== report.incarnation) {
    if (host.past.includes(report.incarnation)) return "seen"
    return first ? "next" : "early"
  }
  if (report.n <= host.reported) return "seen"
  return report.n === host.reported + 1 ? "next" : "early"
}

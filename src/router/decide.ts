/**
 * The decisions: decide(state, command, now, seed) → events, or a rejection. Pure: no clock, no randomness, no I/O;
 * the same four inputs give the same answer for ever, which is what an audit relies on.
 *
 * Nothing here changes the state; the fold does, with the events.
 */
import type { Command, CommandOf } from "../protocol/commands.ts"
import type { Event, PlacementWhy, RefusalReason, SessionEndReason } from "../protocol/events.ts"
import type { GpuRequest } from "../protocol/gpu.ts"
import type { HostId, SessionId } from "../protocol/ids.ts"
import { HOST_BACKOFF } from "../protocol/limits.ts"
import { type Ask, place } from "./placement/placement.ts"
import type { Host, Session, State } from "./state.ts"

export type Rejection =
  | { readonly _tag: "NoHost" }
  | { readonly _tag: "NoCapacity"; readonly why: PlacementWhy }
  | { readonly _tag: "NoSuchSession"; readonly session: SessionId }
  | { readonly _tag: "SessionConflict"; readonly session: SessionId }
  | { readonly _tag: "BadRequest"; readonly detail: string }

/** No events and no rejection: there is nothing to do, or no longer. */
export type Decision =
  | { readonly _tag: "Events"; readonly events: ReadonlyArray<Event> }
  | { readonly _tag: "Rejected"; readonly rejection: Rejection }

const events = (...events: ReadonlyArray<Event>): Decision => ({ _tag: "Events", events })
const rejected = (rejection: Rejection): Decision => ({ _tag: "Rejected", rejection })
const NOTHING = events()

/** Sessions that one decision ends at most: a commit has its size. The command is repeated until nothing is left. */
const SWEEP = 100

/** `seed` is for decisions that toss a coin; none does yet. */
export const decide = (state: State, command: Command, now: number, _seed: number): Decision => {
  switch (command._tag) {
    case "session.request":
      return request(state, command, now)
    case "session.release":
      return release(state, command)
    case "session.prepared":
      return prepared(state, command, now)
    case "session.refused":
      return refused(state, command.session, command.attempt, command.reason, now)
    case "session.gone":
      return gone(state, command)
    case "session.expire":
      return expire(state, command, now)
    case "queue.place":
      return placeQueued(state, now)
    case "host.suspect":
    case "host.unknown":
    case "host.seen":
      return silence(state, command)
    case "host.fenced":
      return fenced(state, command, now)
    case "host.sweep":
      return sweep(state, command)
    case "router.elect":
      return events({
        _tag: "RouterElected",
        aggregate: "router",
        router: command.router,
        epoch: state.epoch + 1,
        version: command.version
      })
  }
}

// Sessions

const request = (state: State, command: CommandOf<"session.request">, now: number): Decision => {
  const present = state.sessions.get(command.session)
  if (present !== undefined) {
    const same = present.principal === command.principal && present.publicKey === command.publicKey
    return same ? NOTHING : rejected({ _tag: "SessionConflict", session: command.session })
  }
  const fault = faultOf(command.gpus)
  if (fault !== undefined) return rejected({ _tag: "BadRequest", detail: fault })

  const requested: Event = {
    _tag: "SessionRequested",
    aggregate: "session",
    session: command.session,
    principal: command.principal,
    gpus: command.gpus,
    labels: command.labels,
    waitMs: command.waitMs,
    publicKey: command.publicKey,
    client: command.client
  }
  const ask: Ask = { request: command.gpus, labels: command.labels, excluded: new Map(), now }
  const found = place(state.hosts.values(), ask)
  if (found._tag === "Found") return events(requested, placed(command.session, 1, found))
  if (command.waitMs > 0) return events(requested, queued(command.session, now + command.waitMs))
  return rejected(found.why.hosts === 0 ? { _tag: "NoHost" } : { _tag: "NoCapacity", why: found.why })
}

const faultOf = (request: GpuRequest): string | undefined => {
  if (request.vram !== undefined && request.share !== undefined) {
    return "a share of a GPU is named either in bytes or as a part, not both"
  }
  if (request.uuid !== undefined && new Set(request.uuid).size < request.count) {
    return `${request.count} GPUs are asked for and only ${new Set(request.uuid).size} named`
  }
  return undefined
}

const placed = (session: SessionId, attempt: number, found: Extract<ReturnType<typeof place>, { _tag: "Found" }>) =>
  ({
    _tag: "SessionPlaced",
    aggregate: "session",
    session,
    host: found.candidate.host.host,
    incarnation: found.candidate.host.incarnation,
    attempt,
    gpus: found.candidate.grants,
    why: found.why
  }) as const satisfies Event

const queued = (session: SessionId, until: number): Event => ({
  _tag: "SessionQueued",
  aggregate: "session",
  session,
  until
})

const ended = (session: Session, reason: SessionEndReason): Event => ({
  _tag: "SessionEnded",
  aggregate: "session",
  session: session.session,
  reason,
  usage: session.usage
})

/** Tries a session that has no place: placed, or back in the queue while it may wait, or ended. */
const placeAgain = (state: State, session: Session, excluded: ReadonlyMap<HostId, number>, now: number): Event => {
  const found = place(state.hosts.values(), { request: session.request, labels: session.labels, excluded, now })
  if (found._tag === "Found") return placed(session.session, session.attempt + 1, found)
  const until = session.requestedAt + session.waitMs
  return until > now ? queued(session.session, until) : ended(session, "refused")
}

/** The queue in the order it is served: principals who hold least first, then age. */
const servingOrder = (state: State): ReadonlyArray<Session> =>
  [...state.queue]
    .flatMap((id) => state.sessions.get(id) ?? [])
    .map((session, age) => ({ session, age, held: state.charged.get(session.principal) ?? 0 }))
    .sort((a, b) => a.held - b.held || a.age - b.age)
    .map(({ session }) => session)

/** Places the first session of the queue that fits; smaller ones may overtake one that does not. */
const placeQueued = (state: State, now: number): Decision => {
  for (const session of servingOrder(state)) {
    const found = place(state.hosts.values(), {
      request: session.request,
      labels: session.labels,
      excluded: session.excluded,
      now
    })
    if (found._tag === "Found") return events(placed(session.session, session.attempt + 1, found))
  }
  return NOTHING
}

const prepared = (state: State, command: CommandOf<"session.prepared">, now: number): Decision => {
  const session = awaited(state, command.session, command.attempt)
  if (session?.placement === undefined) return NOTHING
  const { host: id, incarnation } = session.placement
  const host = state.hosts.get(id)
  if (host === undefined || host.incarnation !== incarnation || host.left) {
    return refused(state, command.session, command.attempt, "other-incarnation", now)
  }
  return events({
    _tag: "SessionReady",
    aggregate: "session",
    session: session.session,
    host: id,
    attempt: session.attempt
  })
}

/** The session that waits for this attempt's prepare. */
const awaited = (state: State, id: SessionId, attempt: number): Session | undefined => {
  const session = state.sessions.get(id)
  return session?.state === "placed" && session.attempt === attempt ? session : undefined
}

const refused = (state: State, id: SessionId, attempt: number, reason: RefusalReason, now: number): Decision => {
  const session = awaited(state, id, attempt)
  if (session?.placement === undefined) return NOTHING
  const { host } = session.placement
  const excludedUntil = now + HOST_BACKOFF
  const excluded = new Map(session.excluded).set(host, excludedUntil)
  return events(
    { _tag: "PlacementRefused", aggregate: "session", session: id, host, attempt, reason, excludedUntil },
    placeAgain(state, session, excluded, now)
  )
}

const release = (state: State, command: CommandOf<"session.release">): Decision => {
  const session = state.sessions.get(command.session)
  if (session === undefined || session.principal !== command.principal) {
    return rejected({ _tag: "NoSuchSession", session: command.session })
  }
  const host = session.placement === undefined ? undefined : state.hosts.get(session.placement.host)
  if (command.force === true && session.state !== "ended" && host !== undefined) {
    if (host.silence !== "unknown") {
      return rejected({
        _tag: "BadRequest",
        detail: `the host "${host.host}" is not unknown: release the session without force, and it will end it`
      })
    }
    return events(ended(session, "administrator"))
  }
  switch (session.state) {
    case "queued":
      return events(ended(session, "cancelled"))
    case "placed":
      return events(ending(session, "cancelled"))
    case "ready":
    case "active":
      return events(ending(session, "released"))
    case "ending":
    case "ended":
      return NOTHING
  }
}

const ending = (session: Session, reason: SessionEndReason): Event => ({
  _tag: "SessionEnding",
  aggregate: "session",
  session: session.session,
  reason
})

const gone = (state: State, command: CommandOf<"session.gone">): Decision => {
  const session = state.sessions.get(command.session)
  if (session?.placement === undefined || session.attempt !== command.attempt) return NOTHING
  // Another incarnation's answer says nothing of the one that has the session.
  if (session.placement.incarnation !== command.incarnation) return NOTHING
  return session.state === "ending" ? events(ended(session, session.reason ?? "released")) : NOTHING
}

const expire = (state: State, command: CommandOf<"session.expire">, now: number): Decision => {
  const session = state.sessions.get(command.session)
  if (session?.state !== "queued") return NOTHING
  if (command.reason === "wait-over" && now < session.queuedUntil) return NOTHING
  return events(ended(session, command.reason))
}

// Hosts

const silence = (state: State, command: CommandOf<"host.suspect" | "host.unknown" | "host.seen">): Decision => {
  const host = present(state, command)
  if (host === undefined) return NOTHING
  const about = { aggregate: "host", host: host.host, incarnation: host.incarnation } as const
  switch (command._tag) {
    case "host.suspect":
      return host.silence === "none" ? events({ _tag: "HostSuspect", ...about }) : NOTHING
    case "host.unknown":
      return host.silence === "suspect" ? events({ _tag: "HostUnknown", ...about }) : NOTHING
    case "host.seen":
      return host.silence === "none" ? NOTHING : events({ _tag: "HostRecovered", ...about })
  }
}

const present = (state: State, command: Pick<CommandOf<"host.suspect">, "host" | "incarnation">): Host | undefined => {
  const host = state.hosts.get(command.host)
  return host === undefined || host.left || host.incarnation !== command.incarnation ? undefined : host
}

const fenced = (state: State, command: CommandOf<"host.fenced">, now: number): Decision => {
  const host = present(state, command)
  if (host?.fenceAfterMs === undefined || host.silence !== "unknown") return NOTHING
  if (now - command.seen < host.fenceAfterMs) return NOTHING
  return events(...some(state, host, () => "host-fenced"))
}

const sweep = (state: State, command: CommandOf<"host.sweep">): Decision => {
  const host = state.hosts.get(command.host)
  return host === undefined ? NOTHING : events(...some(state, host, (session) => orphaned(host, session)))
}

/**
 * Why a session that is charged to a host is no longer there: the host has left, or has come back without it. One
 * that is only placed is not ended for that: its prepare will be refused, and it is placed again.
 */
export const orphaned = (host: Host, session: Session): SessionEndReason | undefined => {
  if (session.placement === undefined || session.state === "placed") return undefined
  if (host.left) return "host-left"
  return session.placement.incarnation === host.incarnation ? undefined : "host-lost"
}

/** The endings of the first sessions of a host that have a reason to end. */
const some = (
  state: State,
  host: Host,
  reasonOf: (session: Session) => SessionEndReason | undefined
): ReadonlyArray<Event> => {
  const endings: Array<Event> = []
  for (const id of host.sessions) {
    if (endings.length === SWEEP) break
    const session = state.sessions.get(id)
    const reason = session === undefined ? undefined : reasonOf(session)
    if (session !== undefined && reason !== undefined) endings.push(ended(session, reason))
  }
  return endings
}

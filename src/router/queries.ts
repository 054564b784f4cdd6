/**
 * Questions to the fold: the views that reads answer with. Pure.
 */
import type {
  HostState,
  HostsListQuery,
  HostsListResult,
  HostView,
  SessionsListQuery,
  SessionsListResult,
  SessionView
} from "../protocol/answers.ts"
import { MAX_PAGE } from "../protocol/limits.ts"
import type { Principal } from "../protocol/tokens.ts"
import type { Host, Session, State } from "./state.ts"

export const sessionView = (state: State, session: Session): SessionView => {
  const host = session.placement === undefined ? undefined : state.hosts.get(session.placement.host)
  return {
    session: session.session,
    principal: session.principal,
    state: session.state,
    hostSilent: host !== undefined && host.silence !== "none",
    interrupted: session.interrupted,
    request: session.request,
    attempt: session.attempt,
    gpus: session.placement?.gpus ?? [],
    client: session.client,
    requestedAt: session.requestedAt,
    processes: { running: session.running.size, total: session.processes },
    usage: session.usage,
    ...(session.placement === undefined ? {} : { host: session.placement.host }),
    ...(session.readyAt === undefined ? {} : { readyAt: session.readyAt }),
    ...(session.endedAt === undefined ? {} : { endedAt: session.endedAt }),
    ...(session.reason === undefined ? {} : { reason: session.reason }),
    ...(session.refusal === undefined ? {} : { refusal: session.refusal })
  }
}

/** What a host is, in one word: the graver fact wins. */
export const hostState = (host: Host): HostState => {
  if (host.left) return "left"
  if (host.silence !== "none") return host.silence
  return host.draining ? "draining" : "up"
}

export const hostView = (host: Host): HostView => ({
  host: host.host,
  incarnation: host.incarnation,
  state: hostState(host),
  version: host.version,
  endpoint: host.endpoint,
  labels: host.labels,
  joinedAt: host.joinedAt,
  sessions: host.sessions.size,
  gpus: [...host.gpus.values()].map(({ exclusive, gpu, reserved, sessions }) => ({
    ...gpu,
    reserved,
    exclusive,
    sessions
  }))
})

const seenAt = (state: State) => ({ position: state.position, now: state.now })

/** The session, if it is the asker's. */
export const findSession = (state: State, principal: Principal, id: string): Session | undefined => {
  const session = state.sessions.get(id as Session["session"])
  return session?.principal === principal ? session : undefined
}

/** The asker's sessions, newest first. */
export const listSessions = (state: State, principal: Principal, query: SessionsListQuery): SessionsListResult => {
  const limit = query.limit ?? MAX_PAGE
  const all = [...state.sessions.values()]
    .filter((session) => session.principal === principal && (query.ended === true || session.state !== "ended"))
    .reverse()
  const from = query.before === undefined ? 0 : all.findIndex(({ session }) => session === query.before) + 1
  const page = all.slice(from, from + limit)
  const last = page.at(-1)
  return {
    ...seenAt(state),
    sessions: page.map((session) => sessionView(state, session)),
    ...(last !== undefined && from + limit < all.length ? { next: last.session } : {})
  }
}

/** A page of hosts holds this many; each has its GPUs with it. */
const HOSTS_PAGE = 200

export const listHosts = (state: State, query: HostsListQuery): HostsListResult => {
  const all = [...state.hosts.values()]
    .filter((host) => query.left === true || !host.left)
    .sort((a, b) => (a.host < b.host ? -1 : 1))
  const found = query.from === undefined ? 0 : all.findIndex(({ host }) => host >= query.from!)
  const from = found === -1 ? all.length : found
  const next = all[from + HOSTS_PAGE]
  return {
    ...seenAt(state),
    hosts: all.slice(from, from + HOSTS_PAGE).map(hostView),
    ...(next === undefined ? {} : { next: next.host })
  }
}

/** Sessions that have not ended, and those of them that wait. */
export const countSessions = (state: State): { readonly sessions: number; readonly queued: number } => ({
  sessions: state.sessions.size - state.ended.size,
  queued: state.queue.size
})

/**
 * Decisions on reports: what a host says becomes events, where it fits what is known. Pure, like decide.ts.
 *
 * Only called for the next report of a host (see reportStanding in fold.ts): those seen before and those that come
 * too early never get here.
 */
import type { Event } from "../protocol/events.ts"
import type { SessionId } from "../protocol/ids.ts"
import type { Report, ReportBody } from "../protocol/reports.ts"
import { decide } from "./decide.ts"
import type { Session, State } from "./state.ts"

type Body<Tag extends ReportBody["_tag"]> = Extract<ReportBody, { readonly _tag: Tag }>

export const decideReport = (state: State, report: Report, now: number, seed: number): ReadonlyArray<Event> => {
  const { body } = report
  const about = { aggregate: "host", host: report.host, incarnation: report.incarnation } as const
  switch (body._tag) {
    case "host.joined":
      return [joined(state, report, body)]
    case "host.draining":
      return [{ _tag: "HostDraining", ...about }]
    case "host.left":
      return [{ _tag: "HostLeft", ...about }]
    case "process.attached":
      return attached(state, report, body)
    case "process.ended":
      return processEnded(state, report, body)
    case "session.ended":
      return sessionEnded(state, report, body)
    case "session.refused":
      return sessionRefused(state, report, body, now, seed)
    case "session.interrupted":
    case "session.resumed": {
      const session = charged(state, report, body.session)
      if (session === undefined) return []
      const _tag = body._tag === "session.interrupted" ? "SessionInterrupted" : "SessionResumed"
      return [{ _tag, aggregate: "session", session: session.session }]
    }
  }
}

/** The session, if this very incarnation of this host has it by what is known. */
const charged = (state: State, report: Report, id: SessionId): Session | undefined => {
  const session = state.sessions.get(id)
  const placement = session?.placement
  return placement?.host === report.host && placement.incarnation === report.incarnation ? session : undefined
}

/** Sessions that the host names as its own are kept, if they are charged to it and of the same attempt. */
const joined = (state: State, report: Report, body: Body<"host.joined">): Event => ({
  _tag: "HostJoined",
  aggregate: "host",
  host: report.host,
  incarnation: report.incarnation,
  version: body.version,
  endpoint: body.endpoint,
  gpus: body.gpus,
  labels: body.labels,
  ...(body.fenceAfterMs === undefined ? {} : { fenceAfterMs: body.fenceAfterMs }),
  sessions: body.sessions.flatMap((claimed) => {
    const session = state.sessions.get(claimed.session)
    return session?.placement?.host === report.host && session.attempt === claimed.attempt ? [claimed.session] : []
  })
})

const attached = (state: State, report: Report, body: Body<"process.attached">): ReadonlyArray<Event> => {
  const session = charged(state, report, body.session)
  if (session === undefined || session.running.has(body.process)) return []
  return [{ _tag: "ProcessAttached", aggregate: "session", session: body.session, process: body.process }]
}

const processEnded = (state: State, report: Report, body: Body<"process.ended">): ReadonlyArray<Event> => {
  const session = charged(state, report, body.session)
  if (session === undefined || !session.running.has(body.process)) return []
  return [
    {
      _tag: "ProcessEnded",
      aggregate: "session",
      session: body.session,
      process: body.process,
      reason: body.reason,
      ...(body.exit === undefined ? {} : { exit: body.exit }),
      ...(body.error === undefined ? {} : { error: body.error }),
      usage: body.usage
    }
  ]
}

/** A session that was asked to end ends for that reason, whatever the host's. */
const sessionEnded = (state: State, report: Report, body: Body<"session.ended">): ReadonlyArray<Event> => {
  const session = charged(state, report, body.session)
  if (session === undefined || session.attempt !== body.attempt) return []
  const reason = session.state === "ending" ? (session.reason ?? body.reason) : body.reason
  return [{ _tag: "SessionEnded", aggregate: "session", session: body.session, reason, usage: body.usage }]
}

/** Before the client has its grant the session can go elsewhere; afterwards it has failed. */
const sessionRefused = (
  state: State,
  report: Report,
  body: Body<"session.refused">,
  now: number,
  seed: number
): ReadonlyArray<Event> => {
  const session = charged(state, report, body.session)
  if (session === undefined || session.attempt !== body.attempt) return []
  if (session.state === "placed") {
    const id = session.cause
    const decision = decide(state, { _tag: "session.refused", id, ...pickRefusal(body) }, now, seed)
    return decision._tag === "Events" ? decision.events : []
  }
  const reason = session.state === "ending" ? (session.reason ?? "host-failed") : "host-failed"
  return [{ _tag: "SessionEnded", aggregate: "session", session: body.session, reason, usage: session.usage }]
}

const pickRefusal = ({ attempt, reason, session }: Body<"session.refused">) => ({ session, attempt, reason })

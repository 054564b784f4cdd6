/**
 * Reports: what a host tells its site, in order, from a durable outbox.
 *
 * A report is (host, incarnation, n): n counts from 1 in each incarnation, and `host.joined` is always n = 1. The
 * router drops what it has seen and waits on gaps; heartbeats carry the last n, and the router asks for what it lacks
 * (subject `…host.<host>.resend`).
 */
import * as Schema from "effect/Schema"
import { CudaError, Exit, Millis, ProcessEndReason, RefusalReason, SessionEndReason, Version } from "./events.ts"
import { Endpoint, Gpu, Labels, Usage } from "./gpu.ts"
import { HostId, Incarnation, ProcessNumber, SessionId } from "./ids.ts"

const body = <const Tag extends string, const Fields extends Schema.Struct.Fields>(tag: Tag, fields: Fields) =>
  Schema.Struct({ _tag: Schema.tag(tag), ...fields })

/** The host offers its GPUs. `sessions` are those whose workers it has: with a new incarnation, all others ended. */
export const HostJoinedReport = body("host.joined", {
  version: Version,
  endpoint: Endpoint,
  gpus: Schema.Array(Gpu),
  labels: Labels,
  fenceAfterMs: Schema.optionalKey(Schema.Natural),
  sessions: Schema.Array(Schema.Struct({ session: SessionId, attempt: Schema.Natural }))
})
/** The host takes no new sessions; those it has go on. */
export const HostDrainingReport = body("host.draining", {})
/** The host has ended all its sessions and goes. The last report of an incarnation. */
export const HostLeftReport = body("host.left", {})
/** A client process has a worker. */
export const ProcessAttachedReport = body("process.attached", { session: SessionId, process: ProcessNumber })
/** A client process and its worker are gone. */
export const ProcessEndedReport = body("process.ended", {
  session: SessionId,
  process: ProcessNumber,
  reason: ProcessEndReason,
  exit: Schema.optionalKey(Exit),
  error: Schema.optionalKey(CudaError),
  usage: Usage
})
/** Everything of the session is gone from the host; its capacity is free. `usage` sums all its processes. */
export const SessionEndedReport = body("session.ended", {
  session: SessionId,
  attempt: Schema.Natural,
  reason: SessionEndReason,
  usage: Usage
})
/** The host gives back a session that it had prepared and that no client has used: it may be placed elsewhere. */
export const SessionRefusedReport = body("session.refused", {
  session: SessionId,
  attempt: Schema.Natural,
  reason: RefusalReason
})
export const SessionInterruptedReport = body("session.interrupted", { session: SessionId })
export const SessionResumedReport = body("session.resumed", { session: SessionId })

export const ReportBody = Schema.Union([
  HostJoinedReport,
  HostDrainingReport,
  HostLeftReport,
  ProcessAttachedReport,
  ProcessEndedReport,
  SessionEndedReport,
  SessionRefusedReport,
  SessionInterruptedReport,
  SessionResumedReport
])
export type ReportBody = typeof ReportBody.Type

/** `at`: the host's own clock when it happened (ms); for people only, decisions use the router's time. */
export const Report = Schema.Struct({
  host: HostId,
  incarnation: Incarnation,
  n: Schema.Int.check(Schema.isGreaterThan(0)),
  at: Millis,
  body: ReportBody
})
export type Report = typeof Report.Type

/** A report's unique key: the cause that event ids derive from, and its Nats-Msg-Id. */
export const reportKey = (report: Pick<Report, "host" | "incarnation" | "n">): string =>
  `${report.host}.${report.incarnation}.${report.n}`

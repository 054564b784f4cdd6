/**
 * A site at a moment, for tests of decisions: driven by commands and reports, with the invariants checked after each.
 */
import { assert } from "@effect/vitest"
import type { Command } from "../protocol/commands.ts"
import { genesis } from "../protocol/commit.ts"
import type { Event } from "../protocol/events.ts"
import { type HostId, type Incarnation, mintCommandId, mintIncarnation, type SessionId } from "../protocol/ids.ts"
import type { ReportBody } from "../protocol/reports.ts"
import type { Principal } from "../protocol/tokens.ts"
import { decide, type Rejection } from "./decide.ts"
import { decideReport } from "./decide-report.ts"
import { foldEntry, reportStanding } from "./fold.ts"
import { violations } from "./invariants.ts"
import { emptyState, type State } from "./state.ts"
import { gpu, requestBody } from "./testing.ts"

export const DEV = "dev" as Principal
export const HOST = "gpu1" as HostId

export class Scene {
  readonly state: State = emptyState(1, genesis("TEST"))
  readonly reported = new Map<HostId, { incarnation: Incarnation; n: number }>()

  constructor() {
    this.state.now = 1_000
  }

  do(command: Command): ReadonlyArray<Event> {
    const decision = decide(this.state, command, this.state.now, 1)
    assert.strictEqual(decision._tag, "Events")
    if (decision._tag === "Rejected") return []
    foldEntry(this.state, { command, events: decision.events })
    assert.deepStrictEqual(violations(this.state), [])
    return decision.events
  }

  tags(command: Command): ReadonlyArray<string> {
    return this.do(command).map(({ _tag }) => _tag)
  }

  refusal(command: Command): Rejection {
    const decision = decide(this.state, command, this.state.now, 1)
    if (decision._tag === "Events") return assert.fail("it was not rejected")
    return decision.rejection
  }

  report(host: HostId, body: ReportBody): ReadonlyArray<string> {
    const last = this.reported.get(host)
    const at =
      last === undefined || body._tag === "host.joined"
        ? { incarnation: mintIncarnation(), n: 1 }
        : { ...last, n: last.n + 1 }
    this.reported.set(host, at)
    const report = { host, ...at, at: 0, body }
    assert.strictEqual(reportStanding(this.state, report), "next")
    const events = decideReport(this.state, report, this.state.now, 1)
    foldEntry(this.state, { report, events })
    assert.deepStrictEqual(violations(this.state), [])
    return events.map(({ _tag }) => _tag)
  }

  join(host: HostId, gpus: number): void {
    this.report(host, {
      _tag: "host.joined",
      version: "0.1.0",
      endpoint: { host, port: 1 },
      gpus: Array.from({ length: gpus }, (_, n) => gpu(n)),
      labels: {},
      sessions: []
    })
  }

  request(options: Parameters<typeof requestBody>[0] = {}, principal = DEV) {
    const body = requestBody(options)
    return { body, command: { _tag: "session.request", principal, ...body } as const }
  }

  /** A session that is ready on some host. */
  ready(options: Parameters<typeof requestBody>[0] = {}): SessionId {
    const { body, command } = this.request(options)
    this.do(command)
    this.do({ _tag: "session.prepared", id: mintCommandId(), session: body.session, attempt: 1 })
    return body.session
  }

  session(id: SessionId) {
    return this.state.sessions.get(id)!
  }
}

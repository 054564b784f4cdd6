/**
 * What a router measures, under Prometheus names. No session, host or user is a label.
 *
 * Counters and the histogram are fed where things happen, by the leader; gauges are read off the fold when they are
 * asked for, by every replica.
 */
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import type { Entry } from "../protocol/commit.ts"
import type { Site } from "../protocol/tokens.ts"
import { VERSION } from "../protocol/version.ts"
import { hostState } from "./queries.ts"
import type { State } from "./state.ts"

const commits = Metric.counter("juice_commits_total", {
  description: "Commits appended by this router",
  incremental: true
})
const events = Metric.counter("juice_events_total", {
  description: "Events appended by this router",
  incremental: true
})
const placements = Metric.counter("juice_placements_total", {
  description: "Placement decisions by result: placed, refused by the host, rejected for want of capacity",
  incremental: true
})
const duration = Metric.histogram("juice_placement_duration_seconds", {
  description: "From a session's request to its readiness, waiting included",
  boundaries: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600, 3_600]
})
const conflicts = Metric.counter("juice_append_conflicts_total", {
  description: "Appends that another router's commit forestalled",
  incremental: true
})

const placed = Metric.withAttributes(placements, { result: "placed" })
const refused = Metric.withAttributes(placements, { result: "refused" })
const rejected = Metric.withAttributes(placements, { result: "rejected" })

export const countRejection: Effect.Effect<void> = Metric.update(rejected, 1)
export const countConflict: Effect.Effect<void> = Metric.update(conflicts, 1)

/** Counts a stored commit. `state`: with its entries folded. */
export const countCommit = Effect.fnUntraced(function* (state: State, entries: ReadonlyArray<Entry>) {
  yield* Metric.update(commits, 1)
  for (const entry of entries) {
    yield* Metric.update(events, entry.events.length)
    for (const event of entry.events) {
      if (event._tag === "SessionPlaced") yield* Metric.update(placed, 1)
      if (event._tag === "PlacementRefused") yield* Metric.update(refused, 1)
      const session = event._tag === "SessionReady" ? state.sessions.get(event.session) : undefined
      if (session?.readyAt !== undefined) {
        yield* Metric.update(duration, (session.readyAt - session.requestedAt) / 1_000)
      }
    }
  }
})

const gauge = (name: string, description: string) => Metric.gauge(name, { description })
const sessions = gauge("juice_sessions_active", "Sessions that have not ended, by state")
const hosts = gauge("juice_hosts", "Hosts that have not left, by state")
const sequence = gauge("juice_fold_sequence", "The last commit folded")
const lag = gauge("juice_fold_lag_events", "Commits that the log has and the fold has not")
const leading = gauge("juice_router_leading", "1 while this router leads")
const epoch = gauge("juice_router_epoch", "The epoch of the last election")
const build = gauge("juice_build_info", "Always 1; the version is the label")

const SESSION_STATES = ["queued", "placed", "ready", "active", "ending"] as const
const HOST_STATES = ["up", "suspect", "unknown", "draining"] as const

/** Sets the gauges to what the fold says now. `last`: the last sequence of the log. */
export const gaugeFold = Effect.fnUntraced(function* (site: Site, state: State, last: number, isLeading: boolean) {
  const bySession = new Map<string, number>()
  for (const session of state.sessions.values()) {
    bySession.set(session.state, (bySession.get(session.state) ?? 0) + 1)
  }
  for (const name of SESSION_STATES) {
    yield* Metric.update(Metric.withAttributes(sessions, { site, state: name }), bySession.get(name) ?? 0)
  }
  const byHost = new Map<string, number>()
  for (const host of state.hosts.values()) {
    const name = hostState(host)
    byHost.set(name, (byHost.get(name) ?? 0) + 1)
  }
  for (const name of HOST_STATES) {
    yield* Metric.update(Metric.withAttributes(hosts, { site, state: name }), byHost.get(name) ?? 0)
  }
  yield* Metric.update(sequence, state.position.sequence)
  yield* Metric.update(lag, Math.max(0, last - state.position.sequence))
  yield* Metric.update(leading, isLeading ? 1 : 0)
  yield* Metric.update(epoch, state.epoch)
  yield* Metric.update(Metric.withAttributes(build, { version: VERSION }), 1)
})

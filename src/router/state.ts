/**
 * Placement state: what the router knows. Always and only a fold over the log's events (fold.ts).
 *
 * Plain data in native Maps, changed in place by the fold alone; a persistent map was measured at a fourth of the
 * speed. Everybody else reads.
 */
import type { Position, SessionState } from "../protocol/answers.ts"
import type { ClientInfo, EventOf, RefusalReason, SessionEndReason } from "../protocol/events.ts"
import type { Endpoint, Gpu, GpuGrant, GpuRequest, Labels, Usage } from "../protocol/gpu.ts"
import type { CommandId, HostId, Incarnation, ProcessNumber, RouterId, SessionId } from "../protocol/ids.ts"
import type { Principal } from "../protocol/tokens.ts"

export interface Session {
  readonly session: SessionId
  readonly principal: Principal
  /** The command that asked for it: repeating that is no second session. */
  readonly cause: CommandId
  readonly request: GpuRequest
  readonly labels: Labels
  readonly waitMs: number
  readonly publicKey: string
  readonly client: ClientInfo
  readonly requestedAt: number
  state: SessionState
  /** While queued: when the wait is over. */
  queuedUntil: number
  /** The number of the present or last placement; 0 before the first. */
  attempt: number
  /** Where it is charged: set from SessionPlaced to PlacementRefused or SessionEnded. */
  placement: Placement | undefined
  readyAt: number | undefined
  endedAt: number | undefined
  reason: SessionEndReason | undefined
  refusal: { readonly host: HostId; readonly reason: RefusalReason } | undefined
  /** Hosts left out of the next attempts, each until a time. */
  readonly excluded: Map<HostId, number>
  readonly running: Set<ProcessNumber>
  processes: number
  interrupted: boolean
  usage: Usage
}

export interface Placement {
  readonly host: HostId
  readonly incarnation: Incarnation
  readonly gpus: ReadonlyArray<GpuGrant>
}

/** A host's GPU and what is charged to it. */
export interface GpuCharge {
  readonly gpu: Gpu
  /** Bytes that sessions hold. */
  reserved: number
  /** Sessions that hold it: any number of shares, or one alone. */
  sessions: number
  exclusive: boolean
}

export interface Host {
  readonly host: HostId
  incarnation: Incarnation
  /** Incarnations that are over; their late reports are dropped. The latest few. */
  readonly past: Array<Incarnation>
  /** The number of the last report that was taken in. */
  reported: number
  version: string
  endpoint: Endpoint
  labels: Labels
  fenceAfterMs: number | undefined
  joinedAt: number
  /** Whether it is heard of: suspect hosts get no new sessions, what unknown ones do is not known. */
  silence: "none" | "suspect" | "unknown"
  draining: boolean
  left: boolean
  readonly gpus: Map<string, GpuCharge>
  /** Sessions charged to it. */
  readonly sessions: Set<SessionId>
}

export interface State {
  /** The last commit folded. */
  position: Position
  /** The `prev` that the next commit must have. */
  head: string
  /** The format that commits are written in. */
  format: number
  epoch: number
  leader: RouterId | undefined
  /** The time of the last commit. */
  now: number
  /** Reports up to here are accounted for. */
  reportOffset: number
  readonly hosts: Map<HostId, Host>
  /** In the order of their requests; of the ended ones the latest few. */
  readonly sessions: Map<SessionId, Session>
  /** Those waiting for capacity, in the order of their requests. */
  readonly queue: Set<SessionId>
  /** Ended sessions that are still remembered, oldest first. */
  readonly ended: Set<SessionId>
  /** How many sessions of each principal are charged to hosts now. */
  readonly charged: Map<Principal, number>
}

/** Ended sessions that the state remembers, so that a repeated request finds its end. The log has them all. */
export const REMEMBERED = 10_000
/** They are forgotten so many at a time: finding the oldest of a set costs a walk over what was deleted before. */
export const FORGOTTEN_AT_ONCE = 1_000

/** The state before the first commit of a log whose stream has this name. */
export const emptyState = (segment: number, head: string): State => ({
  position: { segment, sequence: 0 },
  head,
  format: 1,
  epoch: 0,
  leader: undefined,
  now: 0,
  reportOffset: 0,
  hosts: new Map(),
  sessions: new Map(),
  queue: new Set(),
  ended: new Set(),
  charged: new Map()
})

/** A copy that shares nothing with the original. */
export const copyState = (state: State): State => structuredClone(state)

export const newHost = (event: EventOf<"HostJoined">): Host => ({
  host: event.host,
  incarnation: event.incarnation,
  past: [],
  reported: 0,
  version: event.version,
  endpoint: event.endpoint,
  labels: event.labels,
  fenceAfterMs: event.fenceAfterMs,
  joinedAt: 0,
  silence: "none",
  draining: false,
  left: false,
  gpus: new Map(),
  sessions: new Set()
})

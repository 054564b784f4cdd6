/**
 * Heartbeats of hosts: core NATS, every HEARTBEAT_INTERVAL. They say that a host lives and how far its reports go;
 * they never change placement state by themselves.
 */
import * as Schema from "effect/Schema"
import { HostId, Incarnation } from "./ids.ts"

export const Heartbeat = Schema.Struct({
  host: HostId,
  incarnation: Incarnation,
  /** The number of the last report in the outbox, sent or not. */
  n: Schema.Natural,
  /** Sessions that the host holds now. */
  sessions: Schema.Natural
})
export type Heartbeat = typeof Heartbeat.Type

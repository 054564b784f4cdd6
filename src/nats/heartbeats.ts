/**
 * Heartbeats of hosts: core NATS, so a lost one is only a lost one.
 */
import * as Effect from "effect/Effect"
import { jsonCodec } from "../protocol/codec.ts"
import { Heartbeat } from "../protocol/heartbeat.ts"
import { heartbeatPattern, heartbeatSubject } from "../protocol/subjects.ts"
import type { Site } from "../protocol/tokens.ts"
import { Nats } from "./connection.ts"
import { listen } from "./requests.ts"

export const heartbeatCodec = jsonCodec("heartbeat", Heartbeat)

export const sendHeartbeat = Effect.fnUntraced(function* (site: Site, heartbeat: Heartbeat) {
  const nats = yield* Nats
  yield* nats.publish(heartbeatSubject(site, heartbeat.host), heartbeatCodec.encode(heartbeat))
})

/** Calls `onHeartbeat` for each heartbeat of any host, for as long as the scope is open. */
export const listenHeartbeats = (site: Site, onHeartbeat: (heartbeat: Heartbeat) => Effect.Effect<void>) =>
  listen({
    subject: heartbeatPattern(site),
    codec: heartbeatCodec,
    onMessage: (heartbeat, subject) =>
      subject === heartbeatSubject(site, heartbeat.host) ? onHeartbeat(heartbeat) : Effect.void
  })

/**
 * What must hold of every state, at every commit: checked by the audit and by the property tests.
 */
import type { State } from "./state.ts"

/** Sentences about what is broken; none when all is well. */
export const violations = (state: State): ReadonlyArray<string> => {
  const found: Array<string> = []
  const held = new Map<string, { reserved: number; sessions: number; exclusive: boolean }>()
  const charged = new Map<string, number>()

  for (const session of state.sessions.values()) {
    const { placement } = session
    const inPlace = session.state === "placed" || session.state === "ready" || session.state === "active"
    if (inPlace && placement === undefined) found.push(`session ${session.session} is ${session.state} nowhere`)
    if (session.state === "queued" && placement !== undefined) found.push(`session ${session.session} waits in place`)
    if (session.state === "queued" && !state.queue.has(session.session)) {
      found.push(`session ${session.session} waits outside the queue`)
    }
    if (session.state === "ended" && placement !== undefined) {
      found.push(`session ${session.session} has ended and still holds GPUs`)
    }
    if (session.state === "ended" && !state.ended.has(session.session)) {
      found.push(`session ${session.session} has ended and is not counted so`)
    }
    if (placement === undefined) continue
    charged.set(session.principal, (charged.get(session.principal) ?? 0) + 1)
    if (state.hosts.get(placement.host)?.sessions.has(session.session) !== true) {
      found.push(`session ${session.session} is not charged to ${placement.host}`)
    }
    for (const grant of placement.gpus) {
      const key = `${placement.host} ${grant.uuid}`
      const sum = held.get(key) ?? { reserved: 0, sessions: 0, exclusive: false }
      held.set(key, {
        reserved: sum.reserved + grant.vram,
        sessions: sum.sessions + 1,
        exclusive: sum.exclusive || grant.exclusive
      })
    }
  }

  for (const [principal, count] of charged) {
    if (state.charged.get(principal as never) !== count)
      found.push(`${principal} is not charged with ${count} sessions`)
  }
  if (state.charged.size !== charged.size) found.push("principals are charged who hold nothing")

  for (const host of state.hosts.values()) {
    for (const { exclusive, gpu, reserved, sessions } of host.gpus.values()) {
      const sum = held.get(`${host.host} ${gpu.uuid}`) ?? { reserved: 0, sessions: 0, exclusive: false }
      const name = `GPU ${gpu.uuid} of ${host.host}`
      if (reserved > gpu.vram) found.push(`${name} has ${reserved} of ${gpu.vram} bytes reserved`)
      if (exclusive && sessions > 1) found.push(`${name} is exclusive to ${sessions} sessions`)
      if (reserved !== sum.reserved || sessions !== sum.sessions || exclusive !== sum.exclusive) {
        found.push(`${name} is charged otherwise than its sessions say`)
      }
    }
  }
  for (const id of state.queue) {
    if (state.sessions.get(id)?.state !== "queued") found.push(`${id} is in the queue and does not wait`)
  }
  return found
}

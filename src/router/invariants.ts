/**
 * What must hold of every state, at every commit: checked by the audit and by the property tests.
 */
import type { HostId } from "../protocol/ids.ts"
import type { Host, Session, State } from "./state.ts"

/** Sentences about what is broken; none when all is well. */
export const violations = (state: State): ReadonlyArray<string> => [
  ...[...state.sessions.values()].flatMap((session) => sessionViolations(state, session)),
  ...[...state.hosts.values()].flatMap((host) => hostViolations(state, host)),
  ...principalViolations(state),
  ...[...state.queue].flatMap((id) =>
    state.sessions.get(id)?.state === "queued" ? [] : [`${id} is in the queue and does not wait`]
  )
]

/** A session is where its state says, and counted there. */
export const sessionViolations = (state: State, session: Session): ReadonlyArray<string> => {
  const { placement, session: id } = session
  const inPlace = session.state === "placed" || session.state === "ready" || session.state === "active"
  const charged = placement !== undefined && state.hosts.get(placement.host)?.sessions.has(id) === true
  const rules: ReadonlyArray<readonly [boolean, string]> = [
    [inPlace && placement === undefined, `is ${session.state} nowhere`],
    [session.state === "queued" && placement !== undefined, "waits and holds GPUs"],
    [session.state === "queued" && !state.queue.has(id), "waits outside the queue"],
    [session.state === "ended" && placement !== undefined, "has ended and still holds GPUs"],
    [session.state === "ended" && !state.ended.has(id), "has ended and is not counted so"],
    [placement !== undefined && !charged, `is not charged to ${placement?.host}`]
  ]
  return rules.flatMap(([broken, what]) => (broken ? [`session ${id} ${what}`] : []))
}

interface Sum {
  reserved: number
  sessions: number
  exclusive: boolean
}

/** A host's GPUs are charged with what its sessions hold, and with no more than they have. */
export const hostViolations = (state: State, host: Host): ReadonlyArray<string> => {
  const sums = new Map<string, Sum>()
  for (const id of host.sessions) {
    for (const grant of heldOn(state, host.host, id)) {
      const sum = sums.get(grant.uuid) ?? { reserved: 0, sessions: 0, exclusive: false }
      sums.set(grant.uuid, {
        reserved: sum.reserved + grant.vram,
        sessions: sum.sessions + 1,
        exclusive: sum.exclusive || grant.exclusive
      })
    }
  }
  return [...host.gpus.values()].flatMap(({ exclusive, gpu, reserved, sessions }) => {
    const sum = sums.get(gpu.uuid) ?? { reserved: 0, sessions: 0, exclusive: false }
    const same = reserved === sum.reserved && sessions === sum.sessions && exclusive === sum.exclusive
    const rules: ReadonlyArray<readonly [boolean, string]> = [
      [reserved > gpu.vram, `has ${reserved} of ${gpu.vram} bytes reserved`],
      [exclusive && sessions > 1, `is exclusive to ${sessions} sessions`],
      [!same, "is charged otherwise than its sessions say"]
    ]
    return rules.flatMap(([broken, what]) => (broken ? [`GPU ${gpu.uuid} of ${host.host} ${what}`] : []))
  })
}

const heldOn = (state: State, host: HostId, id: Session["session"]) => {
  const placement = state.sessions.get(id)?.placement
  return placement?.host === host ? placement.gpus : []
}

/** Principals are charged with the sessions that they hold. */
const principalViolations = (state: State): ReadonlyArray<string> => {
  const held = new Map<string, number>()
  for (const { placement, principal } of state.sessions.values()) {
    if (placement !== undefined) held.set(principal, (held.get(principal) ?? 0) + 1)
  }
  const wrong = [...held].filter(([principal, count]) => state.charged.get(principal as Session["principal"]) !== count)
  return [
    ...wrong.map(([principal, count]) => `${principal} is not charged with ${count} sessions`),
    ...(held.size === state.charged.size ? [] : ["principals are charged who hold nothing"])
  ]
}

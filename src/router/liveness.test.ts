import { assert, describe, it } from "@effect/vitest"
import { genesis } from "../protocol/commit.ts"
import { type HostId, type Incarnation, mintIncarnation } from "../protocol/ids.ts"
import { HOST_SUSPECT, HOST_UNKNOWN } from "../protocol/limits.ts"
import { fold } from "./fold.ts"
import { Liveness } from "./liveness.ts"
import { emptyState, type State } from "./state.ts"

const hosts = (count: number): { state: State; ids: ReadonlyArray<readonly [HostId, Incarnation]> } => {
  const state = emptyState(1, genesis("TEST"))
  const ids = Array.from({ length: count }, (_, n) => [`gpu${n}` as HostId, mintIncarnation()] as const)
  for (const [host, incarnation] of ids) {
    fold(state, {
      _tag: "HostJoined",
      aggregate: "host",
      host,
      incarnation,
      version: "0.1.0",
      endpoint: { host, port: 1 },
      gpus: [],
      labels: {},
      sessions: []
    })
    state.hosts.get(host)!.reported = 1
  }
  return { state, ids }
}

const silence = (tag: "HostSuspect" | "HostUnknown", host: HostId, incarnation: Incarnation) =>
  ({ _tag: tag, aggregate: "host", host, incarnation }) as const

describe("silence", () => {
  it("makes a host suspect, then unknown, and its return is noticed", () => {
    const { ids, state } = hosts(1)
    const [host, incarnation] = ids[0]!
    const liveness = new Liveness(0)
    const tags = (now: number) => liveness.commands(state, now, now).map(({ _tag }) => _tag)
    liveness.heartbeat({ host, incarnation, n: 1, sessions: 0 }, 1_000)
    assert.deepStrictEqual(tags(1_000 + HOST_SUSPECT), [])
    assert.deepStrictEqual(tags(1_001 + HOST_SUSPECT), ["host.suspect"])
    fold(state, silence("HostSuspect", host, incarnation))
    assert.deepStrictEqual(tags(1_001 + HOST_SUSPECT), [])
    assert.deepStrictEqual(tags(1_001 + HOST_UNKNOWN), ["host.unknown"])
    fold(state, silence("HostUnknown", host, incarnation))
    liveness.heartbeat({ host, incarnation, n: 1, sessions: 0 }, 20_000)
    assert.deepStrictEqual(tags(20_100), ["host.seen"])
  })

  it("is counted from when the router began or came back, not from before", () => {
    const { state } = hosts(1)
    const liveness = new Liveness(50_000)
    assert.deepStrictEqual(liveness.commands(state, 50_000 + HOST_SUSPECT, 0), [])
    liveness.restart(60_000)
    assert.deepStrictEqual(liveness.commands(state, 60_000 + HOST_SUSPECT, 0), [])
    assert.strictEqual(liveness.commands(state, 60_001 + HOST_SUSPECT, 0).length, 1)
  })

  it("of most hosts at once makes the router doubt itself and wait longer", () => {
    const { ids, state } = hosts(4)
    const liveness = new Liveness(0)
    const [host, incarnation] = ids[0]!
    const now = HOST_SUSPECT * 2
    liveness.heartbeat({ host, incarnation, n: 1, sessions: 0 }, now)
    assert.deepStrictEqual(liveness.commands(state, now, now), [])
    assert.strictEqual(liveness.commands(state, HOST_SUSPECT * 3 + 1, now).length, 3)
  })

  it("does not end at the heartbeat of another incarnation", () => {
    const { ids, state } = hosts(1)
    const [host, incarnation] = ids[0]!
    fold(state, silence("HostSuspect", host, incarnation))
    const liveness = new Liveness(0)
    liveness.heartbeat({ host, incarnation: mintIncarnation(), n: 1, sessions: 0 }, 10)
    assert.deepStrictEqual(liveness.commands(state, 20, 20), [])
  })
})

describe("missing reports", () => {
  it("are asked for when they have been missing for a while, from the first one on", () => {
    const { ids, state } = hosts(1)
    const [host, incarnation] = ids[0]!
    const liveness = new Liveness(0)
    liveness.heartbeat({ host, incarnation, n: 3, sessions: 0 }, 0)
    assert.deepStrictEqual(liveness.resends(state, 0), [])
    assert.deepStrictEqual(liveness.resends(state, 2_000), [{ host, incarnation, from: 2 }])
    assert.deepStrictEqual(liveness.resends(state, 2_500), [])
    state.hosts.get(host)!.reported = 3
    assert.deepStrictEqual(liveness.resends(state, 9_000), [])
  })

  it("of a host that never joined are asked for from the beginning", () => {
    const { state } = hosts(0)
    const liveness = new Liveness(0)
    const incarnation = mintIncarnation()
    liveness.heartbeat({ host: "new" as HostId, incarnation, n: 1, sessions: 0 }, 0)
    liveness.resends(state, 0)
    assert.deepStrictEqual(liveness.resends(state, 5_000), [{ host: "new" as HostId, incarnation, from: 1 }])
  })
})

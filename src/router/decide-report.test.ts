import { assert, describe, it } from "@effect/vitest"
import { NO_USAGE } from "../protocol/gpu.ts"
import { type HostId, type Incarnation, mintCommandId, mintIncarnation, type SessionId } from "../protocol/ids.ts"
import type { ReportBody } from "../protocol/reports.ts"
import { fold, reportStanding } from "./fold.ts"
import { FORGOTTEN_AT_ONCE, REMEMBERED } from "./state.ts"
import { gpu } from "./testing.ts"
import { HOST, Scene } from "./testing-scene.ts"

describe("a host", () => {
  const about = (scene: Scene) => ({
    id: mintCommandId(),
    host: HOST,
    incarnation: scene.state.hosts.get(HOST)!.incarnation,
    seen: 0
  })

  it("gets no new sessions while it is silent, and keeps those it has", () => {
    const scene = new Scene()
    scene.join(HOST, 2)
    const session = scene.ready()
    assert.deepStrictEqual(scene.tags({ _tag: "host.unknown", ...about(scene) }), [], "first it is suspect")
    assert.deepStrictEqual(scene.tags({ _tag: "host.suspect", ...about(scene) }), ["HostSuspect"])
    assert.strictEqual(scene.refusal(scene.request().command)._tag, "NoCapacity")
    assert.deepStrictEqual(scene.tags({ _tag: "host.unknown", ...about(scene) }), ["HostUnknown"])
    assert.strictEqual(scene.session(session).placement?.host, HOST)
    assert.deepStrictEqual(scene.tags({ _tag: "host.seen", ...about(scene) }), ["HostRecovered"])
    assert.deepStrictEqual(scene.tags(scene.request().command), ["SessionRequested", "SessionPlaced"])
  })

  it("that comes back as a new incarnation has lost its sessions, except those it names", () => {
    const scene = new Scene()
    scene.join(HOST, 2)
    const lost = scene.ready()
    const kept = scene.ready()
    scene.report(HOST, {
      _tag: "host.joined",
      version: "0.1.0",
      endpoint: { host: "h", port: 1 },
      gpus: [gpu(0), gpu(1)],
      labels: {},
      sessions: [{ session: kept, attempt: 1 }]
    })
    assert.deepStrictEqual(scene.tags({ _tag: "host.sweep", id: mintCommandId(), host: HOST }), ["SessionEnded"])
    assert.strictEqual(scene.session(lost).reason, "host-lost")
    assert.strictEqual(scene.session(kept).state, "ready")
    assert.deepStrictEqual(scene.tags({ _tag: "host.sweep", id: mintCommandId(), host: HOST }), [])
  })

  it("that has left ends what it still had, and is offered nothing", () => {
    const scene = new Scene()
    scene.join(HOST, 1)
    const session = scene.ready()
    assert.deepStrictEqual(scene.report(HOST, { _tag: "host.draining" }), ["HostDraining"])
    assert.deepStrictEqual(scene.report(HOST, { _tag: "host.left" }), ["HostLeft"])
    assert.deepStrictEqual(scene.tags({ _tag: "host.sweep", id: mintCommandId(), host: HOST }), ["SessionEnded"])
    assert.strictEqual(scene.session(session).reason, "host-left")
    assert.strictEqual(scene.refusal(scene.request().command)._tag, "NoHost")
  })

  it("that declared a deadline has ended its sessions once it is unknown for longer", () => {
    const scene = new Scene()
    const joined = { version: "0.1.0", endpoint: { host: "h", port: 1 }, gpus: [gpu(0)], labels: {}, sessions: [] }
    scene.report(HOST, { _tag: "host.joined", ...joined, fenceAfterMs: 5_000 })
    scene.ready()
    scene.do({ _tag: "host.suspect", ...about(scene) })
    scene.do({ _tag: "host.unknown", ...about(scene) })
    assert.deepStrictEqual(scene.tags({ _tag: "host.fenced", ...about(scene) }), [])
    scene.state.now = 6_000
    assert.deepStrictEqual(scene.tags({ _tag: "host.fenced", ...about(scene) }), ["SessionEnded"])
  })

  it("is not believed about sessions, processes and attempts that are not its own", () => {
    const scene = new Scene()
    scene.join(HOST, 1)
    scene.join("gpu2" as HostId, 0)
    const session = scene.ready()
    const gpu2 = "gpu2" as HostId
    assert.deepStrictEqual(scene.report(gpu2, { _tag: "process.attached", session, process: 1 }), [])
    const ended = { session, usage: NO_USAGE } as const
    assert.deepStrictEqual(
      scene.report(gpu2, { _tag: "session.ended", attempt: 1, reason: "client-exit", ...ended }),
      []
    )
    assert.deepStrictEqual(
      scene.report(HOST, { _tag: "session.ended", attempt: 2, reason: "client-exit", ...ended }),
      []
    )
    assert.deepStrictEqual(scene.report(HOST, { _tag: "process.ended", process: 1, reason: "exit", ...ended }), [])
    assert.strictEqual(scene.session(session).state, "ready")
  })
})

describe("processes", () => {
  it("make a session active, and their usage adds up", () => {
    const scene = new Scene()
    scene.join(HOST, 1)
    const session = scene.ready()
    const usage = (n: number) => ({ calls: n, bytesIn: n, bytesOut: n, launches: n, peakMemory: n })
    scene.report(HOST, { _tag: "process.attached", session, process: 1 })
    assert.deepStrictEqual(scene.report(HOST, { _tag: "process.attached", session, process: 1 }), [])
    scene.report(HOST, { _tag: "process.attached", session, process: 2 })
    assert.strictEqual(scene.session(session).state, "active")
    scene.report(HOST, {
      _tag: "process.ended",
      session,
      process: 1,
      reason: "exit",
      exit: { code: 0 },
      usage: usage(2)
    })
    const error = { code: 700, name: "CUDA_ERROR_ILLEGAL_ADDRESS" }
    scene.report(HOST, { _tag: "process.ended", session, process: 2, reason: "error", error, usage: usage(3) })
    assert.deepStrictEqual(scene.session(session).usage, {
      calls: 5,
      bytesIn: 5,
      bytesOut: 5,
      launches: 5,
      peakMemory: 3
    })
    assert.strictEqual(scene.session(session).processes, 2)
    scene.report(HOST, { _tag: "session.interrupted", session })
    assert.isTrue(scene.session(session).interrupted)
    scene.report(HOST, { _tag: "session.resumed", session })
    assert.isFalse(scene.session(session).interrupted)
  })
})

describe("reports", () => {
  it("are taken in once and in order, incarnation by incarnation", () => {
    const scene = new Scene()
    const body = { _tag: "host.draining" } as const
    const standing = (incarnation: Incarnation, n: number, tag: ReportBody = body) =>
      reportStanding(scene.state, { host: HOST, incarnation, n, body: tag })
    assert.strictEqual(standing(mintIncarnation(), 1), "early", "a host begins with joining")
    scene.join(HOST, 1)
    const { incarnation: old } = scene.reported.get(HOST)!
    assert.strictEqual(standing(old, 1), "seen")
    assert.strictEqual(standing(old, 2), "next")
    assert.strictEqual(standing(old, 3), "early")
    scene.join(HOST, 1)
    assert.strictEqual(standing(old, 2), "seen", "what an incarnation that is over still says")
  })
})

describe("the memory of ended sessions", () => {
  it("is bounded, and forgets the oldest", () => {
    const scene = new Scene()
    const first = scene.request({ waitMs: 500 })
    scene.do(first.command)
    const { session } = first.body
    const requested = scene.session(session)
    for (let n = 0; n < REMEMBERED + FORGOTTEN_AT_ONCE; n++) {
      const id = n.toString(16).padStart(32, "0") as SessionId
      scene.state.sessions.set(id, { ...requested, session: id, excluded: new Map(), running: new Set() })
      fold(scene.state, {
        _tag: "SessionEnded",
        aggregate: "session",
        session: id,
        reason: "cancelled",
        usage: NO_USAGE
      })
    }
    assert.strictEqual(scene.state.ended.size, REMEMBERED)
    assert.isFalse(scene.state.sessions.has("0".repeat(32) as SessionId))
    assert.strictEqual(scene.state.sessions.size, REMEMBERED + 1)
  })
})

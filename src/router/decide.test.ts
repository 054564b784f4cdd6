import { assert, describe, it } from "@effect/vitest"
import type { Command } from "../protocol/commands.ts"
import { genesis } from "../protocol/commit.ts"
import type { Event } from "../protocol/events.ts"
import { NO_USAGE } from "../protocol/gpu.ts"
import { type HostId, type Incarnation, mintCommandId, mintIncarnation, type SessionId } from "../protocol/ids.ts"
import { HOST_BACKOFF } from "../protocol/limits.ts"
import type { ReportBody } from "../protocol/reports.ts"
import type { Principal } from "../protocol/tokens.ts"
import { decide, type Rejection } from "./decide.ts"
import { decideReport } from "./decide-report.ts"
import { fold, foldEntry, reportStanding } from "./fold.ts"
import { violations } from "./invariants.ts"
import { emptyState, FORGOTTEN_AT_ONCE, REMEMBERED, type State } from "./state.ts"
import { gpu, requestBody } from "./testing.ts"

const DEV = "dev" as Principal
const HOST = "gpu1" as HostId

/** A site at a moment, driven by commands and reports. */
class Scene {
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

describe("a request", () => {
  it("is placed at once when a GPU is free, and is not a second session when repeated", () => {
    const scene = new Scene()
    scene.join(HOST, 2)
    const { command } = scene.request()
    assert.deepStrictEqual(scene.tags(command), ["SessionRequested", "SessionPlaced"])
    assert.deepStrictEqual(scene.tags(command), [])
    assert.strictEqual(scene.state.sessions.size, 1)
  })

  it("is rejected when it would not wait, and leaves nothing behind", () => {
    const scene = new Scene()
    assert.strictEqual(scene.refusal(scene.request().command)._tag, "NoHost")
    scene.join(HOST, 1)
    const refusal = scene.refusal(scene.request({ gpus: { count: 2 } }).command)
    assert.deepStrictEqual(refusal, { _tag: "NoCapacity", why: { hosts: 1, rejected: { "fewer GPUs": 1 }, best: [] } })
    assert.strictEqual(scene.state.sessions.size, 0)
  })

  it("waits when it will, also for a host that is not there yet", () => {
    const scene = new Scene()
    const { body, command } = scene.request({ waitMs: 500 })
    assert.deepStrictEqual(scene.tags(command), ["SessionRequested", "SessionQueued"])
    assert.strictEqual(scene.session(body.session).queuedUntil, 1_500)
    scene.join(HOST, 1)
    assert.deepStrictEqual(scene.tags({ _tag: "queue.place", id: mintCommandId() }), ["SessionPlaced"])
    assert.deepStrictEqual(scene.tags({ _tag: "queue.place", id: mintCommandId() }), [])
  })

  it("is rejected when it contradicts itself or takes another's id", () => {
    const scene = new Scene()
    scene.join(HOST, 1)
    assert.strictEqual(
      scene.refusal(scene.request({ gpus: { count: 1, vram: 1, share: 0.5 } }).command)._tag,
      "BadRequest"
    )
    assert.strictEqual(scene.refusal(scene.request({ gpus: { count: 2, uuid: ["GPU-0"] } }).command)._tag, "BadRequest")
    const { command } = scene.request()
    scene.do(command)
    assert.strictEqual(scene.refusal({ ...command, principal: "eve" as Principal })._tag, "SessionConflict")
  })
})

describe("the queue", () => {
  it("is served to those who hold least, then by age", () => {
    const scene = new Scene()
    scene.join(HOST, 1)
    const rich = scene.ready()
    const again = scene.request({ waitMs: 500 })
    const poor = scene.request({ waitMs: 500 }, "poor" as Principal)
    scene.do(again.command)
    scene.do(poor.command)
    scene.join("gpu2" as HostId, 1)
    const [placed] = scene.do({ _tag: "queue.place", id: mintCommandId() })
    assert.strictEqual(placed?._tag === "SessionPlaced" && placed.session, poor.body.session)
    assert.strictEqual(scene.session(rich).state, "ready")
  })

  it("lets a small session overtake one that does not fit", () => {
    const scene = new Scene()
    const big = scene.request({ waitMs: 500, gpus: { count: 2 } })
    const small = scene.request({ waitMs: 500 })
    scene.do(big.command)
    scene.do(small.command)
    scene.join(HOST, 1)
    const [placed] = scene.do({ _tag: "queue.place", id: mintCommandId() })
    assert.strictEqual(placed?._tag === "SessionPlaced" && placed.session, small.body.session)
  })

  it("is left when the wait is over, not before, and when the client is gone", () => {
    const scene = new Scene()
    const one = scene.request({ waitMs: 500 })
    const two = scene.request({ waitMs: 500 })
    scene.do(one.command)
    scene.do(two.command)
    const expire = { _tag: "session.expire", session: one.body.session, reason: "wait-over" } as const
    assert.deepStrictEqual(scene.tags({ ...expire, id: mintCommandId() }), [])
    scene.state.now = 1_500
    assert.deepStrictEqual(scene.tags({ ...expire, id: mintCommandId() }), ["SessionEnded"])
    assert.deepStrictEqual(scene.tags({ ...expire, id: mintCommandId() }), [])
    const lost = { ...expire, session: two.body.session, reason: "client-lost", id: mintCommandId() } as const
    assert.deepStrictEqual(scene.tags(lost), ["SessionEnded"])
  })
})

describe("a refused placement", () => {
  const refused = (session: SessionId, attempt: number): Command => ({
    _tag: "session.refused",
    id: mintCommandId(),
    session,
    attempt,
    reason: "failed"
  })

  it("leaves the host out for a while and tries the next", () => {
    const scene = new Scene()
    scene.join(HOST, 1)
    scene.join("gpu2" as HostId, 1)
    const { body, command } = scene.request()
    scene.do(command)
    const first = scene.session(body.session).placement!.host
    assert.deepStrictEqual(scene.tags(refused(body.session, 1)), ["PlacementRefused", "SessionPlaced"])
    assert.notStrictEqual(scene.session(body.session).placement!.host, first)
    assert.strictEqual(scene.session(body.session).attempt, 2)
    assert.strictEqual(scene.session(body.session).excluded.get(first), 1_000 + HOST_BACKOFF)
    assert.deepStrictEqual(scene.tags(refused(body.session, 1)), [], "an old attempt's refusal means nothing")
  })

  it("ends a session that would not wait, and queues one that will", () => {
    const scene = new Scene()
    scene.join(HOST, 2)
    const hasty = scene.request()
    const patient = scene.request({ waitMs: 500 })
    scene.do(hasty.command)
    scene.do(patient.command)
    assert.deepStrictEqual(scene.tags(refused(hasty.body.session, 1)), ["PlacementRefused", "SessionEnded"])
    assert.deepStrictEqual(scene.tags(refused(patient.body.session, 1)), ["PlacementRefused", "SessionQueued"])
    assert.strictEqual(scene.session(patient.body.session).queuedUntil, 1_500)
  })

  it("is what a prepare is worth whose host has come back as another incarnation", () => {
    const scene = new Scene()
    scene.join(HOST, 1)
    const { body, command } = scene.request()
    scene.do(command)
    scene.join(HOST, 1)
    const prepared = { _tag: "session.prepared", id: mintCommandId(), session: body.session, attempt: 1 } as const
    assert.deepStrictEqual(scene.tags(prepared), ["PlacementRefused", "SessionEnded"])
  })
})

describe("a release", () => {
  const release = (session: SessionId, options = {}): Command => ({
    _tag: "session.release",
    principal: DEV,
    id: mintCommandId(),
    session,
    ...options
  })

  it("asks the host, and the session ends with its report for the reason of the release", () => {
    const scene = new Scene()
    scene.join(HOST, 1)
    const session = scene.ready()
    assert.deepStrictEqual(scene.tags(release(session)), ["SessionEnding"])
    assert.deepStrictEqual(scene.tags(release(session)), [])
    assert.strictEqual(scene.session(session).placement?.host, HOST, "it stays charged until the host has ended it")
    const ended = { _tag: "session.ended", session, attempt: 1, reason: "client-exit", usage: NO_USAGE } as const
    assert.deepStrictEqual(scene.report(HOST, ended), ["SessionEnded"])
    assert.strictEqual(scene.session(session).reason, "released")
    assert.deepStrictEqual(scene.report(HOST, ended), [], "it ends once")
  })

  it("cancels what waits at once, and is nobody else's business", () => {
    const scene = new Scene()
    const { body, command } = scene.request({ waitMs: 500 })
    scene.do(command)
    assert.strictEqual(scene.refusal(release(body.session, { principal: "eve" }))._tag, "NoSuchSession")
    assert.deepStrictEqual(scene.tags(release(body.session)), ["SessionEnded"])
    assert.strictEqual(scene.session(body.session).reason, "cancelled")
  })

  it("ends at once what the host says it has not, if the answer is of the incarnation that should have it", () => {
    const scene = new Scene()
    scene.join(HOST, 1)
    const session = scene.ready()
    scene.do(release(session))
    const gone = { _tag: "session.gone", id: mintCommandId(), session, attempt: 1 } as const
    assert.deepStrictEqual(scene.tags({ ...gone, incarnation: mintIncarnation() }), [])
    const { incarnation } = scene.session(session).placement!
    assert.deepStrictEqual(scene.tags({ ...gone, incarnation }), ["SessionEnded"])
  })

  it("can be forced only while the host is unknown", () => {
    const scene = new Scene()
    scene.join(HOST, 1)
    const session = scene.ready()
    assert.strictEqual(scene.refusal(release(session, { force: true }))._tag, "BadRequest")
    const { incarnation } = scene.state.hosts.get(HOST)!
    for (const _tag of ["host.suspect", "host.unknown"] as const) {
      scene.do({ _tag, id: mintCommandId(), host: HOST, incarnation, seen: 0 })
    }
    assert.deepStrictEqual(scene.tags(release(session, { force: true })), ["SessionEnded"])
    assert.strictEqual(scene.session(session).reason, "administrator")
  })
})

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

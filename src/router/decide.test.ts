import { assert, describe, it } from "@effect/vitest"
import type { Command } from "../protocol/commands.ts"
import { NO_USAGE } from "../protocol/gpu.ts"
import { type HostId, mintCommandId, mintIncarnation, type SessionId } from "../protocol/ids.ts"
import { HOST_BACKOFF } from "../protocol/limits.ts"
import type { Principal } from "../protocol/tokens.ts"
import { DEV, HOST, Scene } from "./testing-scene.ts"

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

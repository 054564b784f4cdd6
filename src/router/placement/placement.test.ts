import { assert, describe, it } from "@effect/vitest"
import type { GpuRequest, Labels } from "../../protocol/gpu.ts"
import type { HostId, Incarnation } from "../../protocol/ids.ts"
import type { Host } from "../state.ts"
import { GIB, gpu } from "../testing.ts"
import { type Ask, place } from "./placement.ts"

const host = (name: string, gpus: number, options: Partial<Host> = {}): Host => ({
  host: name as HostId,
  incarnation: "0".repeat(32) as Incarnation,
  past: [],
  reported: 1,
  version: "0.1.0",
  endpoint: { host: name, port: 1 },
  labels: {},
  fenceAfterMs: undefined,
  joinedAt: 0,
  silence: "none",
  draining: false,
  left: false,
  gpus: new Map(
    Array.from({ length: gpus }, (_, n) => [`GPU-${n}`, { gpu: gpu(n), reserved: 0, sessions: 0, exclusive: false }])
  ),
  sessions: new Set(),
  ...options
})

const ask = (request: GpuRequest, labels: Labels = {}): Ask => ({ request, labels, excluded: new Map(), now: 1_000 })

/** The chosen host and GPUs, or what turned the hosts away. */
const outcome = (hosts: ReadonlyArray<Host>, wanted: Ask) => {
  const found = place(hosts, wanted)
  return found._tag === "NotFound"
    ? found.why.rejected
    : [found.candidate.host.host, ...found.candidate.grants.map(({ uuid }) => uuid)]
}

describe("placement", () => {
  it("gives whole GPUs, as many as asked for, of one host", () => {
    assert.deepStrictEqual(outcome([host("a", 1), host("b", 3)], ask({ count: 2 })), ["b", "GPU-0", "GPU-1"])
    const found = place([host("a", 1)], ask({ count: 1 }))
    assert.deepStrictEqual(found._tag === "Found" && found.candidate.grants, [
      { uuid: "GPU-0", vram: 16 * GIB, exclusive: true }
    ])
  })

  it("says how many hosts each predicate turned away, and does not count those that left", () => {
    const hosts = [
      host("silent", 1, { silence: "suspect" }),
      host("draining", 1, { draining: true }),
      host("left", 1, { left: true }),
      host("small", 1),
      host("unlabelled", 2)
    ]
    const wanted = { ...ask({ count: 2 }, { zone: "a" }), excluded: new Map([["small" as HostId, 2_000]]) }
    const found = place(hosts, wanted)
    assert.strictEqual(found.why.hosts, 4)
    assert.deepStrictEqual(found.why.rejected, { silent: 1, draining: 1, "refused just now": 1, "other labels": 1 })
  })

  it("forgets an exclusion once its time has passed", () => {
    const wanted = ask({ count: 1 })
    assert.deepStrictEqual(outcome([host("a", 1)], { ...wanted, excluded: new Map([["a" as HostId, 999]]) }), [
      "a",
      "GPU-0"
    ])
  })

  it("finds GPUs by a part of their model, by UUID, by compute capability and by labels", () => {
    const hosts = [
      host("a", 2, { labels: { zone: "a" } }),
      host("b", 1, {
        gpus: new Map([["GPU-9", { gpu: gpu(9, 80 * GIB, "NVIDIA H200"), reserved: 0, sessions: 0, exclusive: false }]])
      })
    ]
    assert.deepStrictEqual(outcome(hosts, ask({ count: 1, model: "h200" })), ["b", "GPU-9"])
    assert.deepStrictEqual(outcome(hosts, ask({ count: 1, uuid: ["GPU-1"] })), ["a", "GPU-1"])
    assert.deepStrictEqual(outcome(hosts, ask({ count: 1 }, { zone: "a" })), ["a", "GPU-0"])
    assert.deepStrictEqual(outcome(hosts, ask({ count: 1, vram: 40 * GIB })), ["b", "GPU-9"])
    assert.deepStrictEqual(outcome(hosts, ask({ count: 1, computeCapability: "9.1" })), {
      "lower compute capability": 2
    })
    assert.deepStrictEqual(outcome(hosts, ask({ count: 1, computeCapability: "8.9" })).length, 2)
    assert.deepStrictEqual(outcome(hosts, ask({ count: 1, model: "a100" })), { "another GPU model": 2 })
  })

  it("packs shares onto GPUs in use and leaves whole ones free", () => {
    const gpus = host("a", 2).gpus
    Object.assign(gpus.get("GPU-1")!, { reserved: 4 * GIB, sessions: 1 })
    assert.deepStrictEqual(outcome([host("a", 2, { gpus })], ask({ count: 1, vram: 4 * GIB })), ["a", "GPU-1"])
    assert.deepStrictEqual(outcome([host("a", 2, { gpus })], ask({ count: 1 })), ["a", "GPU-0"])
    assert.deepStrictEqual(outcome([host("a", 2, { gpus })], ask({ count: 2 })), { "not enough free": 1 })
    assert.deepStrictEqual(outcome([host("a", 2, { gpus })], ask({ count: 1, share: 0.8 })), ["a", "GPU-0"])
  })

  it("never shares a GPU that one session has alone", () => {
    const gpus = host("a", 1).gpus
    Object.assign(gpus.get("GPU-0")!, { reserved: 16 * GIB, sessions: 1, exclusive: true })
    assert.deepStrictEqual(outcome([host("a", 1, { gpus })], ask({ count: 1, vram: 1 })), { "not enough free": 1 })
  })

  it("fills the fullest host, and decides ties by name", () => {
    const gpus = host("c", 4).gpus
    for (const n of [0, 1]) Object.assign(gpus.get(`GPU-${n}`)!, { reserved: 16 * GIB, sessions: 1, exclusive: true })
    assert.deepStrictEqual(outcome([host("b", 4), host("c", 4, { gpus }), host("a", 4)], ask({ count: 1 })), [
      "c",
      "GPU-2"
    ])
    assert.deepStrictEqual(outcome([host("b", 4), host("a", 4)], ask({ count: 1 })), ["a", "GPU-0"])
  })
})

import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { findNativeFiles } from "../native/files.ts"
import type { HostId } from "../protocol/ids.ts"
import { type GpuChoice, parseGpuChoice, softGpuUuid, takeInventory, workerEnvironment } from "./inventory.ts"
import { FakeAddon } from "./test/fake-addon.ts"

const host = "gpu-1" as HostId
const files = findNativeFiles({ JUICE_NATIVE_DIR: "/native" })
const real = (...uuids: ReadonlyArray<string>) => {
  const addon = new FakeAddon()
  addon.real = {
    driverText: "580.1",
    driverVersion: 13000,
    gpus: uuids.map((uuid) => ({ uuid, name: "H200", memoryTotal: 1, pciBusId: "0", computeCapability: "9.0" }))
  }
  return addon
}
const take = (choice: GpuChoice, addon: FakeAddon) => takeInventory({ choice, host, addon, files })

describe("the choice of GPUs", () => {
  it.effect("is a word, soft:N or UUIDs", () =>
    Effect.gen(function* () {
      assert.deepEqual(yield* parseGpuChoice("auto"), { _tag: "auto" })
      assert.deepEqual(yield* parseGpuChoice("soft"), { _tag: "soft", count: 1 })
      assert.deepEqual(yield* parseGpuChoice("soft:3"), { _tag: "soft", count: 3 })
      assert.deepEqual(yield* parseGpuChoice("GPU-1a, GPU-2b"), { _tag: "uuids", uuids: ["GPU-1a", "GPU-2b"] })
      for (const text of ["", "soft:0", "soft:x", "1", "GPU-1,all"]) {
        assert.match((yield* Effect.flip(parseGpuChoice(text))).message, /is not understood: use auto, all/)
      }
    })
  )
  it.effect("auto means the real ones, or a software GPU where there are none", () =>
    Effect.gen(function* () {
      assert.deepEqual((yield* take({ _tag: "auto" }, real("GPU-a", "GPU-b")))?.uuids, ["GPU-a", "GPU-b"])
      const software = yield* take({ _tag: "auto" }, new FakeAddon())
      assert.equal(software?.kind, "software")
      assert.equal(software?.driver, "/native/softgpu/libcuda.so.1")
    })
  )
  it.effect("of real GPUs fails where there are none, and tells of the software ones", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(take({ _tag: "all" }, new FakeAddon()))
      assert.match(error.message, /no NVIDIA driver.*--gpus soft:1/)
    })
  )
  it.effect("of UUIDs may shorten them as long as they name one GPU", () =>
    Effect.gen(function* () {
      const addon = real("GPU-aa1", "GPU-aa2", "GPU-b")
      assert.deepEqual((yield* take({ _tag: "uuids", uuids: ["GPU-AA2", "GPU-b"] }, addon))?.uuids, [
        "GPU-aa2",
        "GPU-b"
      ])
      assert.match((yield* Effect.flip(take({ _tag: "uuids", uuids: ["GPU-aa"] }, addon))).message, /several/)
      assert.match((yield* Effect.flip(take({ _tag: "uuids", uuids: ["GPU-c"] }, addon))).message, /has no GPU-c/)
    })
  )
})

describe("software GPUs", () => {
  it("keep their UUIDs, and differ by host and place", () => {
    assert.equal(softGpuUuid(host, 0), softGpuUuid(host, 0))
    assert.notEqual(softGpuUuid(host, 0), softGpuUuid(host, 1))
    assert.notEqual(softGpuUuid(host, 0), softGpuUuid("gpu-2" as HostId, 0))
    assert.match(softGpuUuid(host, 0), /^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
  })
  it.effect("reach their worker by name, and no variable that is not the driver's business does", () =>
    Effect.gen(function* () {
      const offer = (yield* take({ _tag: "soft", count: 2 }, new FakeAddon()))!
      const env = { PATH: "/bin", SECRET: "x", CUDA_VISIBLE_DEVICES: "7", JUICE_SOFTGPU_MEMORY: "2G", JUICE_NATS: "x" }
      assert.deepEqual(workerEnvironment(offer, [offer.uuids[1]!], env), {
        PATH: "/bin",
        JUICE_SOFTGPU_MEMORY: "2G",
        JUICE_SOFTGPU_UUIDS: offer.uuids.join(","),
        JUICE_SOFTGPU_DEVICES: "2",
        CUDA_DEVICE_ORDER: "PCI_BUS_ID",
        CUDA_VISIBLE_DEVICES: offer.uuids[1]!
      })
    })
  )
})

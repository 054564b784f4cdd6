import { assert, describe, it } from "vitest"
import { softGpuVariables } from "./soft.ts"

describe("what juice soft asks of the software GPU", () => {
  it("names every setting that is given", () => {
    assert.deepEqual(softGpuVariables({ gpus: 2, memory: 2 ** 32, watchdog: 5 }), {
      JUICE_SOFTGPU_DEVICES: "2",
      JUICE_SOFTGPU_MEMORY: "4294967296",
      JUICE_SOFTGPU_WATCHDOG: "5"
    })
  })
  it("leaves to the environment what is not, and takes 0 as an answer", () => {
    assert.deepEqual(softGpuVariables({}), {})
    assert.deepEqual(softGpuVariables({ gpus: 0, watchdog: 0 }), {
      JUICE_SOFTGPU_DEVICES: "0",
      JUICE_SOFTGPU_WATCHDOG: "0"
    })
  })
})

import type { GpuPredicate } from "./placement.ts"

/** The GPU's name contains the words asked for, in any case: "h200" finds "NVIDIA H200". */
export const model: GpuPredicate = {
  name: "another GPU model",
  test: ({ gpu }, { request }) =>
    request.model === undefined || gpu.model.toLowerCase().includes(request.model.toLowerCase())
}

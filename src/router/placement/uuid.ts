import type { GpuPredicate } from "./placement.ts"

/** The GPU is one of those named. */
export const uuid: GpuPredicate = {
  name: "other GPU UUIDs",
  test: ({ gpu }, { request }) => request.uuid === undefined || request.uuid.includes(gpu.uuid)
}

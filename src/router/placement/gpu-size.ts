import type { GpuPredicate } from "./placement.ts"

/** The GPU has as much memory as is asked of it, free or not. */
export const gpuSize: GpuPredicate = {
  name: "smaller GPUs",
  test: ({ gpu }, { request }) => request.vram === undefined || gpu.vram >= request.vram
}

import type { GpuPredicate } from "./placement.ts"

/** Any GPU will do: what fails it is a host with fewer GPUs than asked for. */
export const gpuCount: GpuPredicate = { name: "fewer GPUs", test: () => true }

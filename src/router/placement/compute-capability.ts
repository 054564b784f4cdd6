import type { GpuPredicate } from "./placement.ts"

const parts = (capability: string): readonly [number, number] => {
  const [major, minor] = capability.split(".").map(Number)
  return [major ?? 0, minor ?? 0]
}

/** The GPU has at least the compute capability asked for. */
export const computeCapability: GpuPredicate = {
  name: "lower compute capability",
  test: ({ gpu }, { request }) => {
    if (request.computeCapability === undefined) return true
    const [major, minor] = parts(gpu.computeCapability)
    const [wantedMajor, wantedMinor] = parts(request.computeCapability)
    return major > wantedMajor || (major === wantedMajor && minor >= wantedMinor)
  }
}

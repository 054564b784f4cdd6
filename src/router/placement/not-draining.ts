import type { HostPredicate } from "./placement.ts"

/** A draining host only finishes what it has. */
export const notDraining: HostPredicate = { name: "draining", test: (host) => !host.draining }

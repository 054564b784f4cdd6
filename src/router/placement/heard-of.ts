import type { HostPredicate } from "./placement.ts"

/** A host that has fallen silent gets no new sessions. */
export const heardOf: HostPredicate = { name: "silent", test: (host) => host.silence === "none" }

import type { HostPredicate } from "./placement.ts"

/** The host has every label asked for, with the same value. */
export const labels: HostPredicate = {
  name: "other labels",
  test: (host, ask) => Object.entries(ask.labels).every(([name, value]) => host.labels[name] === value)
}

import type { HostPredicate } from "./placement.ts"

/** A host that refused this session, or did not answer for it, is left out for a while. */
export const notExcluded: HostPredicate = {
  name: "refused just now",
  test: (host, ask) => (ask.excluded.get(host.host) ?? 0) <= ask.now
}

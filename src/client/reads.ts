/** Questions to a site, answered by any of its routers from its fold. */
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import { Nats } from "../nats/connection.ts"
import { ask } from "../nats/requests.ts"
import {
  answerCodec,
  HostsListQuery,
  HostsListResult,
  type HostView,
  SessionsListQuery,
  SessionsListResult,
  type SessionView
} from "../protocol/answers.ts"
import { type Codec, jsonCodec } from "../protocol/codec.ts"
import type { HostId, SessionId } from "../protocol/ids.ts"
import { MAX_PAGE, READ_TIMEOUT } from "../protocol/limits.ts"
import { type ReadVerb, readSubject } from "../protocol/subjects.ts"
import type { Site } from "../protocol/tokens.ts"
import { type LeaseError, siteError } from "./lease.ts"

const question = <Q, A>(
  verb: ReadVerb,
  query: Codec<Q>,
  result: Schema.Codec<A, unknown>
): ((site: Site, query: Q) => Effect.Effect<A, LeaseError, Nats>) => {
  const answer = answerCodec(`answer to ${verb}`, result)
  return Effect.fnUntraced(function* (site: Site, asked: Q) {
    const nats = yield* Nats
    const subject = readSubject(site, nats.principal, verb)
    const answered = yield* ask({ subject, query: asked, encode: query, decode: answer, timeout: READ_TIMEOUT }).pipe(
      Effect.catchTag("NatsError", (error) => Effect.fail(siteError(site, nats.servers, error)))
    )
    return answered._tag === "Ok" ? answered.value : yield* answered.error
  })
}

const hostsPage = question("hosts.list", jsonCodec("hosts query", HostsListQuery), HostsListResult)
const sessionsPage = question("sessions.list", jsonCodec("sessions query", SessionsListQuery), SessionsListResult)

/** The hosts of a site by name, and the router's time; with `left`, those that have gone as well. */
export const listHosts = Effect.fn("Reads.hosts")(function* (site: Site, options: { readonly left: boolean }) {
  const hosts: Array<HostView> = []
  let from: HostId | undefined
  while (true) {
    const page = yield* hostsPage(site, { left: options.left, ...(from === undefined ? {} : { from }) })
    hosts.push(...page.hosts)
    if (page.next === undefined) return { hosts, now: page.now }
    from = page.next
  }
})

/** The sessions of a site, newest first, at most `limit`; with `ended`, those that have ended as well. */
export const listSessions = Effect.fn("Reads.sessions")(function* (
  site: Site,
  options: { readonly ended: boolean; readonly limit: number }
) {
  const sessions: Array<SessionView> = []
  let before: SessionId | undefined
  while (true) {
    const limit = Math.min(MAX_PAGE, options.limit - sessions.length)
    const page = yield* sessionsPage(site, {
      ended: options.ended,
      limit,
      ...(before === undefined ? {} : { before })
    })
    sessions.push(...page.sessions)
    if (page.next === undefined || sessions.length >= options.limit) return { sessions, now: page.now }
    before = page.next
  }
})

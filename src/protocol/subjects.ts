/**
 * Every subject, stream and bucket name of Juice. Nothing else builds one.
 *
 *   juice.v1.<site>.api.<principal>.<noun>.<verb>    command to the leader          request/reply
 *   juice.v1.<site>.read.<principal>.<noun>.<verb>   question, any replica answers  request/reply
 *   juice.v1.<site>.log.<segment>                    commits                        stream JUICE_LOG_<SITE>_<SEGMENT>
 *   juice.v1.<site>.report.<host>                    reports of a host              stream JUICE_REPORTS_<SITE>
 *   juice.v1.<site>.heartbeat.<host>                 heartbeats of a host           core NATS
 *   juice.v1.<site>.host.<host>.<verb>               router to a host               request/reply
 *
 * Buckets: JUICE_LEASE_<SITE> (who should lead).
 */
import type { HostId } from "./ids.ts"
import { type Principal, principalFromToken, principalToken, type Site } from "./tokens.ts"

const root = (site: Site): string => `juice.v1.${site}`
const upper = (site: Site): string => site.toUpperCase()

/** Commands, as `<noun>.<verb>`: only the leader serves them. */
export const commandVerbs = ["session.request", "session.release"] as const
export type CommandVerb = (typeof commandVerbs)[number]

/** Questions, as `<noun>.<verb>`: every replica answers them from its fold. */
export const readVerbs = ["session.get", "sessions.list", "hosts.list", "router.status"] as const
export type ReadVerb = (typeof readVerbs)[number]

/** What the router asks of a host. */
export const hostVerbs = ["prepare", "release", "resend"] as const
export type HostVerb = (typeof hostVerbs)[number]

export const commandSubject = (site: Site, principal: Principal, verb: CommandVerb): string =>
  `${root(site)}.api.${principalToken(principal)}.${verb}`
/** What the leader subscribes to for one verb: all principals. */
export const commandPattern = (site: Site, verb: CommandVerb): string => `${root(site)}.api.*.${verb}`

export const readSubject = (site: Site, principal: Principal, verb: ReadVerb): string =>
  `${root(site)}.read.${principalToken(principal)}.${verb}`
/** What a replica subscribes to for one verb: all principals. */
export const readPattern = (site: Site, verb: ReadVerb): string => `${root(site)}.read.*.${verb}`
/** The queue group of the replicas: one of them answers each question. */
export const READ_QUEUE = "juice-read"

/** Who sent a command or question: the token at its fixed place; undefined when the subject is not one of these. */
export const principalOfSubject = (subject: string): Principal | undefined => {
  const token = subject.split(".")[4]
  return token === undefined ? undefined : principalFromToken(token)
}

export const logSubject = (site: Site, segment: number): string => `${root(site)}.log.${segment}`
export const logStream = (site: Site, segment: number): string => `JUICE_LOG_${upper(site)}_${segment}`
/** The first segment of every log. */
export const FIRST_SEGMENT = 1

export const reportSubject = (site: Site, host: HostId): string => `${root(site)}.report.${host}`
export const reportPattern = (site: Site): string => `${root(site)}.report.*`
export const reportStream = (site: Site): string => `JUICE_REPORTS_${upper(site)}`

export const heartbeatSubject = (site: Site, host: HostId): string => `${root(site)}.heartbeat.${host}`
export const heartbeatPattern = (site: Site): string => `${root(site)}.heartbeat.*`

export const hostSubject = (site: Site, host: HostId, verb: HostVerb): string => `${root(site)}.host.${host}.${verb}`

export const leaseBucket = (site: Site): string => `JUICE_LEASE_${upper(site)}`
/** The one key of the lease bucket. */
export const LEASE_KEY = "leader"

/** The micro-service name under which the leader registers its commands. */
export const SERVICE_NAME = "juice-router"

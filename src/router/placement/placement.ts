/**
 * Placement: filter, score, select.
 *
 *   hosts ──host predicates──▶ ──GPU predicates──▶ ──free capacity──▶ candidates ──scorer──▶ the best one
 *
 * Predicates and scorers are one small file each; registry.ts lists them in the order they run. A host is turned away
 * by the first predicate that it fails, and the counts of those are what an answer and the log say of the decision.
 */
import type { PlacementWhy } from "../../protocol/events.ts"
import type { GpuGrant, GpuRequest, Labels } from "../../protocol/gpu.ts"
import type { HostId } from "../../protocol/ids.ts"
import type { GpuCharge, Host } from "../state.ts"
import { gpuPredicates, hostPredicates, scorer } from "./registry.ts"

/** What is asked for. */
export interface Ask {
  readonly request: GpuRequest
  readonly labels: Labels
  /** Hosts to leave out, each until a time (ms). */
  readonly excluded: ReadonlyMap<HostId, number>
  readonly now: number
}

/** Whether a host may be considered at all. `name` completes "3 of 5: …". */
export interface HostPredicate {
  readonly name: string
  readonly test: (host: Host, ask: Ask) => boolean
}

/** Whether a GPU is of the kind asked for, free or not. */
export interface GpuPredicate {
  readonly name: string
  readonly test: (charge: GpuCharge, ask: Ask) => boolean
}

/** A host that fits, and the grants that it would give. */
export interface Candidate {
  readonly host: Host
  readonly grants: readonly [GpuGrant, ...Array<GpuGrant>]
}

/** The higher the better; equal scores go by the hosts' names. */
export interface Scorer {
  readonly name: string
  readonly score: (candidate: Candidate) => number
}

export type Found =
  | { readonly _tag: "Found"; readonly candidate: Candidate; readonly why: PlacementWhy }
  | { readonly _tag: "NotFound"; readonly why: PlacementWhy }

/** How many of the best candidates a decision records. */
const BEST = 3

interface Scored {
  readonly candidate: Candidate
  readonly score: number
}

const isBetter = (a: Scored, b: Scored): boolean =>
  a.score > b.score || (a.score === b.score && a.candidate.host.host < b.candidate.host.host)

/** Puts a candidate among the best few, if it is one of them. */
const keepBest = (best: Array<Scored>, scored: Scored): void => {
  const at = best.findIndex((other) => isBetter(scored, other))
  if (at !== -1) best.splice(at, 0, scored)
  else if (best.length < BEST) best.push(scored)
  if (best.length > BEST) best.pop()
}

/** The best host for what is asked, among those that have not left. */
export const place = (hosts: Iterable<Host>, ask: Ask): Found => {
  const rejected: Record<string, number> = {}
  const best: Array<Scored> = []
  let considered = 0
  for (const host of hosts) {
    if (host.left) continue
    considered += 1
    const fit = tryHost(host, ask)
    if (typeof fit === "string") rejected[fit] = (rejected[fit] ?? 0) + 1
    else keepBest(best, { candidate: fit, score: scorer.score(fit) })
  }
  const why: PlacementWhy = {
    hosts: considered,
    rejected,
    best: best.map(({ candidate, score }) => ({ host: candidate.host.host, score }))
  }
  const first = best[0]
  return first === undefined ? { _tag: "NotFound", why } : { _tag: "Found", candidate: first.candidate, why }
}

/** The grants that a host would give, or the name of the first predicate that it fails. */
const tryHost = (host: Host, ask: Ask): Candidate | string => {
  for (const predicate of hostPredicates) {
    if (!predicate.test(host, ask)) return predicate.name
  }
  // passed[i]: how many GPUs pass the predicates up to and with the i-th.
  const passed = new Array<number>(gpuPredicates.length).fill(0)
  const suitable: Array<GpuCharge> = []
  for (const charge of host.gpus.values()) {
    let at = 0
    while (at < gpuPredicates.length && gpuPredicates[at]!.test(charge, ask)) passed[at++]! += 1
    if (at === gpuPredicates.length) suitable.push(charge)
  }
  const failed = passed.findIndex((count) => count < ask.request.count)
  if (failed !== -1) return gpuPredicates[failed]!.name
  const grants = pick(suitable, ask.request)
  return grants === undefined ? "not enough free" : { host, grants }
}

/** As many of these GPUs as asked for, as they are free: whole ones in order, shares where most is taken already. */
const pick = (gpus: ReadonlyArray<GpuCharge>, request: GpuRequest): Candidate["grants"] | undefined => {
  const whole = request.vram === undefined && request.share === undefined
  const free = gpus.filter((charge) =>
    whole ? charge.sessions === 0 : !charge.exclusive && charge.gpu.vram - charge.reserved >= shareOf(charge, request)
  )
  if (free.length < request.count) return undefined
  if (!whole) free.sort((a, b) => b.reserved - a.reserved)
  const [first, ...rest] = free.slice(0, request.count).map(
    (charge): GpuGrant => ({
      uuid: charge.gpu.uuid,
      vram: whole ? charge.gpu.vram : shareOf(charge, request),
      exclusive: whole
    })
  )
  return first === undefined ? undefined : [first, ...rest]
}

/** The bytes of a GPU that a share takes. */
const shareOf = ({ gpu }: GpuCharge, request: GpuRequest): number =>
  request.vram ?? Math.max(1, Math.floor(gpu.vram * (request.share ?? 1)))

/**
 * Every predicate and scorer, in the order they run: what is cheap and turns most away first. A new one is a file and
 * a line here.
 */
import { computeCapability } from "./compute-capability.ts"
import { gpuCount } from "./gpu-count.ts"
import { gpuSize } from "./gpu-size.ts"
import { heardOf } from "./heard-of.ts"
import { labels } from "./labels.ts"
import { model } from "./model.ts"
import { notDraining } from "./not-draining.ts"
import { notExcluded } from "./not-excluded.ts"
import { pack } from "./pack.ts"
import type { GpuPredicate, HostPredicate, Scorer } from "./placement.ts"
import { uuid } from "./uuid.ts"

export const hostPredicates: ReadonlyArray<HostPredicate> = [heardOf, notDraining, notExcluded, labels]
export const gpuPredicates: ReadonlyArray<GpuPredicate> = [gpuCount, model, uuid, computeCapability, gpuSize]
export const scorer: Scorer = pack

/**
 * Who has how much of which GPU. The router's fold knows the same; the host keeps its own account, because it is the
 * one that must not promise what is not there.
 */
import type { Gpu, GpuGrant } from "../protocol/gpu.ts"
import type { SessionId } from "../protocol/ids.ts"

export class Ledger {
  readonly #gpus: ReadonlyMap<string, Gpu>
  readonly #grants = new Map<SessionId, ReadonlyArray<GpuGrant>>()

  constructor(gpus: ReadonlyArray<Gpu>) {
    this.#gpus = new Map(gpus.map((gpu) => [gpu.uuid, gpu]))
  }

  /** Takes the grants for the session, all or none. */
  reserve(session: SessionId, grants: ReadonlyArray<GpuGrant>): "ok" | "unknown-gpu" | "does-not-fit" {
    if (grants.some(({ uuid }) => !this.#gpus.has(uuid))) return "unknown-gpu"
    const uuids = new Set(grants.map(({ uuid }) => uuid))
    if (uuids.size !== grants.length || grants.some((grant) => !this.#fits(grant))) return "does-not-fit"
    this.#grants.set(session, grants)
    return "ok"
  }

  free(session: SessionId): void {
    this.#grants.delete(session)
  }

  #fits(grant: GpuGrant): boolean {
    const held = [...this.#grants.values()].flat().filter(({ uuid }) => uuid === grant.uuid)
    if (grant.exclusive) return held.length === 0
    const used = held.reduce((sum, { vram }) => sum + vram, 0)
    return !held.some(({ exclusive }) => exclusive) && used + grant.vram <= this.#gpus.get(grant.uuid)!.vram
  }
}

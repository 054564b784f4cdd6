import type { Scorer } from "./placement.ts"

/** Fills hosts up: the part of the host's GPU memory that would be taken, so that whole hosts stay free for others. */
export const pack: Scorer = {
  name: "pack",
  score: ({ grants, host }) => {
    let taken = grants.reduce((sum, { vram }) => sum + vram, 0)
    let all = 0
    for (const { gpu, reserved } of host.gpus.values()) {
      taken += reserved
      all += gpu.vram
    }
    return taken / all
  }
}

/** `juice hosts`: what GPUs a site has, and how much of each is taken. */
import * as Effect from "effect/Effect"
import { listHosts } from "../../client/reads.ts"
import type { HostView } from "../../protocol/answers.ts"
import { type Common, natsLayer, siteOf } from "../nats.ts"
import { bytesText, print, printJson, table, tell } from "../output.ts"

export interface HostsInput extends Common {
  readonly all: boolean
  readonly json: boolean
}

const rows = (host: HostView): ReadonlyArray<ReadonlyArray<string>> => {
  const name = `${host.endpoint.host}:${host.endpoint.port}`
  if (host.gpus.length === 0) return [[host.host, host.state, "-", "-", "-", "-", name]]
  return host.gpus.map((gpu, index) => [
    index === 0 ? host.host : "",
    index === 0 ? host.state : "",
    gpu.model,
    gpu.exclusive ? "all taken" : `${bytesText(gpu.vram - gpu.reserved)} of ${bytesText(gpu.vram)} free`,
    String(gpu.sessions),
    gpu.uuid,
    index === 0 ? name : ""
  ])
}

export const runHosts = Effect.fnUntraced(
  function* (input: HostsInput) {
    const { hosts, now } = yield* listHosts(yield* siteOf(input), { left: input.all })
    if (input.json) {
      printJson({
        now,
        hosts: hosts.map((host) => ({
          ...host,
          gpus: host.gpus.map(({ model, ...gpu }) => ({ name: model, ...gpu }))
        }))
      })
      return
    }
    if (hosts.length === 0) {
      tell(`the site "${input.site}" has no GPU host: start one with \`juice host\``)
      return
    }
    print(table(["HOST", "STATE", "GPU", "MEMORY", "SESSIONS", "UUID", "ENDPOINT"], hosts.flatMap(rows)))
  },
  (effect, input) => Effect.provide(effect, natsLayer(input, "juice hosts"))
)

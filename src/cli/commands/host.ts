/** `juice host`: offers this machine's GPUs to a site. */
import { homedir, hostname } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { parseGpuChoice } from "../../host/inventory.ts"
import { type HostConfig, type HostReady, runHost } from "../../host/service.ts"
import { loadAddon } from "../../native/addon.ts"
import type { NativeMissing } from "../../native/errors.ts"
import { findNativeFiles } from "../../native/files.ts"
import { HostId, hostIdFromName } from "../../protocol/ids.ts"
import { VERSION } from "../../protocol/version.ts"
import { Usage } from "../errors.ts"
import { checked, parseLabels } from "../flags.ts"
import { layerLog } from "../log.ts"
import { type Common, natsLayer, siteOf } from "../nats.ts"
import { bytesText } from "../output.ts"
import { catchStopSignals } from "../signals.ts"

/** What `juice host` and `juice up` say of the host in the same words. */
export interface HostFlags extends Common {
  readonly gpus: string
  readonly name: Option.Option<string>
  readonly dataDir: Option.Option<string>
  readonly dataPort: number
  readonly dataAddress: string
  readonly advertise: Option.Option<string>
  readonly insecurePlaintext: boolean
  readonly pool: number
  readonly label: Option.Option<string>
  readonly drainTimeout: number
}

export interface HostInput extends HostFlags {
  readonly json: boolean
}

/** Where services keep what must outlive them: XDG_STATE_HOME, else ~/.local/state. */
export const stateDirectory = (...path: ReadonlyArray<string>): string =>
  join(process.env.XDG_STATE_HOME || join(process.env.HOME || homedir(), ".local/state"), "juice", ...path)

/** "1 GPU: NVIDIA H200 (139 GiB)". */
export const offerText = ({ driver, gpus }: HostReady): string =>
  gpus.length === 0 ? "no GPU" : `${gpus.map((gpu) => `${gpu.model} (${bytesText(gpu.vram)})`).join(", ")}; ${driver}`

export const hostConfig = Effect.fnUntraced(function* (
  flags: HostFlags,
  running: Pick<HostConfig, "drain" | "onReady">
): Effect.fn.Return<HostConfig, Error> {
  const host = Option.isSome(flags.name) ? yield* checked("name", HostId, flags.name.value) : hostIdFromName(hostname())
  if (flags.dataPort < 0 || flags.dataPort > 65_535) {
    return yield* new Usage({ detail: `--data-port ${flags.dataPort}: write a port, or 0 for a free one` })
  }
  if (flags.pool < 0 || flags.pool > 32) return yield* new Usage({ detail: `--pool ${flags.pool}: write 0 to 32` })
  const files = findNativeFiles()
  const addon = yield* Effect.try({ try: () => loadAddon(files), catch: (error) => error as NativeMissing })
  return {
    site: yield* siteOf(flags),
    host,
    version: VERSION,
    gpus: yield* parseGpuChoice(flags.gpus),
    dataDirectory: Option.getOrElse(flags.dataDir, () => stateDirectory("host", host)),
    listen: { host: flags.dataAddress, port: flags.dataPort },
    ...(Option.isSome(flags.advertise) ? { advertise: flags.advertise.value } : {}),
    insecurePlaintext: flags.insecurePlaintext,
    labels: Option.isSome(flags.label) ? yield* parseLabels(flags.label.value) : {},
    poolSize: flags.pool,
    drainTimeout: flags.drainTimeout * 1_000,
    files,
    addon,
    env: process.env,
    ...running
  }
})

export const runHostCommand = Effect.fnUntraced(
  function* (input: HostInput) {
    const { first, second } = yield* catchStopSignals
    const config = yield* hostConfig(input, {
      drain: Effect.flatMap(first, (signal) => Effect.logInfo(`${signal}: stops; once more to stop at once`)),
      onReady: (ready) =>
        Effect.logInfo(
          `host ${ready.host} offers ${offerText(ready)} at ${ready.endpoint.host}:${ready.endpoint.port}`
        ).pipe(
          Effect.andThen(
            input.insecurePlaintext
              ? Effect.logWarning("the data between programs and GPUs is not encrypted: this network must be trusted")
              : Effect.void
          )
        )
    })
    yield* Effect.raceFirst(runHost(config), Effect.asVoid(second))
  },
  Effect.scoped,
  (effect, input) =>
    effect.pipe(Effect.provide(natsLayer(input, "juice host")), Effect.provide(layerLog("host", input.json)))
)

/** The commands' connection to NATS, as the common flags name it. */
import { readFileSync } from "node:fs"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { layerNats, type Nats } from "../nats/connection.ts"
import type { NatsRefused, NoNatsServer } from "../protocol/errors.ts"
import { Site } from "../protocol/tokens.ts"
import { Usage } from "./errors.ts"
import { checked } from "./flags.ts"

export interface Common {
  readonly nats: string
  readonly site: string
  readonly creds: Option.Option<string>
}

export const siteOf = (common: Common): Effect.Effect<Site, Usage> => checked("site", Site, common.site)

/** `name`: what the server and its operators see this connection as. */
export const natsLayer = (common: Common, name: string): Layer.Layer<Nats, NoNatsServer | NatsRefused | Usage> =>
  Layer.unwrap(
    Effect.gen(function* () {
      const credentials = yield* Option.match(common.creds, {
        onNone: () => Effect.succeed(undefined),
        onSome: (path) =>
          Effect.try({
            try: () => readFileSync(path, "utf8"),
            catch: (error) => new Usage({ detail: `--creds ${path} cannot be read: ${(error as Error).message}` })
          })
      })
      return layerNats({ servers: common.nats, name, ...(credentials === undefined ? {} : { credentials }) })
    })
  )

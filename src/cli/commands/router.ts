/** `juice router`: one replica of a site's router. */
import * as Effect from "effect/Effect"
import { runRouter } from "../../router/router.ts"
import { layerLog } from "../log.ts"
import { type Common, natsLayer, siteOf } from "../nats.ts"
import { catchStopSignals } from "../signals.ts"

export interface RouterInput extends Common {
  readonly json: boolean
}

export const runRouterCommand = Effect.fnUntraced(
  function* (input: RouterInput) {
    const site = yield* siteOf(input)
    const { first } = yield* catchStopSignals
    yield* Effect.raceFirst(
      runRouter({ site }),
      Effect.flatMap(first, (signal) => Effect.logInfo(`${signal}: stops`))
    )
  },
  Effect.scoped,
  (effect, input) =>
    effect.pipe(Effect.provide(natsLayer(input, "juice router")), Effect.provide(layerLog("router", input.json)))
)

/**
 * A router as a process of its own, for tests that kill it: `node --import tsx testing-main.ts URL SITE`.
 */
import * as Effect from "effect/Effect"
import { layerNats } from "../nats/connection.ts"
import { layerLogger } from "../nats/logger.ts"
import type { Site } from "../protocol/tokens.ts"
import { runRouter } from "./router.ts"

const [url = "", site = ""] = process.argv.slice(2)

Effect.runFork(
  runRouter({ site: site as Site }).pipe(
    Effect.provide(layerNats({ servers: url, name: "test router" })),
    Effect.tapCause((cause) => Effect.logError("the router failed", cause)),
    Effect.provide(layerLogger({ name: "router", level: "Warn" }))
  )
)

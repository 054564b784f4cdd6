/**
 * The router's monitoring port, where it is wanted:
 *
 *   /healthz   200 while the process runs
 *   /readyz    200 once this replica has read the log and is connected, else 503
 *   /metrics   Prometheus text
 */
import { createServer, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import * as Effect from "effect/Effect"
import { format } from "effect/observability/PrometheusMetrics"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { Nats } from "../nats/connection.ts"
import { EventLog } from "../nats/event-log.ts"
import type { Site } from "../protocol/tokens.ts"
import { gaugeFold } from "./metrics.ts"
import type { Replica } from "./replica.ts"

export interface MonitorOptions {
  /** The loopback by default: what it tells is not for everybody. */
  readonly host?: string
  readonly port: number
}

export class MonitorFailed extends Schema.TaggedError<MonitorFailed>()("MonitorFailed", {
  address: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return `the monitoring port ${this.address} cannot be opened (${this.detail}): choose another port`
  }
}

const LOOPBACK = "127.0.0.1"

/** Serves the port for as long as the scope is open, and succeeds with the port's number. */
export const serveMonitor = Effect.fnUntraced(function* (
  options: MonitorOptions & {
    readonly site: Site
    readonly replica: Replica
    readonly isReady: () => boolean
    readonly isLeading: () => boolean
  }
): Effect.fn.Return<number, MonitorFailed, Nats | EventLog | Scope.Scope> {
  const nats = yield* Nats
  const log = yield* EventLog
  const { state } = options.replica
  const run = Effect.runPromiseWith(yield* Effect.context<never>())

  const metrics = Effect.gen(function* () {
    const last = yield* Effect.match(log.extent, {
      onSuccess: (extent) => extent.last,
      onFailure: () => state.position.sequence
    })
    yield* gaugeFold(options.site, state, last, options.isLeading())
    return yield* format()
  })

  const respond = (response: ServerResponse, status: number, body: string): void => {
    response.writeHead(status, { "content-type": "text/plain; version=0.0.4; charset=utf-8" })
    response.end(body)
  }

  const address = `${options.host ?? LOOPBACK}:${options.port}`
  const server = yield* Effect.acquireRelease(
    Effect.callback<ReturnType<typeof createServer>, MonitorFailed>((resume) => {
      const server = createServer((request, response) => {
        const path = request.url?.split("?")[0]
        if (path === "/healthz") return respond(response, 200, "ok\n")
        if (path === "/readyz") {
          const ready = options.isReady() && nats.isConnected()
          return respond(response, ready ? 200 : 503, ready ? "ready\n" : "not ready\n")
        }
        if (path !== "/metrics") return respond(response, 404, "/healthz, /readyz, /metrics\n")
        run(metrics).then(
          (text) => respond(response, 200, text),
          (cause) => respond(response, 500, `${cause}\n`)
        )
      })
      server.once("error", (error) => resume(Effect.fail(new MonitorFailed({ address, detail: error.message }))))
      server.listen(options.port, options.host ?? LOOPBACK, () => resume(Effect.succeed(server)))
    }),
    (server) =>
      Effect.sync(() => {
        server.close()
        server.closeAllConnections()
      })
  )
  return (server.address() as AddressInfo).port
})

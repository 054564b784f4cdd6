/** `juice up`: NATS, a router and a host in one command: a whole site on one machine. */
import { join } from "node:path"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { listHosts } from "../../client/reads.ts"
import { ownDataDirectory } from "../../host/data-directory.ts"
import type { HostReady } from "../../host/service.ts"
import { runHost } from "../../host/service.ts"
import { runRouter } from "../../router/router.ts"
import { ServiceFailed } from "../errors.ts"
import { layerLog } from "../log.ts"
import { natsLayer, siteOf } from "../nats.ts"
import { findNatsProgram, needFreePort, startNatsServer } from "../nats-server.ts"
import { print } from "../output.ts"
import { catchStopSignals } from "../signals.ts"
import { type HostFlags, hostConfig, offerText, stateDirectory } from "./host.ts"

export interface UpInput extends Omit<HostFlags, "nats" | "creds"> {
  readonly port: number
  readonly natsServer: Option.Option<string>
  readonly json: boolean
}

/** How long (ms) the router may take to lead and to know the host. */
const READY_TIMEOUT = 30_000

/** Waits until the site's router knows the host, or knows that it has left. */
const untilListed = Effect.fnUntraced(function* (site: Parameters<typeof listHosts>[0], host: string, here: boolean) {
  while (true) {
    const listed = yield* Effect.option(listHosts(site, { left: false }))
    const known = listed._tag === "Some" && listed.value.hosts.some((view) => view.host === host && view.state === "up")
    const gone = listed._tag === "Some" && !listed.value.hosts.some((view) => view.host === host)
    if (here ? known : gone) return
    yield* Effect.sleep(25)
  }
})

const site = Effect.fnUntraced(function* (input: UpInput, directory: string, url: string) {
  const { first, second } = yield* catchStopSignals
  const ready = yield* Deferred.make<HostReady>()
  const config = yield* hostConfig(
    { ...input, nats: url, creds: Option.none(), dataDir: Option.some(join(directory, "host")) },
    { drain: Effect.asVoid(first), onReady: (found) => Effect.asVoid(Deferred.succeed(ready, found)) }
  )
  const router = Effect.flatMap(
    runRouter({ site: config.site }),
    (): Effect.Effect<never, ServiceFailed> => Effect.fail(new ServiceFailed({ service: "router", detail: "it ended" }))
  )
  const greet = Effect.gen(function* () {
    const found = yield* Deferred.await(ready)
    yield* untilListed(config.site, found.host, true).pipe(
      Effect.timeoutOrElse({
        duration: READY_TIMEOUT,
        orElse: () =>
          Effect.fail(new ServiceFailed({ service: "router", detail: "it does not know the host after 30 s" }))
      })
    )
    if (input.json) {
      print(JSON.stringify({ version: 1, ready: true, nats: url, site: config.site, ...found }))
    } else {
      print(`ready: host ${found.host} offers ${offerText(found)}`)
      print(`Ctrl-C stops everything. In another terminal:\n\n  export JUICE_NATS=${url}\n  juice attach -- PROGRAM`)
    }
    return yield* Effect.never
  })
  const hostUntilStopped = Effect.gen(function* () {
    yield* Effect.raceFirst(runHost(config), Effect.asVoid(second))
    // The log is complete once the router has read the host's last report.
    yield* Effect.timeoutOption(untilListed(config.site, config.host, false), 2_000)
  })
  yield* Effect.raceFirst(hostUntilStopped, Effect.raceFirst(router, greet))
})

export const runUp = Effect.fnUntraced(
  function* (input: UpInput) {
    const name = yield* siteOf({ ...input, nats: "", creds: Option.none() })
    const directory = Option.getOrElse(input.dataDir, () => stateDirectory(`up-${input.port}`))
    yield* needFreePort(input.dataAddress, input.port)
    yield* ownDataDirectory(directory)
    const program = yield* findNatsProgram(Option.getOrUndefined(input.natsServer))
    const nats = yield* startNatsServer({
      program,
      directory: join(directory, "nats"),
      host: input.dataAddress,
      port: input.port
    })
    const common = { nats: nats.url, site: name, creds: Option.none<string>() }
    yield* Effect.raceFirst(
      Effect.scoped(site(input, directory, nats.url)).pipe(Effect.provide(natsLayer(common, "juice up"))),
      nats.failed
    )
  },
  Effect.scoped,
  (effect, input) => Effect.provide(effect, layerLog("up", input.json))
)

/**
 * `juice host`: offers this machine's GPUs to a site until it is told to stop.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type { Addon, Listener } from "../native/addon.ts"
import type { NativeMissing } from "../native/errors.ts"
import { type NativeFiles, requireFiles } from "../native/files.ts"
import { snapshotDevices } from "../native/snapshot.ts"
import { Nats } from "../nats/connection.ts"
import type { NatsError } from "../nats/errors.ts"
import { ensureReports } from "../nats/reports.ts"
import { serve } from "../nats/requests.ts"
import { type Codec, jsonCodec } from "../protocol/codec.ts"
import { NoJetStream } from "../protocol/errors.ts"
import type { Endpoint, Gpu, Labels } from "../protocol/gpu.ts"
import { type HostId, mintIncarnation } from "../protocol/ids.ts"
import { LANE_SILENCE, LINGER } from "../protocol/lane.ts"
import { PREPARED_SLOT } from "../protocol/limits.ts"
import {
  PrepareReply,
  PrepareRequest,
  ReleaseReply,
  ReleaseRequest,
  ResendReply,
  ResendRequest
} from "../protocol/prepare.ts"
import { type HostVerb, hostSubject } from "../protocol/subjects.ts"
import type { Site } from "../protocol/tokens.ts"
import { type Adopt, adoptDescriptor } from "./connection.ts"
import { ownDataDirectory } from "./data-directory.ts"
import { CannotListen, DataDirectoryBroken, type HostError, PlaintextBeyondLoopback, WorkerFailed } from "./errors.ts"
import { type GpuChoice, type Offer, takeInventory, workerEnvironment } from "./inventory.ts"
import { Outbox } from "./outbox.ts"
import { makePool, type Pool } from "./pool.ts"
import { beat, flush, resend, tellReports } from "./reporter.ts"
import type { SessionTimes } from "./session.ts"
import { Sessions } from "./sessions.ts"
import { startWorker } from "./worker.ts"

export interface HostConfig {
  readonly site: Site
  readonly host: HostId
  readonly version: string
  readonly gpus: GpuChoice
  /** The host's own folder: its outbox, and its workers' cache of images. */
  readonly dataDirectory: string
  /** Where the data port listens; port 0 takes a free one. */
  readonly listen: { readonly host: string; readonly port: number }
  /** The name or address under which clients reach it; by default the one it listens on. */
  readonly advertise?: string
  /** The data plane is not encrypted yet: beyond loopback only with this. */
  readonly insecurePlaintext: boolean
  readonly labels: Labels
  /** Ready workers for each GPU. */
  readonly poolSize: number
  /** Milliseconds that sessions get to finish once `drain` has completed. */
  readonly drainTimeout: number
  readonly files: NativeFiles
  readonly addon: Addon
  readonly env: NodeJS.ProcessEnv
  readonly times?: Partial<SessionTimes>
  /** For tests that have no descriptors. */
  readonly adopt?: Adopt
  /** Completes when the host is to stop in order. Interrupting the host stops it at once. */
  readonly drain: Effect.Effect<void>
  readonly onReady?: (ready: HostReady) => Effect.Effect<void>
}

export interface HostReady {
  readonly host: HostId
  readonly endpoint: Endpoint
  readonly gpus: ReadonlyArray<Gpu>
  /** "NVIDIA driver 580.159.04", "software", or "none". */
  readonly driver: string
}

/** A killed program's worker is gone within two seconds: one to notice, one to end. */
const TIMES: SessionTimes = {
  prepared: PREPARED_SLOT,
  linger: LINGER,
  silence: LANE_SILENCE,
  patience: 1_000,
  mercy: 900
}

const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || /^127(?:\.\d{1,3}){3}$/.test(host)
const isEverywhere = (host: string): boolean => host === "0.0.0.0" || host === "::"

const prepareCodec = jsonCodec("prepare request", PrepareRequest)
const prepareReply = jsonCodec("prepare reply", PrepareReply)
const releaseCodec = jsonCodec("release request", ReleaseRequest)
const releaseReply = jsonCodec("release reply", ReleaseReply)
const resendCodec = jsonCodec("resend request", ResendRequest)
const resendReply = jsonCodec("resend reply", ResendReply)

/** The pool over one offer's driver. */
const poolOf = (config: HostConfig, offer: Offer): Effect.Effect<Pool, never, Scope.Scope> =>
  makePool({
    size: config.poolSize,
    stocked: offer.uuids,
    start: (uuids) =>
      startWorker(config.addon, {
        path: config.files.worker,
        args: ["--driver", offer.driver, "--cache", `${config.dataDirectory}/images`],
        env: workerEnvironment(offer, uuids, config.env)
      })
  })

/** What a GPU is, as its first worker tells; undefined, with a warning, where its driver does not start. */
const lookAt = Effect.fnUntraced(function* (config: HostConfig, offer: Offer, pool: Pool, uuid: string) {
  const looked = yield* Effect.result(pool.look([uuid]))
  if (looked._tag === "Failure") return { uuid, error: looked.failure } as const
  const device = snapshotDevices(looked.success.snapshot)?.[0]
  if (device === undefined) {
    return { uuid, error: new WorkerFailed({ detail: `it shows no device for ${uuid}` }) } as const
  }
  // Contexts of the ready workers, and of one more that is in use, are not for sessions.
  const vram = device.totalMemory - looked.success.contextBytes * (config.poolSize + 1)
  const gpu: Gpu = {
    uuid,
    model: device.name,
    vram: Math.max(1, vram),
    computeCapability: device.computeCapability,
    kind: offer.kind
  }
  return { uuid, gpu } as const
})

/** All GPUs that work. Fails when none of several does. */
const lookAtAll = Effect.fnUntraced(function* (config: HostConfig, offer: Offer, pool: Pool) {
  const looked = yield* Effect.forEach(offer.uuids, (uuid) => lookAt(config, offer, pool, uuid), { concurrency: 4 })
  const gpus: Array<Gpu> = []
  let error: WorkerFailed | undefined
  for (const found of looked) {
    if (found.gpu !== undefined) gpus.push(found.gpu)
    else {
      error = found.error
      yield* Effect.logWarning(`the GPU ${found.uuid} is not offered: ${error.message}`)
    }
  }
  return gpus.length === 0 && error !== undefined ? yield* error : gpus
})

const openOutbox = Effect.fnUntraced(function* (config: HostConfig) {
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const complain = (error: Error) => {
    run(
      Effect.logError(
        `the outbox in ${config.dataDirectory} cannot be written (${error.message}): a crash now would lose reports`
      )
    )
  }
  yield* ownDataDirectory(config.dataDirectory)
  return yield* Effect.acquireRelease(
    Effect.try({
      try: () => new Outbox(config.dataDirectory, config.host, mintIncarnation(), complain),
      catch: (error) => new DataDirectoryBroken({ directory: config.dataDirectory, detail: (error as Error).message })
    }),
    (outbox) => Effect.sync(() => outbox.close())
  )
})

const openDataPort = (config: HostConfig, accept: (fd: number, preface: Buffer, peer: string) => void) =>
  Effect.acquireRelease(
    Effect.try({
      try: (): Listener => config.addon.listen(config.listen, accept),
      catch: (error) =>
        new CannotListen({
          address: `${config.listen.host}:${config.listen.port}`,
          detail: (error as Error).message
        })
    }),
    (listener) => Effect.sync(() => listener.close())
  )

/** Makes the report stream, or fails where there can be none; one that only does not answer now is made later. */
const haveReports = (config: HostConfig): Effect.Effect<void, NatsError | NoJetStream, Nats> =>
  ensureReports(config.site).pipe(
    Effect.catchTag("NatsError", (error): Effect.Effect<void, NatsError | NoJetStream, Nats> => {
      switch (error.reason._tag) {
        case "NoJetStreamHere":
          return Effect.flatMap(Nats, ({ servers }) => Effect.fail(new NoJetStream({ server: servers })))
        case "TimedOut":
        case "NoResponders":
        case "Disconnected":
          return Effect.logWarning(`the site does not answer yet: ${error.message}`)
        default:
          return Effect.fail(error)
      }
    })
  )

/** Serves one verb of the router's; what cannot be read gets no answer. */
const answer = <Q, A>(options: {
  readonly config: HostConfig
  readonly verb: HostVerb
  readonly query: Codec<Q>
  readonly reply: Codec<A>
  readonly handle: (query: Q) => Effect.Effect<A>
}): Effect.Effect<void, NatsError, Nats | Scope.Scope> =>
  serve({
    subject: hostSubject(options.config.site, options.config.host, options.verb),
    handler: ({ body, subject }) => {
      const query = options.query.decode(body)
      return Result.isFailure(query)
        ? Effect.as(Effect.logWarning(`${subject}: ${query.failure.message}`), undefined)
        : Effect.map(options.handle(query.success), options.reply.encode)
    }
  })

/** Stops in order: no new sessions, time for those there are, then an end to the rest. */
const drainSessions = Effect.fnUntraced(function* (config: HostConfig, sessions: Sessions, outbox: Outbox) {
  const empty = yield* Deferred.make<void>()
  outbox.append({ _tag: "host.draining" })
  sessions.drain(() => Deferred.doneUnsafe(empty, Effect.void))
  if (sessions.size > 0) {
    yield* Effect.logInfo(`waits up to ${config.drainTimeout / 1000} s for ${sessions.size} session(s) to finish`)
  }
  const finished = yield* Deferred.await(empty).pipe(Effect.timeoutOption(config.drainTimeout))
  if (finished._tag === "Some") return
  sessions.endAll("host-left", "the host is shutting down")
  yield* Deferred.await(empty).pipe(Effect.timeoutOption(5_000))
})

/**
 * Runs the host until `config.drain` has completed and its sessions have ended. It fails where it cannot start at all;
 * once it runs, a site that is gone is waited for.
 */
export const runHost = Effect.fn("runHost")(function* (
  config: HostConfig
): Effect.fn.Return<void, HostError | NatsError | NoJetStream | NativeMissing, Nats> {
  if (!config.insecurePlaintext && !isLoopback(config.listen.host)) {
    return yield* new PlaintextBeyondLoopback({ address: config.listen.host })
  }
  yield* Effect.scoped(serveSite(config))
})

const serveSite = Effect.fnUntraced(function* (config: HostConfig) {
  const { host, site } = config
  const nats = yield* Nats
  const run = Effect.runForkWith(yield* Effect.context<Nats>())
  const outbox = yield* openOutbox(config)
  const offer = yield* takeInventory({ choice: config.gpus, host, addon: config.addon, files: config.files })
  if (offer !== undefined) {
    const needed = offer.kind === "software" ? [config.files.worker, offer.driver] : [config.files.worker]
    yield* Effect.try({ try: () => requireFiles(...needed), catch: (error) => error as NativeMissing })
  }
  const pool = yield* offer === undefined
    ? makePool({ size: 0, stocked: [], start: () => Effect.fail(new WorkerFailed({ detail: "no GPU is offered" })) })
    : poolOf(config, offer)
  const gpus = offer === undefined ? [] : yield* lookAtAll(config, offer, pool)

  let sessions: Sessions | undefined
  const listener = yield* openDataPort(config, (fd, preface, peer) => {
    if (sessions === undefined) config.addon.closeFd(fd)
    else sessions.accept(fd, preface, peer)
  })
  const reachable = isEverywhere(config.listen.host) ? host : config.listen.host
  const endpoint: Endpoint = { host: config.advertise ?? reachable, port: listener.port }
  const open = new Sessions({
    incarnation: outbox.incarnation,
    endpoint,
    gpus,
    outbox,
    addon: config.addon,
    world: {
      pool,
      times: { ...TIMES, ...config.times },
      adopt: config.adopt ?? adoptDescriptor,
      log: (sentence) => {
        run(Effect.logInfo(sentence))
      },
      run: (effect) => {
        run(effect)
      }
    }
  })
  sessions = open

  yield* haveReports(config)
  // Finalizers run last in, first out: by then the fibers below have stopped, and what is still to be told is told here.
  yield* Effect.addFinalizer(() =>
    Effect.gen(function* () {
      open.killAll("host-left", "the host stops")
      const empty = Effect.gen(function* () {
        while (open.size > 0) yield* Effect.sleep(10)
      })
      yield* Effect.timeoutOption(empty, 2_000)
      outbox.append({ _tag: "host.left" })
      yield* flush(site, outbox).pipe(Effect.timeoutOption(2_000), Effect.ignore)
    }).pipe(Effect.provideService(Nats, nats))
  )
  yield* answer({
    config,
    verb: "prepare",
    query: prepareCodec,
    reply: prepareReply,
    handle: (request) => Effect.sync(() => open.prepare(request))
  })
  yield* answer({
    config,
    verb: "release",
    query: releaseCodec,
    reply: releaseReply,
    handle: (request) => Effect.sync(() => open.release(request))
  })
  yield* answer({
    config,
    verb: "resend",
    query: resendCodec,
    reply: resendReply,
    handle: (request) => Effect.provideService(resend(site, outbox, request), Nats, nats)
  })
  outbox.append({
    _tag: "host.joined",
    version: config.version,
    endpoint,
    gpus,
    labels: config.labels,
    sessions: []
  })
  yield* Effect.forkScoped(tellReports(site, outbox))
  yield* Effect.forkScoped(beat(site, host, outbox, () => open.size))
  yield* config.onReady?.({ host, endpoint, gpus, driver: offer?.driverText ?? "none" }) ?? Effect.void
  yield* config.drain
  yield* drainSessions(config, open, outbox)
})

/**
 * The connection to NATS.
 */
import { type JetStreamClient, type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream"
import { credsAuthenticator, type NatsConnection, errors as natsErrors } from "@nats-io/nats-core"
import { connect } from "@nats-io/transport-node"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { NatsRefused, NoNatsServer } from "../protocol/errors.ts"
import { DEV_PRINCIPAL, inboxPrefix, type Principal } from "../protocol/tokens.ts"
import { Disconnected, NatsError, natsError } from "./errors.ts"

export interface NatsOptions {
  /** One or several addresses: "nats://127.0.0.1:4222", "nats://user:password@gpu.example.org". */
  readonly servers: string | ReadonlyArray<string>
  /** What server and operators see this connection as: "juice host gpu1". */
  readonly name: string
  /** Who asks; by default the user of the address, or the principal of those without credentials. */
  readonly principal?: Principal
  /** The content of a credentials file (a user's JWT and seed). */
  readonly credentials?: string
  /** Milliseconds for the first connection; 5,000 by default. */
  readonly timeout?: number
}

/**
 * A connection that reconnects for ever once it was established. Its inboxes lie under the principal's own prefix,
 * so that the server's permissions can keep other principals from reading its answers.
 */
export class Nats extends Context.Service<
  Nats,
  {
    readonly principal: Principal
    /** The addresses without passwords, for messages. */
    readonly servers: string
    readonly connection: NatsConnection
    readonly jetstream: JetStreamClient
    /** One request, one answer. Fails with TimedOut, NoResponders or Disconnected. */
    readonly request: (subject: string, body: Uint8Array, timeout: number) => Effect.Effect<Uint8Array, NatsError>
    /** Core publish: nothing confirms it. */
    readonly publish: (subject: string, body: Uint8Array) => Effect.Effect<void, NatsError>
    /** A round trip to the server, within two seconds: is it there? */
    readonly ping: Effect.Effect<void, NatsError>
    /** The JetStream manager; its calls fail with NoJetStreamHere where JetStream is not enabled. */
    readonly manager: JetStreamManager
    /** When (ms) the present connection was established. */
    readonly connectedAt: () => number
    readonly isConnected: () => boolean
    /** Never succeeds; fails once the connection is closed for good. */
    readonly closed: Effect.Effect<never, NatsError>
  }
>()("juice/nats/Nats") {}

interface Address {
  readonly server: string
  readonly user?: string
  readonly pass?: string
}

/** Splits what nats.js wants apart: user and password do not belong into its addresses. */
const parseAddress = (text: string): Address => {
  const url = tryUrl(text)
  if (url === undefined || url.username === "") return { server: text }
  const server = `${url.protocol}//${url.host}`
  return { server, user: decodeURIComponent(url.username), pass: decodeURIComponent(url.password) }
}

const tryUrl = (text: string): URL | undefined => {
  try {
    return new URL(text.includes("://") ? text : `nats://${text}`)
  } catch {
    return undefined
  }
}

const isAuthorization = (cause: unknown): boolean =>
  cause instanceof natsErrors.AuthorizationError ||
  cause instanceof natsErrors.UserAuthenticationExpiredError ||
  (cause instanceof Error && cause.cause !== undefined && isAuthorization(cause.cause))

const detailOf = (cause: unknown): string => {
  if (!(cause instanceof Error)) return String(cause)
  if (cause instanceof AggregateError && cause.errors.length > 0) return detailOf(cause.errors[0])
  return cause.cause instanceof Error ? detailOf(cause.cause) : cause.message
}

const make = Effect.fnUntraced(function* (options: NatsOptions) {
  const addresses = (typeof options.servers === "string" ? options.servers.split(",") : options.servers).map((text) =>
    parseAddress(text.trim())
  )
  const servers = addresses.map(({ server }) => server).join(", ")
  const login = addresses.find(({ user }) => user !== undefined)
  const principal = options.principal ?? ((login?.user ?? DEV_PRINCIPAL) as Principal)
  const credentials = options.credentials

  const connection = yield* Effect.acquireRelease(
    Effect.tryPromise({
      try: () =>
        connect({
          servers: addresses.map(({ server }) => server),
          name: options.name,
          inboxPrefix: inboxPrefix(principal),
          timeout: options.timeout ?? 5_000,
          // The defaults give up after 20 s and notice a dead link after 4 minutes; ours are for programs that stay.
          maxReconnectAttempts: -1,
          reconnectTimeWait: 500,
          pingInterval: 10_000,
          maxPingOut: 2,
          noAsyncTraces: true,
          ...(login?.user === undefined ? {} : { user: login.user, pass: login.pass ?? "" }),
          ...(credentials === undefined
            ? {}
            : { authenticator: credsAuthenticator(new TextEncoder().encode(credentials)) })
        }),
      catch: (cause) =>
        isAuthorization(cause)
          ? new NatsRefused({ server: servers, detail: detailOf(cause) })
          : new NoNatsServer({ server: servers, detail: detailOf(cause) })
    }),
    (connection) =>
      Effect.promise(() => connection.drain().catch(() => connection.close())).pipe(
        // Draining waits for the server; one that is gone must not hold up an exit.
        Effect.timeoutOption(2_000),
        Effect.andThen(Effect.promise(() => connection.close().catch(() => undefined)))
      )
  )

  let connectedAt = Date.now()
  let connected = true
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const watch = async () => {
    for await (const status of connection.status()) {
      if (status.type === "disconnect") {
        connected = false
        run(Effect.logWarning(`lost the connection to NATS at ${servers}`))
      }
      if (status.type === "reconnect") {
        connected = true
        connectedAt = Date.now()
        run(Effect.logInfo(`connected to NATS at ${servers} again`))
      }
    }
  }
  watch().catch(() => undefined)

  const client = jetstream(connection, { timeout: 5_000 })
  // Without the check of the account, which asks the server, making a manager cannot fail.
  const manager = yield* Effect.promise(() => jetstreamManager(connection, { timeout: 5_000, checkAPI: false }))
  return Nats.of({
    principal,
    servers,
    connection,
    jetstream: client,
    request: (subject, body, timeout) =>
      Effect.tryPromise({
        try: () => connection.request(subject, body, { timeout }),
        catch: natsError(`ask ${subject}`)
      }).pipe(Effect.map((message) => message.data)),
    publish: (subject, body) =>
      Effect.try({ try: () => connection.publish(subject, body), catch: natsError(`publish ${subject}`) }),
    ping: Effect.tryPromise({ try: () => connection.flush(), catch: natsError("ping") }).pipe(
      Effect.timeoutOrElse({
        duration: 2_000,
        orElse: () =>
          Effect.fail(new NatsError({ operation: "ping", reason: new Disconnected({ detail: "no answer" }) }))
      })
    ),
    manager,
    connectedAt: () => connectedAt,
    isConnected: () => connected,
    closed: Effect.callback<never, NatsError>((resume) => {
      connection.closed().then((cause) => {
        const detail = cause instanceof Error ? cause.message : "closed"
        resume(Effect.fail(new NatsError({ operation: "stay connected", reason: new Disconnected({ detail }) })))
      })
    })
  })
})

/** A connection for the life of the layer. Fails at once with NoNatsServer or NatsRefused. */
export const layerNats = (options: NatsOptions) => Layer.effect(Nats, make(options))

/**
 * Logs: pino behind Effect's logger. Lines go to stderr, so that stdout stays for data.
 */
import * as Cause from "effect/Cause"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import type * as LogLevel from "effect/LogLevel"
import * as References from "effect/References"
import pino from "pino"

const levels: Record<LogLevel.LogLevel, pino.Level | undefined> = {
  All: "trace",
  Trace: "trace",
  Debug: "debug",
  Info: "info",
  Warn: "warn",
  Error: "error",
  Fatal: "fatal",
  None: undefined
}

const plain = (part: unknown): string =>
  typeof part === "string" ? part : part instanceof Error ? part.message : JSON.stringify(part)

/** A logger that writes through this pino instance: annotations become fields, causes the field `cause`. */
export const pinoLogger = (target: pino.Logger): Logger.Logger<unknown, void> =>
  Logger.make(({ cause, fiber, logLevel, message }) => {
    const level = levels[logLevel]
    if (level === undefined) return
    const fields: Record<string, unknown> = { ...fiber.getRef(References.CurrentLogAnnotations) }
    if (cause.reasons.length > 0) fields.cause = Cause.pretty(cause)
    const text = (Array.isArray(message) ? message : [message]).map(plain).join(" ")
    target[level](fields, text)
  })

export interface LogOptions {
  /** What the lines are of: "router", "host gpu1". */
  readonly name: string
  /** The lowest level to write; "Info" by default. */
  readonly level?: LogLevel.LogLevel
  /** Where lines go; stderr by default. */
  readonly destination?: pino.DestinationStream
}

/** All logs of the program through pino, as one JSON line each. */
export const layerLogger = (options: LogOptions) => {
  const target = pino(
    { name: options.name, level: "trace", base: { name: options.name } },
    options.destination ?? pino.destination({ dest: 2, sync: true })
  )
  return Layer.mergeAll(
    Logger.layer([pinoLogger(target)]),
    Layer.succeed(References.MinimumLogLevel, options.level ?? "Info")
  )
}

/** Logs of the services: lines for people on stderr, or JSON lines for machines. */
import * as Cause from "effect/Cause"
import type * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import { layerLogger } from "../nats/logger.ts"
import { tell, timeText } from "./output.ts"

const plain = (part: unknown): string => (part instanceof Error ? part.message : String(part))

const lines = Logger.make<unknown, void>(({ cause, date, logLevel, message }) => {
  if (logLevel === "Debug" || logLevel === "Trace") return
  const text = (Array.isArray(message) ? message : [message]).map(plain).join(" ")
  const mark = logLevel === "Info" ? "" : `${logLevel.toLowerCase()}: `
  const why = cause.reasons.length > 0 ? `\n${Cause.pretty(cause)}` : ""
  process.stderr.write(`${timeText(date.getTime())} ${mark}${text}${why}\n`)
})

/** What happens behind `attach -v`, in our voice. */
export const layerVerbose: Layer.Layer<never> = Logger.layer([
  Logger.make<unknown, void>(({ message }) => tell((Array.isArray(message) ? message : [message]).map(plain).join(" ")))
])

export const layerLog = (name: string, json: boolean): Layer.Layer<never> =>
  json ? (layerLogger({ name }) as Layer.Layer<never>) : Logger.layer([lines])

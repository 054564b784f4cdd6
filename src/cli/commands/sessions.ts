/** `juice sessions`: who has GPUs, and who waits for them. */
import * as Effect from "effect/Effect"
import { listSessions } from "../../client/reads.ts"
import type { SessionView } from "../../protocol/answers.ts"
import { type Common, natsLayer, siteOf } from "../nats.ts"
import { counted, durationText, print, printJson, table, tell, usageText } from "../output.ts"

export interface SessionsInput extends Common {
  readonly all: boolean
  readonly limit: number
  readonly json: boolean
}

const stateText = (session: SessionView): string => {
  if (session.state === "ended") return `ended (${session.reason})`
  if (session.hostSilent) return `${session.state}, host silent`
  return session.interrupted ? `${session.state}, interrupted` : session.state
}

const row = (session: SessionView, now: number): ReadonlyArray<string> => [
  session.session,
  stateText(session),
  session.principal,
  session.host ?? "-",
  counted(session.request.count, "GPU"),
  durationText((session.endedAt ?? now) - session.requestedAt),
  String(session.processes.total),
  session.state === "ended" ? usageText(session.usage) : "-"
]

export const runSessions = Effect.fnUntraced(
  function* (input: SessionsInput) {
    const { now, sessions } = yield* listSessions(yield* siteOf(input), { ended: input.all, limit: input.limit })
    if (input.json) {
      printJson({ now, sessions })
      return
    }
    if (sessions.length === 0) {
      tell(input.all ? "no session has been yet" : "no session now; `juice sessions --all` shows those that have ended")
      return
    }
    const head = ["SESSION", "STATE", "WHO", "HOST", "GPUS", "TIME", "PROCESSES", "USAGE"]
    print(
      table(
        head,
        sessions.map((session) => row(session, Math.max(now, Date.now())))
      )
    )
  },
  (effect, input) => Effect.provide(effect, natsLayer(input, "juice sessions"))
)

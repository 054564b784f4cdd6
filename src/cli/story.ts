/** The session log as a story: one line for each event, in words. */
import type { Event, ProcessEndReason, RefusalReason, SessionEndReason } from "../protocol/events.ts"
import type { GpuGrant, GpuRequest } from "../protocol/gpu.ts"
import { bytesText, counted, usageText } from "./output.ts"

const endings: Record<SessionEndReason, string> = {
  "client-exit": "the program ended",
  released: "released",
  "client-lost": "its client was lost",
  "never-connected": "no client came",
  cancelled: "given up before it was ready",
  "wait-over": "the wait for capacity was over",
  refused: "refused",
  "host-lost": "its host came back without it",
  "host-left": "its host left",
  "host-fenced": "its host could not reach the site",
  "host-failed": "its host could not go on with it",
  administrator: "ended by an administrator"
}

const processEndings: Record<ProcessEndReason, string> = {
  exit: "left in order",
  killed: "died",
  error: "failed",
  "worker-crashed": "lost its worker, which crashed",
  "protocol-violation": "broke the protocol",
  "client-lost": "was lost",
  "session-ended": "ended with its session",
  "host-left": "ended with its host"
}

const refusals: Record<RefusalReason, string> = {
  "does-not-fit": "it does not fit",
  "unknown-gpu": "it has no such GPU",
  "older-epoch": "it follows a newer router",
  "older-attempt": "it knows a newer attempt",
  "other-incarnation": "it has been restarted",
  draining: "it is shutting down",
  "bad-key": "the client's key is unusable",
  failed: "it could not",
  "no-answer": "it did not answer"
}

const requestText = (request: GpuRequest): string => {
  const what = counted(request.count, "GPU")
  const parts = [
    request.vram === undefined ? undefined : `${bytesText(request.vram)} of it`,
    request.share === undefined ? undefined : `${Math.round(request.share * 100)} % of it`,
    request.model === undefined ? undefined : `model ${request.model}`,
    request.computeCapability === undefined ? undefined : `compute capability ${request.computeCapability} or newer`,
    request.uuid === undefined ? undefined : request.uuid.join(" or ")
  ].filter((part) => part !== undefined)
  return parts.length === 0 ? what : `${what} (${parts.join(", ")})`
}

const grantText = (grant: GpuGrant): string => `${grant.uuid}${grant.exclusive ? "" : ` (${bytesText(grant.vram)})`}`

const exitText = (exit: { readonly code?: number; readonly signal?: string } | undefined): string => {
  if (exit?.signal !== undefined) return ` by ${exit.signal}`
  return exit?.code === undefined ? "" : ` with exit code ${exit.code}`
}

/** Who an event is about: "session 01234567", "host gpu-1", "router". Ids are shortened to what tells them apart. */
export const subjectText = (event: Event): string => {
  switch (event.aggregate) {
    case "session":
      return `session ${event.session.slice(-8)}`
    case "host":
      return `host ${event.host}`
    case "router":
      return "router"
  }
}

/** What happened, as the rest of a sentence. */
export const eventText = (event: Event): string => {
  switch (event._tag) {
    case "SessionRequested":
      return `${event.principal} asked for ${requestText(event.gpus)}`
    case "SessionQueued":
      return "waits for capacity"
    case "SessionPlaced":
      return `placed on host ${event.host}: ${event.gpus.map(grantText).join(", ")}`
    case "PlacementRefused":
      return `host ${event.host} did not take it: ${refusals[event.reason]}`
    case "SessionReady":
      return `host ${event.host} is ready for it`
    case "ProcessAttached":
      return `process ${event.process} runs on the GPU`
    case "ProcessEnded": {
      const error = event.error === undefined ? "" : ` with ${event.error.name} (${event.error.code})`
      return `process ${event.process} ${processEndings[event.reason]}${error}${exitText(event.exit)}; ${usageText(event.usage)}`
    }
    case "SessionInterrupted":
      return "the connection broke"
    case "SessionResumed":
      return "the connection is back"
    case "SessionEnding":
      return `is to end: ${endings[event.reason]}`
    case "SessionEnded":
      return `ended: ${endings[event.reason]}${event.usage.calls === 0 ? "" : `; ${usageText(event.usage)}`}`
    case "HostJoined": {
      const gpus = event.gpus.map((gpu) => `${gpu.model} (${bytesText(gpu.vram)})`)
      return `joined with ${gpus.length === 0 ? "no GPU" : gpus.join(", ")} at ${event.endpoint.host}:${event.endpoint.port}`
    }
    case "HostSuspect":
      return "has fallen silent: nothing new is placed there"
    case "HostUnknown":
      return "has been silent for long: its sessions may still be running"
    case "HostRecovered":
      return "is heard of again"
    case "HostDraining":
      return "takes no new sessions"
    case "HostLeft":
      return "left"
    case "RouterElected":
      return `${event.router.slice(-8)} leads, epoch ${event.epoch}`
    case "FormatRaised":
      return `writes format ${event.format} from here on`
  }
}

/**
 * The host's end of a broker's lane: the connection that is a session's lease.
 */
import type { Socket } from "node:net"
import * as Result from "effect/Result"
import { welcomeProof } from "../native/preface.ts"
import {
  type FromBroker,
  type FromHost,
  fromBrokerCodec,
  fromHostCodec,
  LANE_SILENCE,
  LINGER,
  LineSplitter,
  PING_INTERVAL
} from "../protocol/lane.ts"
import { endWith } from "./connection.ts"

export interface BrokerLaneListener {
  /** Everything but pings and pauses. */
  readonly onMessage: (message: Exclude<FromBroker, { readonly type: "ping" | "pause" }>) => void
  /** Once: the connection is closed, broken, or silent for too long. */
  readonly onGone: (how: "closed" | "silent") => void
}

export interface BrokerLane {
  readonly send: (message: FromHost) => void
  /** Proves that we hold the session's key, and shows its devices. */
  readonly welcome: (snapshot: Buffer) => void
  /** Says why the session is over, and closes. */
  readonly end: (reason: string) => void
}

const line = (message: FromHost): Buffer => Buffer.concat([fromHostCodec.encode(message), Buffer.from("\n")])

/** Takes over an accepted connection whose preface has been read and proven. */
export const openBrokerLane = (
  options: {
    readonly socket: Socket
    readonly brokerKey: Uint8Array
    readonly nonce: Buffer
    readonly silence?: number
  },
  listener: BrokerLaneListener
): BrokerLane => {
  const silence = options.silence ?? LANE_SILENCE
  const { socket } = options
  socket.setNoDelay(true)
  const splitter = new LineSplitter()
  let heard = Date.now()
  let paused = false
  let over = false

  const gone = (how: "closed" | "silent") => {
    if (over) return
    over = true
    clearInterval(timer)
    socket.destroy()
    listener.onGone(how)
  }
  const send = (message: FromHost) => {
    if (!over) socket.write(line(message))
  }

  socket.on("data", (chunk) => {
    heard = Date.now()
    paused = false
    const messages = Result.flatMap(splitter.push(chunk), (lines) =>
      Result.all(lines.map((line) => fromBrokerCodec.decode(line)))
    )
    // A broker that does not speak our language is as good as gone.
    if (Result.isFailure(messages)) return gone("closed")
    for (const message of messages.success) {
      if (over) return
      if (message.type === "pause") paused = true
      else if (message.type !== "ping") listener.onMessage(message)
    }
  })
  socket.on("error", () => gone("closed"))
  socket.on("close", () => gone("closed"))
  socket.on("end", () => gone("closed"))
  const timer = setInterval(
    () => {
      if (!paused && Date.now() - heard > silence) return gone("silent")
      send({ type: "ping" })
    },
    Math.min(PING_INTERVAL, silence / 4)
  )

  return {
    send,
    welcome: (snapshot) =>
      send({
        type: "welcome",
        proof: welcomeProof(options.brokerKey, options.nonce),
        snapshot: snapshot.toString("base64"),
        linger: LINGER / 1_000
      }),
    end: (reason) => {
      if (over) return
      over = true
      clearInterval(timer)
      endWith(socket, line({ type: "end", reason }))
    }
  }
}

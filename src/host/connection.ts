/**
 * Accepted connections that stay in this process: descriptors made into sockets, and the way to refuse one.
 */
import { Socket } from "node:net"
import { type GoodbyeReason, goodbyeFrame } from "../native/preface.ts"

/** Makes a socket of an accepted descriptor, which it then owns. */
export type Adopt = (fd: number) => Socket

export const adoptDescriptor: Adopt = (fd) => new Socket({ fd, readable: true, writable: true })

/** How long (ms) a peer gets to read the last word before its connection is closed on it. */
const LAST_WORD = 1_000

/** Sends the last word and closes. */
export const endWith = (socket: Socket, lastWord: Uint8Array): void => {
  socket.on("error", () => socket.destroy())
  socket.end(lastWord)
  setTimeout(() => socket.destroy(), LAST_WORD).unref()
}

/** Turns a process's connection away, with the reason as the link's last frame. */
export const turnAway = (socket: Socket, reason: GoodbyeReason, sentence: string): void =>
  endWith(socket, goodbyeFrame(reason, sentence))

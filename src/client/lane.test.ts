import { type AddressInfo, createServer, type Server, type Socket } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { HostId } from "../protocol/ids.ts"
import { mintSessionId } from "../protocol/ids.ts"
import { openLane } from "./lane.ts"

/** Something that listens where a host should. */
const serverThat = (serve: (socket: Socket) => void): Effect.Effect<Server, never, never> =>
  Effect.callback((resume) => {
    const server = createServer((socket) => {
      socket.on("error", () => {})
      serve(socket)
    })
    server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
  })

const open = (server: Server) =>
  openLane({
    host: "gpu-1" as HostId,
    endpoint: { host: "127.0.0.1", port: (server.address() as AddressInfo).port },
    session: mintSessionId(),
    brokerKey: Buffer.alloc(32, 1)
  })

const failing = (serve: (socket: Socket) => void) =>
  Effect.gen(function* () {
    const server = yield* Effect.acquireRelease(serverThat(serve), (found) => Effect.sync(() => found.close()))
    return yield* Effect.flip(open(server))
  }).pipe(Effect.scoped)

describe("the broker's end of its lane", () => {
  it.live("says that the host vanished when nobody listens, and when it is hung up on", () =>
    Effect.gen(function* () {
      const server = yield* serverThat(() => {})
      server.close()
      const nobody = yield* Effect.flip(Effect.scoped(open(Object.assign(server, { address: () => ({ port: 1 }) }))))
      assert.equal(nobody._tag, "HostVanished")
      assert.equal((yield* failing((socket) => socket.destroy()))._tag, "HostVanished")
    })
  )
  it.live("does not believe a host that does not prove the session's key", () =>
    Effect.gen(function* () {
      const welcome = { type: "welcome", proof: "0".repeat(64), snapshot: "", linger: 2 }
      const error = yield* failing((socket) => socket.write(`${JSON.stringify(welcome)}\n`))
      assert.equal(error._tag, "HostNotProven")
      assert.match(error.message, /is not the GPU host "gpu-1"/)
    })
  )
  it.live("passes on why the host turns the session away", () =>
    Effect.gen(function* () {
      const error = yield* failing((socket) => socket.end(`${JSON.stringify({ type: "end", reason: "no driver" })}\n`))
      assert.equal(error._tag, "HostRefused")
      assert.match(error.message, /no driver/)
    })
  )
  it.live("takes what does not speak its language for no host", () =>
    Effect.gen(function* () {
      assert.equal((yield* failing((socket) => socket.write("HTTP/1.1 400 Bad Request\r\n\r\n")))._tag, "HostVanished")
    })
  )
})

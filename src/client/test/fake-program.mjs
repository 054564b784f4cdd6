// A program that uses the GPU as the shim would: it asks the broker for its identity, opens its command lane and says
// the words that it was given to the fake worker (src/host/test/fake-addon.ts).
//
//   fake-program.mjs WORD…      words for the worker, and for itself:
//     exit=N    ends with this code
//     die       kills itself with SIGKILL
//     wait      waits for a signal to end it
//     fork      starts another such program with the words after it, and waits for it
import { spawn } from "node:child_process"
import { createHmac, randomBytes } from "node:crypto"
import { once } from "node:events"
import { createConnection } from "node:net"

const u32 = (value) => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}

const askBroker = async () => {
  const socket = createConnection(process.env.JUICE_BROKER)
  socket.write(Buffer.concat([u32(12), u32(1), u32(2), u32(process.pid)]))
  const chunks = []
  for await (const chunk of socket) chunks.push(chunk)
  const body = Buffer.concat(chunks).subarray(4)
  const result = body.readInt32LE(4)
  if (result !== 0) {
    const length = body.readUInt32LE(8)
    throw new Error(`refused with ${result}: ${body.subarray(12, 12 + length)}`)
  }
  const hostLength = body.readUInt32LE(64)
  return {
    session: body.subarray(8, 24),
    process: body.subarray(24, 32),
    key: body.subarray(32, 64),
    host: body.subarray(68, 68 + hostLength).toString(),
    port: body.readUInt16LE(68 + hostLength)
  }
}

const openLane = async ({ host, key, port, process: number, session }) => {
  const proven = Buffer.concat([
    Buffer.from([0x4a, 0x55, 0x49, 0x43, 0x45, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0]),
    session,
    number,
    randomBytes(8)
  ])
  const proof = createHmac("sha256", key).update("preface").update(proven).digest().subarray(0, 16)
  const socket = createConnection({ host, port })
  socket.on("error", () => {})
  socket.write(Buffer.concat([proven, proof]))
  await once(socket, "data")
  return socket
}

const lane = await openLane(await askBroker())
for (const [index, word] of process.argv.slice(2).entries()) {
  if (word.startsWith("exit=")) process.exit(Number(word.slice(5)))
  if (word === "die") process.kill(process.pid, "SIGKILL")
  if (word === "wait") {
    lane.on("close", () => process.exit(46))
    process.stdout.write("waiting\n")
    await new Promise(() => setInterval(() => {}, 1_000))
  }
  if (word === "fork") {
    const child = spawn(process.execPath, [process.argv[1], ...process.argv.slice(3 + index)], { stdio: "inherit" })
    const [code] = await once(child, "exit")
    process.exit(code)
  }
  lane.write(`${word}\n`)
  await once(lane, "close")
}

import { spawn } from "node:child_process"
import { once } from "node:events"
import { closeSync, readFileSync, writeSync } from "node:fs"
import { createRequire } from "node:module"
import { connect, type Socket } from "node:net"
import { join } from "node:path"
import { assert, describe, it } from "vitest"

const directory = process.env.JUICE_NATIVE_DIR ?? join(import.meta.dirname, "../../build/release")
const addon = createRequire(import.meta.url)(join(directory, "juice.node"))

interface Exit {
  readonly code: number | null
  readonly signal: number | null
}

const shell = (script: string) => {
  let exited = (_: Exit) => {}
  const exit = new Promise<Exit>((resolve) => {
    exited = resolve
  })
  const messages: Array<{ kind: number; payload: Buffer }> = []
  const worker = addon.spawnWorker(
    { path: "/bin/sh", args: ["-c", script], env: { PATH: process.env.PATH ?? "" } },
    (kind: number, payload: Buffer) => messages.push({ kind, payload }),
    (code: number | null, signal: number | null) => exited({ code, signal })
  )
  return { worker, exit, messages }
}

const preface = () => {
  const bytes = Buffer.alloc(64, 7)
  bytes.write("JUICE\0\0\x01", 0, "latin1")
  return bytes
}

const arrivals = () => {
  const seen: Array<{ fd: number; preface: Buffer; peer: string }> = []
  const server = addon.listen({ host: "127.0.0.1", port: 0 }, (fd: number, bytes: Buffer, peer: string) =>
    seen.push({ fd, preface: bytes, peer })
  )
  return { server, seen }
}

const until = async (condition: () => boolean) => {
  const end = Date.now() + 20_000
  while (!condition()) {
    if (Date.now() > end) throw new Error("condition not met within 20 s")
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

describe("workers", () => {
  it("report their exit code", async () => {
    assert.deepStrictEqual(await shell("exit 7").exit, { code: 7, signal: null })
  })

  it("report the signal that killed them", async () => {
    const { worker, exit } = shell("sleep 60")
    worker.kill(9)
    assert.deepStrictEqual(await exit, { code: null, signal: 9 })
  })

  it("deliver their last message before their exit", async () => {
    const { exit, messages } = shell("printf '\\005\\000abc' >&3; exit 0")
    await exit
    assert.strictEqual(messages.length, 1)
    assert.strictEqual(messages[0]?.kind, 5)
    assert.strictEqual(messages[0]?.payload.toString(), "abc")
  })

  it("get messages on their control socket and see it close", async () => {
    const { worker, exit, messages } = shell("dd bs=100 count=1 <&3 >&3 2>/dev/null; cat <&3 >/dev/null; exit 3")
    worker.send(9, Buffer.from("hello"))
    await until(() => messages.length === 1)
    assert.strictEqual(messages[0]?.payload.toString(), "hello")
    worker.close()
    assert.deepStrictEqual(await exit, { code: 3, signal: null })
  })

  it("share a usage page that outlives them", async () => {
    // Word 1 of the page (after the magic) counts calls.
    const { worker, exit } = shell("printf '\\052' | dd of=/proc/self/fd/4 bs=1 seek=8 conv=notrunc 2>/dev/null")
    await exit
    assert.strictEqual(worker.usage().calls, 42)
  })

  it("inherit no descriptor but the standard ones, control and usage", async () => {
    const { exit, messages } = shell(
      "printf '\\001\\000' >/dev/null; printf '\\001\\000%s' \"$(ls /proc/$$/fd | tr '\\n' ' ')\" >&3"
    )
    await exit
    const open = (messages[0]?.payload.toString() ?? "").trim().split(" ").map(Number)
    assert.deepStrictEqual(
      open.filter((fd) => fd < 10),
      [0, 1, 2, 3, 4]
    )
  })

  it("that cannot be started are an error with the system's code", () => {
    assert.throws(
      () =>
        addon.spawnWorker(
          { path: "/no/such/worker", args: [], env: {} },
          () => {},
          () => {}
        ),
      /cannot start \/no\/such\/worker: No such file/
    )
  })
})

describe("the acceptor", () => {
  it("hands over a connection with its whole preface, however slowly it came", async () => {
    const { server, seen } = arrivals()
    const bytes = preface()
    const socket: Socket = connect(server.port, "127.0.0.1")
    await once(socket, "connect")
    socket.write(bytes.subarray(0, 10))
    await new Promise((resolve) => setTimeout(resolve, 50))
    socket.write(bytes.subarray(10))
    await until(() => seen.length === 1)
    const arrival = seen[0]!
    assert.deepStrictEqual(arrival.preface, bytes)
    assert.match(arrival.peer, /^127\.0\.0\.1:\d+$/)
    const data = once(socket, "data")
    writeSync(arrival.fd, "welcome")
    assert.strictEqual(String((await data)[0]), "welcome")
    closeSync(arrival.fd)
    socket.destroy()
    server.close()
  })

  it("closes a connection that does not speak Juice", async () => {
    const { server, seen } = arrivals()
    const socket = connect(server.port, "127.0.0.1")
    socket.on("error", () => {})
    socket.write(Buffer.from("GET / HTTP/1.1\r\nHost: example\r\nAccept: text/html, text/plain, */*\r\n\r\n"))
    await new Promise((resolve) => socket.on("close", resolve))
    assert.strictEqual(seen.length, 0)
    server.close()
  })

  it("names the address that is taken", () => {
    const { server } = arrivals()
    assert.throws(
      () => addon.listen({ host: "127.0.0.1", port: server.port }, () => {}),
      /listen 127\.0\.0\.1:\d+: Address already in use/
    )
    server.close()
  })
})

describe("process watch", () => {
  it("tells when a process ends", async () => {
    const child = spawn("sleep", ["60"])
    const ended = new Promise<void>((resolve) => addon.watchProcess(child.pid, resolve))
    child.kill("SIGKILL")
    await ended
  })

  it("stays silent after stop", async () => {
    const child = spawn("sleep", ["60"])
    let told = false
    const watch = addon.watchProcess(child.pid, () => {
      told = true
    })
    watch.stop()
    watch.stop()
    child.kill("SIGKILL")
    await once(child, "exit")
    await new Promise((resolve) => setTimeout(resolve, 100))
    assert.isFalse(told)
  })

  it("refuses a process that does not exist", () => {
    assert.throws(() => addon.watchProcess(2 ** 22 + 1, () => {}), /pidfd_open/)
  })
})

describe("inventory", () => {
  it("lists the GPUs, or says that there is no driver", () => {
    const driver = readFileSync("/proc/self/maps", "utf8").includes("libnvidia-ml")
    try {
      const found = addon.inventory()
      assert.isAbove(found.gpus.length, 0)
      assert.match(found.gpus[0].uuid, /^GPU-/)
    } catch (error) {
      assert.strictEqual((error as { code?: string }).code, "NVML_UNAVAILABLE")
      assert.isFalse(driver)
    }
  })
})

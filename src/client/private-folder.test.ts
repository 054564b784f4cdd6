import { existsSync, linkSync, mkdirSync, mkdtempSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs"
import { createServer, type Server } from "node:net"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { makePrivateFolder, SOCKET, sweepBeside } from "./private-folder.ts"

let place: string
const servers: Array<Server> = []
beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), "juice-sweep-"))
})
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
  rmSync(place, { recursive: true })
})

const age = (folder: string) => {
  const past = Date.now() / 1000 - 3600
  utimesSync(folder, past, past)
}

/** A folder as a broker leaves it that listens, or that has been killed. */
const brokerFolder = async (alive: boolean): Promise<string> => {
  const folder = makePrivateFolder(place)
  const server = createServer()
  const path = join(folder, SOCKET)
  await new Promise<void>((resolve) => server.listen(path, resolve))
  if (alive) servers.push(server)
  else {
    // Closing a server removes its socket; a dead one's stays.
    const kept = join(folder, "kept")
    linkSync(path, kept)
    await new Promise((resolve) => server.close(resolve))
    renameSync(kept, path)
  }
  return folder
}

describe("folders of brokers", () => {
  it("are swept by a later one where their broker is dead, and only then", async () => {
    const dead = await brokerFolder(false)
    const young = await brokerFolder(false)
    const alive = await brokerFolder(true)
    const full = await brokerFolder(false)
    writeFileSync(join(full, "file"), "")
    const foreign = join(place, "juice-data")
    mkdirSync(foreign)
    for (const folder of [dead, alive, full, foreign]) age(folder)
    const mine = await brokerFolder(true)
    await sweepBeside(mine)
    assert.deepEqual([dead, young, alive, full, foreign, mine].map(existsSync), [false, true, true, true, true, true])
  })
  it("are made in the next place where a path would be too long for a socket", () => {
    const folder = makePrivateFolder(join(place, "long".repeat(30)))
    assert.match(basename(folder), /^juice-/)
    assert.isFalse(folder.startsWith(place))
    rmSync(folder, { recursive: true })
  })
})

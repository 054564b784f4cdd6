/** The folder of a broker's socket: private, and swept by a later broker where its own was killed with -9. */
import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"

/** The socket's name in its folder. */
export const SOCKET = "broker"
const NAME = /^juice-[A-Za-z0-9]{6}$/
/** A folder younger than this (ms) may belong to a broker that is about to listen. */
const MIN_AGE = 60_000

/** Makes one. A Unix socket's path may have 107 bytes, so long runtime folders are passed over. */
export const makePrivateFolder = (wanted?: string): string => {
  const places = [wanted ?? process.env.XDG_RUNTIME_DIR, tmpdir(), "/tmp"]
  for (const place of places) {
    if (place === undefined || place === "" || Buffer.byteLength(place) > 80) continue
    try {
      const folder = mkdtempSync(join(place, "juice-"))
      chmodSync(folder, 0o700)
      return folder
    } catch {
      // The next place may do; the last failure is reported below.
    }
  }
  throw new Error(`no private folder could be made in ${places.filter(Boolean).join(", ")}`)
}

/** Whether this is a folder of ours, old enough, with a socket and nothing else in it. */
const isCandidate = (folder: string): boolean => {
  const info = statSync(folder)
  const old = Date.now() - info.mtimeMs > MIN_AGE
  const content = info.isDirectory() && info.uid === process.getuid!() && old ? readdirSync(folder) : []
  return content.length === 1 && content[0] === SOCKET
}

/** Nobody listens: the only thing that tells a dead broker from one in another process namespace. */
const isDead = (path: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(path)
    socket.unref()
    socket.once("connect", () => {
      socket.destroy()
      resolve(false)
    })
    socket.once("error", (error: NodeJS.ErrnoException) => resolve(error.code === "ECONNREFUSED"))
  })

/** Removes the folders beside this one whose brokers are dead. Never fails: it is a courtesy. */
export const sweepBeside = async (folder: string): Promise<void> => {
  const place = join(folder, "..")
  try {
    for (const name of readdirSync(place).filter((entry) => NAME.test(entry))) {
      const other = join(place, name)
      try {
        if (other !== folder && isCandidate(other) && (await isDead(join(other, SOCKET)))) {
          rmSync(other, { recursive: true, force: true })
        }
      } catch {
        // Another broker has swept it, or it is not ours to touch.
      }
    }
  } catch {
    // A place that cannot be listed has nothing that we could sweep.
  }
}

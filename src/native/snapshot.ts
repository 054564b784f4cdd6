/**
 * The device snapshot that a ready worker hands its host (native/link/snapshot.h): what the host reads of it, and the
 * one thing that it changes.
 */
import { Reader } from "./codec.ts"

const FORMAT = 2
const MAX_DEVICES = 64

export interface SnapshotDevice {
  readonly name: string
  /** "GPU-…" */
  readonly uuid: string
  /** Bytes. */
  readonly totalMemory: number
  /** "9.0" */
  readonly computeCapability: string
}

/** CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR. */
const CAPABILITY_MAJOR = 75
const CAPABILITY_MINOR = 76

const uuidText = (bytes: Buffer): string => {
  const hex = bytes.toString("hex")
  const groups = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)]
  return `GPU-${groups.join("-")}`
}

/** Walks over the devices; `onMemory` gets the offset of each one's total memory, a u64. */
const walk = (
  snapshot: Buffer,
  onMemory: (device: number, offset: number) => void
): Array<SnapshotDevice> | undefined => {
  const reader = new Reader(snapshot)
  if (reader.u32() !== FORMAT) return undefined
  reader.i32()
  reader.text()
  const count = reader.u32()
  if (count > MAX_DEVICES) return undefined
  const devices: Array<SnapshotDevice> = []
  for (let index = 0; index < count && reader.ok; index++) {
    const name = reader.text()
    const uuid = uuidText(reader.take(16))
    onMemory(index, reader.offset)
    const totalMemory = Number(reader.u64())
    reader.text()
    const attributes = new Map<number, number>()
    for (let left = reader.u32(); left > 0 && reader.ok; left--) attributes.set(reader.i32(), reader.i32())
    reader.take(reader.u32() * 12)
    reader.take(8)
    // Where the multiprocessors sit: for the client, not for us.
    reader.bytes()
    reader.bytes()
    const [major, minor] = [attributes.get(CAPABILITY_MAJOR) ?? 0, attributes.get(CAPABILITY_MINOR) ?? 0]
    devices.push({ name, uuid, totalMemory, computeCapability: `${major}.${minor}` })
  }
  return reader.ok ? devices : undefined
}

/** The devices in a snapshot, or undefined when it is of another format. */
export const snapshotDevices = (snapshot: Buffer): ReadonlyArray<SnapshotDevice> | undefined => walk(snapshot, () => {})

/** A copy in which each device says at most as much memory as its limit (bytes; undefined: no limit). */
export const limitMemory = (snapshot: Buffer, limits: ReadonlyArray<number | undefined>): Buffer => {
  const copy = Buffer.from(snapshot)
  walk(snapshot, (device, offset) => {
    const limit = limits[device]
    if (limit === undefined || copy.length < offset + 8) return
    const total = copy.readBigUInt64LE(offset)
    if (BigInt(limit) < total) copy.writeBigUInt64LE(BigInt(limit), offset)
  })
  return copy
}

/**
 * Ids: sixteen bytes, written as 32 lower-case hex digits.
 *
 * Ids are minted by whoever starts a thing (a client its sessions and commands, a host its incarnations), so that
 * repeating a request is harmless. They are laid out as UUID version 7: the first 48 bits are milliseconds, so ids
 * sort by age. The data plane carries the same sixteen bytes raw.
 */
import { randomBytes } from "node:crypto"
import * as Schema from "effect/Schema"

const Hex16 = Schema.String.check(Schema.isPattern(/^[0-9a-f]{32}$/, { expected: "an id of 32 lower-case hex digits" }))

/** A session: a lease of GPU capacity. Minted by the client. */
export const SessionId = Hex16.pipe(Schema.brand("SessionId"))
export type SessionId = typeof SessionId.Type

/** A command: one wish of one client, however often it is sent. Minted by the sender. */
export const CommandId = Hex16.pipe(Schema.brand("CommandId"))
export type CommandId = typeof CommandId.Type

/** One set of workers on one host. A restarted host that adopts its workers keeps it. Minted by the host. */
export const Incarnation = Hex16.pipe(Schema.brand("Incarnation"))
export type Incarnation = typeof Incarnation.Type

/** A client process inside its session: the session's broker numbers them from 1. */
export const ProcessNumber = Schema.Int.check(Schema.isGreaterThan(0))
export type ProcessNumber = typeof ProcessNumber.Type

/** One run of one router process. Minted by the router. */
export const RouterId = Hex16.pipe(Schema.brand("RouterId"))
export type RouterId = typeof RouterId.Type

/**
 * A host's name: one subject token that stays the same across restarts, normally its machine's name. Two running
 * hosts of one site must not share a name.
 */
export const HostId = Schema.String.check(
  Schema.isPattern(/^[a-z0-9][a-z0-9-]{0,62}$/, {
    expected: "a host name of 1 to 63 lower-case letters, digits and dashes"
  })
).pipe(Schema.brand("HostId"))
export type HostId = typeof HostId.Type

/** Mints an id from the present time (ms since 1970) and 74 random bits. */
const mint = (now: number): string => {
  const bytes = randomBytes(16)
  bytes.writeUIntBE(now, 0, 6)
  bytes[6] = 0x70 | (bytes[6]! & 0x0f)
  bytes[8] = 0x80 | (bytes[8]! & 0x3f)
  return bytes.toString("hex")
}

export const mintSessionId = (now = Date.now()): SessionId => mint(now) as SessionId
export const mintCommandId = (now = Date.now()): CommandId => mint(now) as CommandId
export const mintIncarnation = (now = Date.now()): Incarnation => mint(now) as Incarnation
export const mintRouterId = (now = Date.now()): RouterId => mint(now) as RouterId

/** The sixteen raw bytes of an id, as the data plane's preface carries them. */
export const idToBytes = (id: string): Uint8Array => new Uint8Array(Buffer.from(id, "hex"))

/** The id of sixteen raw bytes; the caller says what kind of id it is by the schema that it decodes it with. */
export const idFromBytes = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex")

/** A machine's name turned into a host name: lower case, anything unusual becomes a dash, at most 63 characters. */
export const hostIdFromName = (name: string): HostId => {
  const plain = name
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, "-")
    .replace(/^-+/, "")
    .slice(0, 63)
    .replace(/-+$/, "")
  return (plain === "" ? "host" : plain) as HostId
}

/**
 * The id of the index-th event of a decision: derived, never stored. `cause` is the command's id, or a report's key
 * (see reportKey).
 */
export const eventId = (cause: string, index: number): string => `${cause}.${index}`

/**
 * The session key's way from the host to the client, and the keys derived from it.
 *
 * The client's request carries an ephemeral X25519 public key. The host makes a session key and an ephemeral key pair
 * of its own, and seals: shared secret = X25519, key = HKDF-SHA-256 over it (salt: the session's 16 bytes; info: a
 * label and both public keys), AES-256-GCM with the session and the attempt as associated data. Router, log and NATS
 * carry only the sealed form, and a sealed key of another session or attempt does not open.
 */
import {
  createCipheriv,
  createDecipheriv,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
  randomBytes
} from "node:crypto"
import * as Result from "effect/Result"
import { SealBroken } from "./errors.ts"
import { idToBytes, type ProcessNumber, type SessionId } from "./ids.ts"
import type { Sealed } from "./prepare.ts"

/** Bytes of a session key and of every key derived from it. */
export const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16
const INFO = "juice/v1/session-key"

/** A client's ephemeral key pair: the public half as unpadded base64url, the private half never leaves the process. */
export interface SealKeyPair {
  readonly publicKey: string
  readonly privateKey: KeyObject
}

export const generateSealKeyPair = (): SealKeyPair => {
  const { privateKey, publicKey } = generateKeyPairSync("x25519")
  return { publicKey: publicKey.export({ format: "jwk" }).x!, privateKey }
}

export const newSessionKey = (): Uint8Array => new Uint8Array(randomBytes(KEY_BYTES))

const publicKeyObject = (x: string): KeyObject =>
  createPublicKey({ key: { kty: "OKP", crv: "X25519", x }, format: "jwk" })

const sealingKey = (secret: Buffer, session: SessionId, clientKey: string, hostKey: string): Uint8Array =>
  new Uint8Array(hkdfSync("sha256", secret, idToBytes(session), `${INFO}|${clientKey}|${hostKey}`, KEY_BYTES))

const associated = (session: SessionId, attempt: number): Buffer => Buffer.from(`${session}|${attempt}`)

/**
 * On the host: seals `sessionKey` (32 bytes) to the client's public key. Fails with SealBroken when that key is not
 * a usable X25519 point.
 */
export const sealToClient = (options: {
  readonly sessionKey: Uint8Array
  readonly session: SessionId
  readonly attempt: number
  readonly clientPublicKey: string
}): Result.Result<Sealed, SealBroken> =>
  Result.try({
    try: () => {
      const host = generateSealKeyPair()
      const secret = diffieHellman({
        privateKey: host.privateKey,
        publicKey: publicKeyObject(options.clientPublicKey)
      })
      const key = sealingKey(secret, options.session, options.clientPublicKey, host.publicKey)
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv("aes-256-gcm", key, nonce)
      cipher.setAAD(associated(options.session, options.attempt))
      const sealed = Buffer.concat([cipher.update(options.sessionKey), cipher.final(), cipher.getAuthTag()])
      return {
        sealedKey: sealed.toString("base64url"),
        hostPublicKey: host.publicKey,
        nonce: nonce.toString("base64url")
      }
    },
    catch: () => new SealBroken({ session: options.session })
  })

/** On the client: the session key (32 bytes), or SealBroken when it was not sealed to this client for this attempt. */
export const openSealed = (options: {
  readonly sealed: Sealed
  readonly session: SessionId
  readonly attempt: number
  readonly keyPair: SealKeyPair
}): Result.Result<Uint8Array, SealBroken> =>
  Result.try({
    try: () => {
      const { sealed, keyPair } = options
      const secret = diffieHellman({
        privateKey: keyPair.privateKey,
        publicKey: publicKeyObject(sealed.hostPublicKey)
      })
      const key = sealingKey(secret, options.session, keyPair.publicKey, sealed.hostPublicKey)
      const bytes = Buffer.from(sealed.sealedKey, "base64url")
      const decipher = createDecipheriv("aes-256-gcm", key, Buffer.from(sealed.nonce, "base64url"), {
        authTagLength: TAG_BYTES
      })
      decipher.setAAD(associated(options.session, options.attempt))
      decipher.setAuthTag(bytes.subarray(bytes.length - TAG_BYTES))
      const opened = Buffer.concat([decipher.update(bytes.subarray(0, bytes.length - TAG_BYTES)), decipher.final()])
      if (opened.length !== KEY_BYTES) throw new RangeError("a session key has 32 bytes")
      return new Uint8Array(opened)
    },
    catch: () => new SealBroken({ session: options.session })
  })

/**
 * A key for one purpose (32 bytes): HKDF-SHA-256 of the session key, salt = the session's 16 raw bytes, info = label.
 * Host and broker derive the same without talking; a process knows only its own.
 */
export const deriveKey = (sessionKey: Uint8Array, session: SessionId, label: string): Uint8Array =>
  new Uint8Array(hkdfSync("sha256", sessionKey, idToBytes(session), label, KEY_BYTES))

/** The label of a client process's key (native/link/keys.h derives the same). */
export const processKeyLabel = (process: ProcessNumber): string => `process/${process}`
/** The label of the broker's key: for the session's own connection to the host. */
export const BROKER_KEY_LABEL = "broker"

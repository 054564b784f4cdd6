/**
 * Names that become subject tokens: sites and principals.
 */
import * as Schema from "effect/Schema"

/** A site's name: one subject token, and in upper case a part of its streams' names. */
export const Site = Schema.String.check(
  Schema.isPattern(/^[a-z0-9][a-z0-9-]{0,31}$/, {
    expected: "a site name of 1 to 32 lower-case letters, digits and dashes"
  })
).pipe(Schema.brand("Site"))
export type Site = typeof Site.Type

/** The site of those who name none. */
export const DEFAULT_SITE = "local" as Site

/** Who asks: a pseudonym bound to the connection's credentials by the server's permissions. */
export const Principal = Schema.NonEmptyString.check(Schema.isMaxLength(128)).pipe(Schema.brand("Principal"))
export type Principal = typeof Principal.Type

/** The principal of connections without credentials. */
export const DEV_PRINCIPAL = "dev" as Principal

const encoder = new TextEncoder()
const decoder = new TextDecoder("utf-8", { fatal: true })

/**
 * A principal as one subject token. Letters, digits and dashes stand for themselves, every other byte of its UTF-8
 * is `_` and two lower-case hex digits, so different principals never share a token and a token shows its principal.
 */
export const principalToken = (principal: Principal): string => {
  let token = ""
  for (const byte of encoder.encode(principal)) {
    const char = String.fromCharCode(byte)
    token += /[A-Za-z0-9-]/.test(char) ? char : `_${byte.toString(16).padStart(2, "0")}`
  }
  return token
}

/** The principal of a token, or undefined when no principal encodes to exactly this token. */
export const principalFromToken = (token: string): Principal | undefined => {
  if (!/^(?:[A-Za-z0-9-]|_[0-9a-f]{2})+$/.test(token)) return undefined
  const bytes = token
    .match(/_[0-9a-f]{2}|./g)!
    .map((part) => (part.startsWith("_") ? Number.parseInt(part.slice(1), 16) : part.charCodeAt(0)))
  try {
    const principal = decoder.decode(new Uint8Array(bytes)) as Principal
    return Schema.is(Principal)(principal) && principalToken(principal) === token ? principal : undefined
  } catch {
    return undefined
  }
}

/**
 * The inbox prefix of a principal's connections: answers travel under it. With a shared prefix one client could read
 * another's answers; with one of its own, the server's permissions can keep them apart.
 */
export const inboxPrefix = (principal: Principal): string => `_INBOX_${principalToken(principal)}`

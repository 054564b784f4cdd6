import { type Prototype, parsePrototype } from "./prototype.ts"

/**
 * How a call crosses the link; see docs/architecture.md, Call classes. An entry without a class is exported,
 * and answers CUDA_ERROR_NOT_SUPPORTED.
 */
export type CallClass = "local" | "cached" | "posted" | "waited" | "custom"

/** What is known of an implemented entry point beyond its prototype. */
export interface CallRules {
  readonly class: CallClass
  /**
   * One rule for each parameter that its type alone does not explain; see rules.ts for the grammar.
   * Only entries with generated code need them.
   */
  readonly args?: Readonly<Record<string, string>>
  /** C expressions over the parameters: where one is false the answer is CUDA_ERROR_INVALID_VALUE. */
  readonly require?: ReadonlyArray<string>
  /** The driver may block in this call (a synchronisation, a JIT compilation, a free). */
  readonly mayBlock?: true
  /** The call is allowed without a current context. */
  readonly contextless?: true
  /** One end is written by hand, although the payload is the generated one. Custom entries are by hand at both ends. */
  readonly byHand?: "shim" | "worker"
  /**
   * Sent as this other entry, whose parameters begin with this entry's: the missing ones are 0 (no flags, the default
   * stream).
   */
  readonly as?: string
}

export interface EntryOptions extends Partial<CallRules> {
  /**
   * Suffix of the variant for which stream 0 is the calling thread's own default stream. It has the same prototype and
   * shares the call.
   */
  readonly perThread?: "ptds" | "ptsz"
}

export interface Entry {
  readonly name: string
  readonly prototype: Prototype
  /** False where the driver exports a name that no public header declares. */
  readonly known: boolean
  /** The exported name of the per-thread variant, where there is one. */
  readonly perThreadName: string | undefined
  readonly rules: CallRules | undefined
}

/** A part of the API: one file of native/idl. */
export interface Area {
  readonly name: string
  readonly about: string
  readonly entries: ReadonlyArray<Entry>
}

export const area = (name: string, about: string, entries: ReadonlyArray<Entry>): Area => ({ name, about, entries })

/** An entry point with a public prototype. */
export const fn = (prototype: string, options: EntryOptions = {}): Entry => {
  const parsed = parsePrototype(prototype)
  const { perThread, class: callClass, ...rest } = options
  return {
    name: parsed.name,
    prototype: parsed,
    known: true,
    perThreadName: perThread === undefined ? undefined : `${parsed.name}_${perThread}`,
    rules: callClass === undefined ? undefined : { class: callClass, ...rest }
  }
}

/** An entry point that the driver exports and no public header declares: exported, never implemented. */
export const unknown = (name: string): Entry => ({ ...fn(`CUresult ${name}(void)`), known: false })

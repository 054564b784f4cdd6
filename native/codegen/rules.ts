import { entries } from "../idl/api.ts"
import { opcodes } from "../idl/opcodes.ts"
import type { Parameter } from "../idl/prototype.ts"
import type { Entry } from "../idl/schema.ts"

/**
 * What generated code does with one parameter. The rule stands in `args` of native/idl; without one the type decides.
 *
 * | rule             | parameter                | on the wire, in the order of the parameters                       |
 * |------------------|--------------------------|-------------------------------------------------------------------|
 * | (none)           | number, device pointer   | the value                                                         |
 * | (none)           | CUstream                 | u64, see docs/architecture.md, Handles                            |
 * | (none)           | CUfunction               | u64 wire id of a function, or of a kernel passed as one           |
 * | (none)           | another handle           | u64 wire id                                                       |
 * | (none)           | const char*              | u32 length, bytes without the NUL                                 |
 * | `new KIND`       | pointer to a handle      | u64 wire id that the shim minted                                  |
 * | `drop KIND`      | handle                   | u64 wire id, forgotten afterwards                                 |
 * | `read(BYTES)`    | device pointer           | u64; the device reads that many bytes there                       |
 * | `written(BYTES)` | device pointer           | u64; the device writes that many bytes there                      |
 * | `address`        | void*                    | u64: an address of the device in the disguise of a pointer        |
 * | `in`             | pointer                  | u32 size, the bytes of what it points to                          |
 * | `in[COUNT]`      | pointer                  | u32 size, the bytes of the array                                  |
 * | `config`         | const CUlaunchConfig*    | see native/gen/launch_config.h                                    |
 * | `inout`          | pointer                  | as `in`; the Reply carries the bytes back                         |
 * | `out`, `out?`    | pointer                  | nothing; the Reply carries the bytes. `?`: null is allowed        |
 *
 * A Reply carries its values in the order of the parameters, and only when the call succeeded. BYTES and COUNT are C
 * expressions over the parameters.
 */
export type Argument =
  | { readonly kind: "value"; readonly size: number; readonly float: boolean }
  | { readonly kind: "stream" }
  | { readonly kind: "callable" }
  | { readonly kind: "handle"; readonly object: ObjectKind }
  | { readonly kind: "text" }
  | { readonly kind: "new"; readonly object: ObjectKind }
  | { readonly kind: "drop"; readonly object: ObjectKind }
  | { readonly kind: "device"; readonly bytes: string; readonly written: boolean }
  | { readonly kind: "address" }
  | { readonly kind: "in"; readonly type: string; readonly size: number; readonly count: string | undefined }
  | { readonly kind: "config" }
  | { readonly kind: "inout"; readonly type: string; readonly size: number }
  | {
      readonly kind: "out"
      readonly type: string
      readonly size: number
      readonly scalar: boolean
      readonly nullable: boolean
    }

export type ObjectKind = "context" | "stream" | "event" | "module" | "function" | "library" | "kernel"

/** The handles whose objects the shim mints, by type. Streams and functions have rules of their own. */
const handleTypes: Readonly<Record<string, ObjectKind>> = {
  CUcontext: "context",
  CUstream: "stream",
  CUevent: "event",
  CUmodule: "module",
  CUfunction: "function",
  CUlibrary: "library",
  CUkernel: "kernel"
}

/** Sizes of the numbers that generated calls pass; every enumeration of cuda_abi.h is a four-byte integer. */
const numbers: Readonly<Record<string, number>> = {
  "unsigned char": 1,
  "unsigned short": 2,
  int: 4,
  "unsigned int": 4,
  float: 4,
  size_t: 8,
  "unsigned long long": 8,
  CUdevice: 4,
  CUdeviceptr: 8,
  CUarray_format: 4,
  CUdevice_P2PAttribute: 4,
  CUfunc_cache: 4,
  CUfunction_attribute: 4,
  CUlimit: 4,
  CUsharedconfig: 4,
  CUstreamAttrID: 4,
  CUtensorMapDataType: 4,
  CUtensorMapFloatOOBfill: 4,
  CUtensorMapIm2ColWideMode: 4,
  CUtensorMapInterleave: 4,
  CUtensorMapL2promotion: 4,
  CUtensorMapSwizzle: 4
}

/** Sizes of the structures that generated calls pass; the generated code asserts them. */
export const structures: Readonly<Record<string, number>> = { CUstreamAttrValue: 64, CUtensorMap: 128 }

const objectKind = (name: string, where: string): ObjectKind => {
  const known: ReadonlyArray<string> = Object.values(handleTypes)
  if (!known.includes(name)) throw new Error(`${where}: no kind of object is called "${name}"`)
  return name as ObjectKind
}

const pointee = (parameter: Parameter, where: string): { type: string; size: number; scalar: boolean } => {
  const type = parameter.pointee?.replace(/^const /, "")
  if (type === undefined) throw new Error(`${where} is no pointer`)
  const size = numbers[type] ?? structures[type]
  if (size === undefined) throw new Error(`${where}: the size of "${type}" is not in rules.ts`)
  return { type, size, scalar: type in numbers }
}

/** Reads the rule of one parameter. Throws, naming the entry and the parameter, where rule and type do not agree. */
export const argumentOf = (entry: Entry, parameter: Parameter): Argument => {
  const where = `${entry.name}: ${parameter.name}`
  const rule = entry.rules?.args?.[parameter.name]
  if (rule === undefined) {
    if (parameter.type === "const char*") return { kind: "text" }
    if (parameter.type === "CUstream") return { kind: "stream" }
    if (parameter.type === "CUfunction") return { kind: "callable" }
    const object = handleTypes[parameter.type]
    if (object !== undefined) return { kind: "handle", object }
    const size = numbers[parameter.type]
    if (size === undefined) throw new Error(`${where} needs a rule: its type is ${parameter.type}`)
    return { kind: "value", size, float: parameter.type === "float" }
  }
  if (rule === "config") return { kind: "config" }
  if (rule === "address") return { kind: "address" }
  if (rule === "in") return { kind: "in", ...pointee(parameter, where), count: undefined }
  if (rule === "inout") return { kind: "inout", ...pointee(parameter, where) }
  if (rule === "out" || rule === "out?") return { kind: "out", ...pointee(parameter, where), nullable: rule === "out?" }
  const match =
    /^(?:(?<minted>new|drop) (?<object>\w+)|(?<access>read|written)\((?<bytes>.+)\)|in\[(?<count>.+)\])$/.exec(
      rule
    )?.groups
  if (match?.minted !== undefined) {
    return { kind: match.minted as "new" | "drop", object: objectKind(match.object!, where) }
  }
  if (match?.access !== undefined) return { kind: "device", bytes: match.bytes!, written: match.access === "written" }
  if (match?.count !== undefined) return { kind: "in", ...pointee(parameter, where), count: match.count }
  throw new Error(`${where}: "${rule}" is not a rule`)
}

/** A call whose payload is generated: one parameter after the other, as the table above says. */
export interface GeneratedCall {
  readonly entry: Entry
  readonly arguments: ReadonlyArray<readonly [parameter: Parameter, argument: Argument]>
}

export const callOf = (entry: Entry): GeneratedCall => {
  const rules = entry.rules
  for (const name of Object.keys(rules?.args ?? {})) {
    if (!entry.prototype.parameters.some((one) => one.name === name)) {
      throw new Error(`${entry.name} has no parameter "${name}"`)
    }
  }
  const list = entry.prototype.parameters.map((parameter) => [parameter, argumentOf(entry, parameter)] as const)
  if (rules?.class === "posted" && list.some(([, one]) => one.kind === "out" || one.kind === "inout")) {
    throw new Error(`${entry.name} is posted, so that it cannot return a value`)
  }
  return { entry, arguments: list }
}

export const entryNamed = (name: string): Entry => {
  const entry = entries.find((one) => one.name === name)
  if (entry === undefined) throw new Error(`"${name}" is not an entry point of native/idl`)
  return entry
}

const hasGeneratedPayload = (entry: Entry): boolean =>
  entry.rules?.class === "posted" || entry.rules?.class === "waited" || entry.rules?.class === "cached"

/** Entries whose stub in the shim is generated, under their own opcode or as another entry. */
export const generatedStubs = entries.filter((entry) => hasGeneratedPayload(entry) && entry.rules?.byHand !== "shim")

/** Entries whose handler in the worker is generated. */
export const generatedHandlers = entries.filter(
  (entry) => hasGeneratedPayload(entry) && entry.rules?.as === undefined && entry.rules?.byHand !== "worker"
)

/** Opcodes whose handler in the worker is written by hand. */
export const handlersByHand: ReadonlyArray<string> = Object.keys(opcodes).filter(
  (name) => !generatedHandlers.some((entry) => entry.name === name)
)

for (const entry of entries.filter(hasGeneratedPayload)) {
  if (entry.rules?.as === undefined && !(entry.name in opcodes)) throw new Error(`${entry.name} has no opcode`)
}

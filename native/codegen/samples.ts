import type { Parameter } from "../idl/prototype.ts"
import type { Entry } from "../idl/schema.ts"
import { type Argument, callOf, generatedHandlers, generatedStubs } from "./rules.ts"

/**
 * One sample call for each entry with a generated payload: the golden vectors of the wire. The bytes are made here,
 * from the table in rules.ts and nothing else, so that they check the generated C++ of both ends.
 */
export interface SampleArgument {
  readonly parameter: Parameter
  readonly argument: Argument
  /** A number, a wire id, an address, or the count of an array's elements. */
  readonly value: bigint
}

export interface Sample {
  readonly entry: Entry
  readonly arguments: ReadonlyArray<SampleArgument>
  readonly payload: Buffer
  /** What the Reply carries after its head when the call succeeds. */
  readonly results: Buffer
}

/** The id that the shim mints in every sample. */
export const mintedId = 0x77n

/** Byte i of every structure and array of the samples. */
const pattern = (size: number): Buffer =>
  Buffer.from(Array.from({ length: size }, (_, index) => (index * 7 + 3) & 0xff))

/** Parameters that a `require` expression binds. */
const fixed: Readonly<Record<string, bigint>> = {
  tensorRank: 4n,
  Flags: 1n,
  config: 2n,
  dstDevice: 0x140n,
  dstPitch: 0x1000n
}

const number = (value: bigint, size: number): Buffer => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(BigInt.asUintN(64, value))
  return bytes.subarray(0, size)
}

const prefixed = (bytes: Buffer): Buffer => Buffer.concat([number(BigInt(bytes.length), 4), bytes])

const samplePart = ({ argument, value }: SampleArgument): Buffer => {
  switch (argument.kind) {
    case "value":
      return number(value, argument.size)
    case "stream":
      return number(16n + value, 8)
    case "new":
      return number(mintedId, 8)
    case "callable":
    case "handle":
    case "drop":
    case "device":
    case "address":
      return number(value, 8)
    case "text":
      return prefixed(Buffer.from("sample"))
    case "in":
      return prefixed(pattern(argument.size * Number(value)))
    case "inout":
      return prefixed(pattern(argument.size))
    case "config":
      return Buffer.concat([
        ...[2n, 3n, 4n, 32n, 2n, 1n, 512n, 1n, BigInt(configAttribute)].map((one) => number(one, 4)),
        number(0n, 4),
        pattern(64)
      ])
    case "out":
      return Buffer.alloc(0)
  }
}

/** CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: the attribute of the sample launch configuration that travels. */
export const configAttribute = 4

const resultPart = ({ argument, value }: SampleArgument): Buffer => {
  if (argument.kind === "out") return argument.scalar ? number(value, argument.size) : pattern(argument.size)
  return argument.kind === "inout" ? pattern(argument.size) : Buffer.alloc(0)
}

const sampleOf = (entry: Entry): Sample => {
  const values: Record<string, number> = {}
  const list = callOf(entry).arguments.map(([parameter, argument], index): SampleArgument => {
    const own = BigInt(index + 1)
    const value =
      fixed[parameter.name] ??
      (argument.kind === "value" || argument.kind === "out" ? own * 0x11n : 0x100n * own + 0x42n)
    values[parameter.name] = Number(value)
    return { parameter, argument, value }
  })
  const counted = list.map((one): SampleArgument => {
    if (one.argument.kind !== "in") return one
    const expression = one.argument.count ?? "1"
    const count: unknown = new Function(...Object.keys(values), `return ${expression}`)(...Object.values(values))
    return { ...one, value: BigInt(count as number) }
  })
  return {
    entry,
    arguments: counted,
    payload: Buffer.concat(counted.map(samplePart)),
    results: Buffer.concat(counted.map(resultPart))
  }
}

/** In the order of native/idl; floats are left to the Reply's raw bytes. */
export const samples: ReadonlyArray<Sample> = [...new Set([...generatedStubs, ...generatedHandlers])]
  .filter((entry) => entry.rules!.as === undefined)
  .map(sampleOf)

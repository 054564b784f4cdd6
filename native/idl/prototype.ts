/** One parameter of an entry point, its type written as cuda_abi.h writes it. */
export interface Parameter {
  readonly name: string
  /** The whole type with canonical spacing: `const CUgraphNode*`. */
  readonly type: string
  /** The type without the outermost pointer; undefined for a value. */
  readonly pointee: string | undefined
}

export interface Prototype {
  readonly name: string
  readonly result: string
  readonly parameters: ReadonlyArray<Parameter>
}

const normal = (type: string): string =>
  type
    .replace(/\s+/g, " ")
    .replace(/\s*\*\s*/g, "*")
    .trim()

const parseParameter = (text: string, prototype: string): Parameter => {
  const match = /^(?<type>.*[\s*])(?<name>[A-Za-z_]\w*)$/.exec(text.trim())
  if (match?.groups === undefined) throw new Error(`parameter "${text}" of "${prototype}" has no name`)
  const type = normal(match.groups.type!)
  if (!/^(const )?\w+( \w+)*\**$/.test(type)) throw new Error(`type "${type}" of "${prototype}" is not understood`)
  return { name: match.groups.name!, type, pointee: type.endsWith("*") ? type.slice(0, -1) : undefined }
}

/**
 * Reads a C prototype. The driver API needs no more than names, `const` and pointers: function pointers are typedefs
 * and there are no arrays. Throws on anything else.
 */
export const parsePrototype = (text: string): Prototype => {
  const match = /^(?<head>[^()]+[\s*])(?<name>\w+)\((?<parameters>[^()]*)\)$/.exec(text.trim())
  if (match?.groups === undefined) throw new Error(`"${text}" is not a prototype`)
  const list = match.groups.parameters!.trim()
  if (list === "") throw new Error(`"${text}": write (void) for no parameters`)
  return {
    name: match.groups.name!,
    result: normal(match.groups.head!),
    parameters: list === "void" ? [] : list.split(",").map((one) => parseParameter(one, text))
  }
}

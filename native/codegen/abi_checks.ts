import * as fs from "node:fs"
import { functionExports } from "../idl/api.ts"
import { banner } from "./text.ts"

const headers = new URL("../abi/", import.meta.url)

/** The enumerators, and the structures with their outermost fields, that native/abi declares. */
const declared = () => {
  const constants: Array<string> = []
  const layouts: Array<readonly [name: string, fields: ReadonlyArray<string>]> = []
  for (const file of fs
    .readdirSync(headers)
    .filter((one) => one.endsWith(".h"))
    .sort()) {
    let fields: Array<string> | undefined
    for (const line of fs.readFileSync(new URL(file, headers), "utf8").split("\n")) {
      const constant = /^ {4}(CU\w+) = -?\w+,$/.exec(line)?.[1]
      if (constant !== undefined) constants.push(constant)
      if (/^(?:typedef )?(?:struct|union) \w+ \{$/.test(line)) fields = []
      const field = /^ {4}(?:\}|\w[\w ]*[ *]+) ?(\w+)(?:\[\w+\])*;$/.exec(line)?.[1]
      if (field !== undefined) fields?.push(field)
      const closed = /^\} (\w+);$/.exec(line)?.[1]
      if (closed !== undefined && fields !== undefined) layouts.push([closed, fields])
      if (line.startsWith("}")) fields = undefined
    }
  }
  return { constants, layouts }
}

/** native/abi/test/toolkit_checks.inc: what the test compares with the toolkit's header. */
export const abiChecks = (): string => {
  const { constants, layouts } = declared()
  return `${[
    banner("Names to compare with cuda.h: enumerators, structures with their fields, functions."),
    "#ifdef CONSTANT",
    ...constants.map((name) => `CONSTANT(${name})`),
    "#endif",
    "",
    "#ifdef LAYOUT",
    ...layouts.flatMap(([name, fields]) => [`LAYOUT(${name})`, ...fields.map((field) => `FIELD(${name}, ${field})`)]),
    "#endif",
    "",
    "#ifdef FUNCTION",
    ...functionExports.filter(([, entry]) => entry.known).map(([name]) => `FUNCTION(${name})`),
    "#endif"
  ].join("\n")}\n`
}

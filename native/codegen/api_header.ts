import { areas, dataExports } from "../idl/api.ts"
import { banner, parameterList } from "./text.ts"

/** native/gen/cuda_api.h: a prototype for every function that libcuda.so.1 exports. */
export const apiHeader = (): string => {
  const lines = [
    banner("Prototypes of everything that libcuda.so.1 exports."),
    "#pragma once",
    "",
    '#include "native/abi/cuda_abi.h"',
    "",
    "// What defines an entry point exports it: the libraries are compiled with hidden visibility.",
    "#ifndef JUICE_CUDA_API",
    '#define JUICE_CUDA_API extern "C" __attribute__((visibility("default")))',
    "#endif",
    ""
  ]
  for (const area of areas) {
    lines.push(`// ${area.name}: ${area.about}`)
    for (const entry of area.entries) {
      const note = entry.known ? "" : "  // prototype unknown"
      for (const name of [entry.name, entry.perThreadName]) {
        if (name === undefined) continue
        lines.push(
          `JUICE_CUDA_API ${entry.prototype.result} ${name}(${parameterList(entry.prototype, "named")});${note}`
        )
      }
    }
    lines.push("")
  }
  lines.push("// Data symbols, for debuggers.")
  for (const [name, bytes] of dataExports) lines.push(`JUICE_CUDA_API ${dataDeclaration(name, bytes)};`)
  return `${lines.join("\n")}\n`
}

/** Four- and eight-byte symbols are integers; anything else is a byte array. */
export const dataDeclaration = (name: string, bytes: number): string =>
  bytes === 4 ? `uint32_t ${name}` : bytes === 8 ? `uint64_t ${name}` : `char ${name}[${bytes}]`

import { opcodes } from "../idl/opcodes.ts"
import { banner, quote } from "./text.ts"

const byNumber = Object.entries(opcodes).sort(([, a], [, b]) => a - b)

/** One more than the largest opcode. */
export const opcodeCount = byNumber.at(-1)![1] + 1

/** Names indexed by opcode; undefined where a number is not in use. */
export const opcodeNames: ReadonlyArray<string | undefined> = Array.from(
  { length: opcodeCount },
  (_, number) => byNumber.find(([, one]) => one === number)?.[0]
)

/** native/gen/opcodes.h */
export const opcodesHeader = (): string =>
  `${[
    banner("The calls that cross the link."),
    "#pragma once",
    "",
    "#include <cstdint>",
    "",
    "namespace juice {",
    "",
    "enum class Op : uint16_t {",
    ...byNumber.map(([name, number]) => `    ${name} = ${number},`),
    "};",
    "",
    "/// One more than the largest opcode.",
    `constexpr uint16_t kOpCount = ${opcodeCount};`,
    "",
    "/// Names indexed by opcode; null where a number is not in use.",
    "inline constexpr const char* kOpNames[kOpCount] = {",
    ...opcodeNames.map((name) => `    ${name === undefined ? "nullptr" : quote(name)},`),
    "};",
    "",
    '/// The call\'s name, for messages; "unknown call" for a number that this release does not know.',
    "constexpr const char* opName(uint16_t op) {",
    '    return op < kOpCount && kOpNames[op] != nullptr ? kOpNames[op] : "unknown call";',
    "}",
    "",
    "}  // namespace juice"
  ].join("\n")}\n`

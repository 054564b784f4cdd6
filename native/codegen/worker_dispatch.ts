import { entries } from "../idl/api.ts"
import type { Parameter } from "../idl/prototype.ts"
import type { Entry } from "../idl/schema.ts"
import { opcodeNames } from "./opcodes.ts"
import { type Argument, callOf, generatedHandlers, handlersByHand, structures } from "./rules.ts"
import { banner, quote } from "./text.ts"

/** How a handler reads one argument into a local variable, and what it passes to the driver. */
const read = (parameter: Parameter, argument: Argument): { statement: string; passed: string } => {
  const { name, type } = parameter
  const object = "object" in argument ? `ObjectKind::${argument.object}` : ""
  switch (argument.kind) {
    case "value":
      return { statement: `const auto ${name} = in.get<${type}>();`, passed: name }
    case "device":
      return { statement: `const auto ${name} = in.get<CUdeviceptr>();`, passed: name }
    case "address":
      return { statement: `const auto ${name} = in.get<uint64_t>();`, passed: `reinterpret_cast<${type}>(${name})` }
    case "stream":
      return { statement: `const CUstream ${name} = in.stream();`, passed: name }
    case "callable":
      return { statement: `const CUfunction ${name} = in.callable();`, passed: name }
    case "handle":
      return { statement: `const auto ${name} = static_cast<${type}>(in.handle(${object}));`, passed: name }
    case "drop":
      return { statement: `const auto ${name} = static_cast<${type}>(in.dropped(${object}));`, passed: name }
    case "new":
      return {
        statement: `const uint64_t ${name}Id = in.minted(${object}); ${parameter.pointee} ${name} = nullptr;`,
        passed: `&${name}`
      }
    case "text":
      return { statement: `const std::string ${name} = text(in);`, passed: `${name}.c_str()` }
    case "in":
      return {
        statement: `const auto ${name} = array<${argument.type}>(in, ${wide(argument.count ?? "1")});`,
        passed: `${name}.data()`
      }
    case "config":
      return { statement: `const ReceivedConfig ${name}(in.reader());`, passed: `&${name}.config` }
    case "inout":
      return { statement: `auto ${name} = structure<${argument.type}>(in);`, passed: `&${name}` }
    case "out":
      return { statement: `${argument.type} ${name}{};`, passed: `&${name}` }
  }
}

/** Counts are computed in 64 bits, so that a hostile operand cannot wrap around. */
const wide = (expression: string): string => expression.replace(/\b[A-Za-z_]\w*\b/g, "uint64_t{$&}")

const handler = (entry: Entry): ReadonlyArray<string> => {
  const { arguments: list } = callOf(entry)
  const parts = list.map(([parameter, one]) => ({ ...read(parameter, one), parameter, one }))
  const lines = [`CUresult do_${entry.name}(Incoming& in) {`]
  lines.push(...parts.map(({ statement }) => `    ${statement}`))
  lines.push("    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;")
  for (const condition of entry.rules!.require ?? []) {
    lines.push(`    if (!(${condition})) return CUDA_ERROR_INVALID_VALUE;`)
  }
  lines.push(`    const auto call = in.driver().${entry.name};`)
  lines.push("    if (call == nullptr) return CUDA_ERROR_NOT_SUPPORTED;")
  const invocation = `call(${parts.map(({ passed }) => passed).join(", ")})`
  const results = parts.flatMap(({ one, parameter: { name } }) =>
    one.kind === "new"
      ? [`in.made(ObjectKind::${one.object}, ${name}Id, ${name});`]
      : one.kind === "out" && one.scalar
        ? [`in.out().put(${name});`]
        : one.kind === "out" || one.kind === "inout"
          ? [`in.out().raw(&${name}, sizeof ${name});`]
          : []
  )
  if (results.length === 0) {
    lines.push(`    return ${invocation};`)
  } else {
    lines.push(`    const CUresult result = ${invocation};`, "    if (result != CUDA_SUCCESS) return result;")
    lines.push(...results.map((one) => `    ${one}`), "    return CUDA_SUCCESS;")
  }
  lines.push("}", "")
  return lines
}

/** native/gen/custom_handlers.h: what the worker writes by hand. */
export const customHandlers = (): string =>
  `${[
    banner("Handlers that the worker writes by hand; their payloads are in native/link/custom.h."),
    "#pragma once",
    "",
    '#include "native/worker/calls.h"',
    "",
    "namespace juice::worker {",
    "",
    ...handlersByHand.map((name) => `CUresult custom_${name}(Incoming& in);`),
    "",
    "}  // namespace juice::worker",
    "",
    "/// X(name) for each of them.",
    "#define JUICE_CUSTOM_HANDLERS(X) \\",
    handlersByHand.map((name) => `    X(${name})`).join(" \\\n")
  ].join("\n")}\n`

/** native/gen/worker_dispatch.cc: decode, check, call, encode; and the table of all handlers. */
export const workerDispatch = (): string => {
  const mayBlock = new Set(entries.filter((entry) => entry.rules?.mayBlock === true).map((entry) => entry.name))
  const rows = opcodeNames.map((name) => {
    if (name === undefined) return "    {nullptr, nullptr, false},"
    const execute = handlersByHand.includes(name) ? `custom_${name}` : `do_${name}`
    return `    {${quote(name)}, ${execute}, ${mayBlock.has(name)}},`
  })
  return `${[
    banner("What the worker does with each call that arrives."),
    "#include <string>",
    "#include <vector>",
    "",
    '#include "native/gen/custom_handlers.h"',
    '#include "native/gen/launch_config.h"',
    '#include "native/worker/calls.h"',
    "",
    "namespace juice::worker {",
    "namespace {",
    "",
    ...Object.entries(structures).map(([type, size]) => `static_assert(sizeof(${type}) == ${size});`),
    "",
    "/// Exactly `count` elements; anything else is a malformed payload.",
    "template <typename T>",
    "std::vector<T> array(Incoming& in, uint64_t count) {",
    "    const Bytes bytes = in.bytes();",
    "    if (bytes.size() % sizeof(T) != 0 || bytes.size() / sizeof(T) != count) {",
    "        in.reader().fail();",
    "        return {};",
    "    }",
    "    std::vector<T> values(count);",
    "    if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());",
    "    return values;",
    "}",
    "",
    "template <typename T>",
    "T structure(Incoming& in) {",
    "    T value{};",
    "    const Bytes bytes = in.bytes();",
    "    if (bytes.size() != sizeof(T)) {",
    "        in.reader().fail();",
    "    } else {",
    "        std::memcpy(&value, bytes.data(), sizeof(T));",
    "    }",
    "    return value;",
    "}",
    "",
    "[[maybe_unused]] std::string text(Incoming& in) {",
    "    const Bytes bytes = in.bytes();",
    "    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};",
    "}",
    "",
    ...generatedHandlers.flatMap(handler),
    "}  // namespace",
    "",
    "const Handler kHandlers[] = {",
    ...rows,
    "};",
    `const uint16_t kHandlerCount = ${opcodeNames.length};`,
    "",
    "}  // namespace juice::worker"
  ].join("\n")}\n`
}

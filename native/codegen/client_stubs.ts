import type { Parameter } from "../idl/prototype.ts"
import type { Entry } from "../idl/schema.ts"
import { type Argument, callOf, entryNamed, generatedStubs } from "./rules.ts"
import { banner, parameterList } from "./text.ts"

const returnsThroughPointer = (one: Argument): boolean =>
  one.kind === "out" || one.kind === "new" || one.kind === "inout"

/** The statement that writes one argument; checks of the caller's pointers come with it. */
const write = (parameter: Parameter, argument: Argument, perThread: string): string | undefined => {
  const { name, type } = parameter
  const object = "object" in argument ? `ObjectKind::${argument.object}` : ""
  switch (argument.kind) {
    case "value":
      // A device travels as the worker's ordinal, which the program's may differ from.
      return type === "CUdevice" ? `call.ordinal(${name});` : `call.put(${name});`
    case "stream":
      return `call.stream(${name}, ${perThread});`
    case "callable":
      return `call.callable(${name});`
    case "handle":
      return `call.handle(${object}, ${name});`
    case "text":
      return `text(call, ${name});`
    case "new":
      return `call.mint(${object}, reinterpret_cast<void**>(${name}));`
    case "drop":
      return `call.drop(${object}, ${name});`
    case "device":
      return `call.device(${name}, ${argument.bytes}, ${argument.written});`
    case "address":
      return `call.put(reinterpret_cast<uint64_t>(${name}));`
    case "in":
      return `array(call, ${name}, ${argument.count ?? "1"});`
    case "config":
      return `launchConfig(call, ${name});`
    case "inout":
      return `array(call, ${name}, 1);`
    case "out":
      return undefined
  }
}

/** Where the result comes from, and how the values of the Reply get to the caller. */
const finish = (entry: Entry): string => {
  if (entry.rules!.class === "posted") return "return call.post();"
  const outs = callOf(entry).arguments.flatMap(([{ name }, one]) =>
    one.kind === "out" && one.scalar
      ? [`.get(${name})`]
      : one.kind === "out" || one.kind === "inout"
        ? [`.raw(${name}, sizeof *${name})`]
        : []
  )
  return `return call.${entry.rules!.class === "cached" ? "cached" : "wait"}()${outs.join("")}.result();`
}

const sender = (entry: Entry): ReadonlyArray<string> => {
  const { arguments: list } = callOf(entry)
  const rules = entry.rules!
  const streams = list.some(([, one]) => one.kind === "stream")
  // Only entries with a stream parameter differ between their two variants.
  const head = [streams ? "bool perThread" : "", parameterList(entry.prototype, "named")].filter((one) => one !== "")
  const required = list
    .filter(([, one]) => returnsThroughPointer(one) && !(one.kind === "out" && one.nullable))
    .map(([{ name }]) => `${name} != nullptr`)
  const lines = [
    `CUresult send_${entry.name}(${head.join(", ")}) {`,
    `    Outgoing call(Op::${entry.name}${rules.contextless === true ? ", true" : ""});`
  ]
  for (const condition of required) lines.push(`    call.require(${condition}, CUDA_ERROR_INVALID_VALUE);`)
  // The counts of arrays depend on these, so that nothing may be read before they hold.
  for (const condition of rules.require ?? []) {
    lines.push(`    if (!(${condition})) return call.require(false, CUDA_ERROR_INVALID_VALUE).post();`)
  }
  for (const [parameter, one] of list) {
    const statement = write(parameter, one, "perThread")
    if (statement !== undefined) lines.push(`    ${statement}`)
  }
  lines.push(`    ${finish(entry)}`, "}")
  return lines
}

/** The arguments with which an entry calls the sender of `target`: its own, then zeros. */
const forwarded = (entry: Entry, target: Entry, perThread: boolean): string => {
  const own = entry.prototype.parameters
  const wanted = target.prototype.parameters
  for (const [index, parameter] of own.entries()) {
    if (wanted[index]?.type !== parameter.type) {
      throw new Error(`${entry.name} cannot be sent as ${target.name}: parameter ${index + 1} differs`)
    }
  }
  const streams = callOf(target).arguments.some(([, one]) => one.kind === "stream")
  return [...(streams ? [String(perThread)] : []), ...wanted.map((_, index) => own[index]?.name ?? "0")].join(", ")
}

const definitions = (entry: Entry): ReadonlyArray<string> => {
  const target = entry.rules!.as === undefined ? entry : entryNamed(entry.rules!.as)
  return [entry.name, entry.perThreadName].flatMap((name) =>
    name === undefined
      ? []
      : [
          `CUresult ${name}(${parameterList(entry.prototype, "named")}) { return send_${target.name}(${forwarded(entry, target, name !== entry.name)}); }`
        ]
  )
}

/** native/gen/client_stubs.cc: the entries of the shim that need nothing but their arguments sent. */
export const clientStubs = (): string =>
  `${[
    banner("Entry points of the shim that need nothing but their arguments sent."),
    "#include <cstring>",
    "",
    '#include "native/gen/cuda_api.h"',
    '#include "native/gen/launch_config.h"',
    '#include "native/shim/calls.h"',
    "",
    "namespace juice::shim {",
    "namespace {",
    "",
    "/// u32 size, the bytes of `count` elements.",
    "template <typename T>",
    "void array(Outgoing& call, const T* values, uint64_t count) {",
    "    if (values == nullptr && count != 0) {",
    "        call.require(false, CUDA_ERROR_INVALID_VALUE);",
    "        return;",
    "    }",
    "    call.bytes(values, count * sizeof(T));",
    "}",
    "",
    "[[maybe_unused]] void text(Outgoing& call, const char* value) {",
    "    if (value == nullptr) {",
    "        call.require(false, CUDA_ERROR_INVALID_VALUE);",
    "        return;",
    "    }",
    "    call.bytes(value, std::strlen(value));",
    "}",
    "",
    "void launchConfig(Outgoing& call, const CUlaunchConfig* config) {",
    "    if (!validConfig(config)) {",
    "        call.require(false, CUDA_ERROR_INVALID_VALUE);",
    "        return;",
    "    }",
    "    putConfig(call, *config);",
    "}",
    "",
    ...generatedStubs.filter((entry) => entry.rules!.as === undefined).flatMap((entry) => [...sender(entry), ""]),
    "}  // namespace",
    "}  // namespace juice::shim",
    "",
    "using namespace juice::shim;  // NOLINT: every definition below calls a sender",
    "",
    ...generatedStubs.flatMap(definitions)
  ].join("\n")}\n`

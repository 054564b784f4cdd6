import { opcodes } from "../idl/opcodes.ts"
import { generatedHandlers, generatedStubs } from "./rules.ts"
import { configAttribute, mintedId, type Sample, type SampleArgument, samples } from "./samples.ts"
import { banner, parameterList, quote } from "./text.ts"

/** test/data/wire/calls.json: payload and results of one sample of each generated call, in hexadecimal. */
export const goldenVectors = (): string =>
  `[\n${samples
    .map(({ entry, payload, results }) =>
      JSON.stringify({
        name: entry.name,
        opcode: opcodes[entry.name as keyof typeof opcodes],
        payload: payload.toString("hex"),
        results: results.toString("hex")
      })
    )
    .join(",\n")}\n]\n`

/** Declares what the sample call of a stub passes, and the expression that passes it. */
const passed = ({
  parameter,
  argument,
  value
}: SampleArgument): { before: string; expression: string; after: string } => {
  const { name, type } = parameter
  const plain = (expression: string) => ({ before: "", expression, after: "" })
  switch (argument.kind) {
    case "value":
    case "device":
      return plain(`static_cast<${type}>(${value})`)
    case "address":
      return plain(`reinterpret_cast<${type}>(${value}ull)`)
    case "stream":
    case "callable":
    case "handle":
    case "drop":
      return plain(`shimHandle<${type}>(${value})`)
    case "text":
      return plain('"sample"')
    case "new":
      return {
        before: `${parameter.pointee} ${name} = nullptr;`,
        expression: `&${name}`,
        after: `EXPECT_EQ(${name}, shimHandle<${parameter.pointee}>(${mintedId}));`
      }
    case "in":
      return {
        before: `const std::vector<${argument.type}> ${name} = patterned<${argument.type}>(${value});`,
        expression: `${name}.data()`,
        after: ""
      }
    case "config":
      return { before: `const SampleConfig ${name}(${configAttribute});`, expression: `&${name}.config`, after: "" }
    case "inout":
      return {
        before: `${argument.type} ${name} = patterned<${argument.type}>(1).front();`,
        expression: `&${name}`,
        after: `results.raw(&${name}, sizeof ${name});`
      }
    case "out":
      return {
        before: `${argument.type} ${name}{};`,
        expression: `&${name}`,
        after: `results.raw(&${name}, sizeof ${name});`
      }
  }
}

const stubCall = ({ entry, arguments: list }: Sample): string => {
  const parts = list.map(passed)
  const statements = [
    ...parts.map(({ before }) => before),
    `const CUresult result = ${entry.name}(${parts.map(({ expression }) => expression).join(", ")});`,
    ...parts.map(({ after }) => after),
    "return result;"
  ].filter((one) => one !== "")
  return `[]([[maybe_unused]] Writer& results) { ${statements.join(" ")} }`
}

/** What the stand-in for the driver does with one argument: writes it as the wire would, fills what it returns. */
const seen = ({ parameter, argument, value }: SampleArgument): string => {
  const { name } = parameter
  switch (argument.kind) {
    case "value":
    case "device":
      return `seen.put(${name});`
    case "address":
      return `seen.put(reinterpret_cast<uint64_t>(${name}));`
    case "stream":
      return `seen.put(16 + driverId(${name}));`
    case "callable":
    case "handle":
    case "drop":
      return `seen.put(driverId(${name}));`
    case "text":
      return `seen.text(${name});`
    case "new":
      return `seen.put(uint64_t{${mintedId}}); *${name} = driverHandle<${parameter.pointee}>(${mintedId});`
    case "in":
      return `seen.bytes(${name}, ${value} * sizeof *${name});`
    case "config":
      return `putConfig(seen, *${name});`
    case "inout":
      return `seen.bytes(${name}, sizeof *${name});`
    case "out":
      return argument.scalar
        ? `setBytes(${name}, uint64_t{${value}});`
        : `*${name} = patterned<${argument.type}>(1).front();`
  }
}

const standIn = ({ entry, arguments: list }: Sample): string =>
  `    driver.${entry.name} = [](${parameterList(entry.prototype, "named")}) -> CUresult { ${[...list.map(seen), "return CUDA_SUCCESS;"].join(" ")} };`

/** native/gen/test/wire_golden.inc: the vectors again, with calls of the stubs and a driver that records. */
export const goldenTests = (): string =>
  `${[
    banner(
      "Golden vectors of the wire: {entry, opcode, payload, results, call of the shim's stub or null, has a handler}."
    ),
    "const Golden kGolden[] = {",
    ...samples.map((sample) => {
      const { entry, payload, results } = sample
      const stub = generatedStubs.includes(entry) ? stubCall(sample) : "nullptr"
      return `    {${quote(entry.name)}, Op::${entry.name}, ${quote(payload.toString("hex"))}, ${quote(results.toString("hex"))}, ${stub}, ${generatedHandlers.includes(entry)}},`
    }),
    "};",
    "",
    "// A driver that writes down what it is called with, in the form of the wire.",
    "void recordInto(DriverTable& driver) {",
    ...samples.filter(({ entry }) => generatedHandlers.includes(entry)).map(standIn),
    "}"
  ].join("\n")}\n`

import { abiChecks } from "./abi_checks.ts"
import { apiHeader } from "./api_header.ts"
import { clientStubs } from "./client_stubs.ts"
import { coverage, implementedNames } from "./coverage.ts"
import { driverTableHeader, driverTableSource } from "./driver_table.ts"
import { cudaMap, nvmlMap, unsupportedExports, unsupportedNvmlExports } from "./exports.ts"
import { goldenTests, goldenVectors } from "./golden.ts"
import { opcodesHeader } from "./opcodes.ts"
import { procAddressTable } from "./procaddress.ts"
import { resultTable } from "./results.ts"
import { customHandlers, workerDispatch } from "./worker_dispatch.ts"

/** Every generated file: its path from the root of the repository, and its content. */
export const outputs = (): ReadonlyArray<readonly [file: string, content: string]> => [
  ["native/gen/cuda_api.h", apiHeader()],
  ["native/gen/opcodes.h", opcodesHeader()],
  ["native/gen/procaddress.inc", procAddressTable()],
  ["native/gen/results.inc", resultTable()],
  ["native/gen/exports_unsupported.cc", unsupportedExports()],
  ["native/gen/nvml_exports_unsupported.cc", unsupportedNvmlExports()],
  ["native/gen/libcuda.map", cudaMap()],
  ["native/gen/libnvidia-ml.map", nvmlMap()],
  ["native/gen/driver_table.h", driverTableHeader()],
  ["native/gen/driver_table.cc", driverTableSource()],
  ["native/gen/client_stubs.cc", clientStubs()],
  ["native/gen/custom_handlers.h", customHandlers()],
  ["native/gen/worker_dispatch.cc", workerDispatch()],
  ["native/abi/test/toolkit_checks.inc", abiChecks()],
  ["native/gen/implemented.inc", implementedNames()],
  ["native/gen/test/wire_golden.inc", goldenTests()],
  ["test/data/wire/calls.json", goldenVectors()],
  ["docs/cuda-coverage.md", coverage()]
]

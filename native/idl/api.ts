import { arrayArea } from "./array.ts"
import { captureArea } from "./capture.ts"
import { contextArea } from "./context.ts"
import { copyArea } from "./copy.ts"
import { dataExports, debuggerArea } from "./debugger.ts"
import { deviceArea } from "./device.ts"
import { driverArea } from "./driver.ts"
import { eventArea } from "./event.ts"
import { externalArea } from "./external.ts"
import { fillArea } from "./fill.ts"
import { graphArea } from "./graph.ts"
import { graphExecArea } from "./graph_exec.ts"
import { graphNodeArea } from "./graph_node.ts"
import { graphicsArea } from "./graphics.ts"
import { greenArea } from "./green.ts"
import { launchArea } from "./launch.ts"
import { libraryArea } from "./library.ts"
import { managedArea } from "./managed.ts"
import { memoryArea } from "./memory.ts"
import { moduleArea } from "./module.ts"
import { nvmlExports } from "./nvml.ts"
import { occupancyArea } from "./occupancy.ts"
import { poolArea } from "./pool.ts"
import { profilerArea } from "./profiler.ts"
import type { Area, Entry } from "./schema.ts"
import { streamArea } from "./stream.ts"
import { tensorArea } from "./tensor.ts"
import { textureArea } from "./texture.ts"
import { virtualArea } from "./virtual.ts"

/*
 * From here native/codegen writes native/gen, docs/cuda-coverage.md and the golden vectors of the wire. To implement an
 * entry point: give it a class, and rules for its pointers (native/codegen/rules.ts), in the file of its area; if it
 * crosses the link, append its number to opcodes.ts; run `npm run codegen`.
 */

/** The whole driver API, area by area, in the order of docs/cuda-coverage.md. */
export const areas: ReadonlyArray<Area> = [
  driverArea,
  deviceArea,
  contextArea,
  greenArea,
  libraryArea,
  moduleArea,
  occupancyArea,
  launchArea,
  memoryArea,
  managedArea,
  poolArea,
  virtualArea,
  copyArea,
  fillArea,
  arrayArea,
  textureArea,
  tensorArea,
  streamArea,
  captureArea,
  eventArea,
  graphArea,
  graphNodeArea,
  graphExecArea,
  externalArea,
  graphicsArea,
  profilerArea,
  debuggerArea
]

export const entries: ReadonlyArray<Entry> = areas.flatMap((one) => one.entries)

/** Every function that libcuda.so.1 exports, per-thread variants included, with the entry that it belongs to. */
export const functionExports: ReadonlyArray<readonly [name: string, entry: Entry]> = entries
  .flatMap((entry) =>
    entry.perThreadName === undefined
      ? [[entry.name, entry] as const]
      : [[entry.name, entry] as const, [entry.perThreadName, entry] as const]
  )
  .sort(([a], [b]) => (a < b ? -1 : 1))

export { dataExports, nvmlExports }

import { area, unknown } from "./schema.ts"

export const debuggerArea = area(
  "debugger",
  "What debuggers look for. Exported so that a debugger finds the names; none of it works remotely.",
  [
    unknown("cudbgApiAttach"),
    unknown("cudbgApiDetach"),
    unknown("cudbgApiInit"),
    unknown("cudbgGetAPI"),
    unknown("cudbgGetAPIVersion"),
    unknown("cudbgMain"),
    unknown("cudbgReportDriverApiError"),
    unknown("cudbgReportDriverInternalError")
  ]
)

/** Data symbols: name and size in bytes. The real driver keeps debugger state in them; ours are zero. */
export const dataExports: ReadonlyArray<readonly [name: string, bytes: number]> = [
  ["cudbgApiClientPid", 4],
  ["cudbgApiClientRevision", 4],
  ["cudbgAttachHandlerAvailable", 4],
  ["cudbgDebuggerCapabilities", 4],
  ["cudbgDebuggerInitialized", 4],
  ["cudbgDetachSuspendedDevicesMask", 4],
  ["cudbgEnableIntegratedMemcheck", 4],
  ["cudbgEnableLaunchBlocking", 4],
  ["cudbgEnablePreemptionDebugging", 4],
  ["cudbgInjectionPath", 4096],
  ["cudbgIpcFlag", 4],
  ["cudbgReportDriverApiErrorFlags", 4],
  ["cudbgReportedDriverApiErrorCode", 8],
  ["cudbgReportedDriverApiErrorFuncNameAddr", 8],
  ["cudbgReportedDriverApiErrorFuncNameSize", 8],
  ["cudbgReportedDriverApiErrorNameAddr", 8],
  ["cudbgReportedDriverApiErrorNameSize", 8],
  ["cudbgReportedDriverApiErrorSource", 4],
  ["cudbgReportedDriverApiErrorStringAddr", 8],
  ["cudbgReportedDriverApiErrorStringSize", 8],
  ["cudbgReportedDriverInternalErrorCode", 8],
  ["cudbgResumeForAttachDetach", 4],
  ["cudbgRpcEnabled", 4],
  ["cudbgSessionId", 4],
  ["cudbgUseExternalDebugger", 4]
]

import { area, fn } from "./schema.ts"

export const profilerArea = area("profiler", "Profiling, logs and core dumps.", [
  fn("CUresult cuCoredumpGetAttribute(CUcoredumpSettings attrib, void* value, size_t* size)"),
  fn("CUresult cuCoredumpGetAttributeGlobal(CUcoredumpSettings attrib, void* value, size_t* size)"),
  fn("CUresult cuCoredumpSetAttribute(CUcoredumpSettings attrib, void* value, size_t* size)"),
  fn("CUresult cuCoredumpSetAttributeGlobal(CUcoredumpSettings attrib, void* value, size_t* size)"),
  fn(
    "CUresult cuLogsRegisterCallback(CUlogsCallback callbackFunc, void* userData, CUlogsCallbackHandle* callback_out)"
  ),
  fn("CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle callback)"),
  fn("CUresult cuLogsCurrent(CUlogIterator* iterator_out, unsigned int flags)"),
  fn("CUresult cuLogsDumpToFile(CUlogIterator* iterator, const char* pathToFile, unsigned int flags)"),
  fn("CUresult cuLogsDumpToMemory(CUlogIterator* iterator, char* buffer, size_t* size, unsigned int flags)"),
  fn("CUresult cuCheckpointProcessGetRestoreThreadId(int pid, int* tid)"),
  fn("CUresult cuCheckpointProcessGetState(int pid, CUprocessState* state)"),
  fn("CUresult cuCheckpointProcessLock(int pid, CUcheckpointLockArgs* args)"),
  fn("CUresult cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs* args)"),
  fn("CUresult cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs* args)"),
  fn("CUresult cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs* args)"),
  fn("CUresult cuProfilerInitialize(const char* configFile, const char* outputFile, CUoutput_mode outputMode)", {
    class: "local"
  }),
  fn("CUresult cuProfilerStart(void)", { class: "local" }),
  fn("CUresult cuProfilerStop(void)", { class: "local" })
])

import { area, fn } from "./schema.ts"

export const greenArea = area("green", "Green contexts and the division of a device's multiprocessors.", [
  fn("CUresult cuGreenCtxCreate(CUgreenCtx* phCtx, CUdevResourceDesc desc, CUdevice dev, unsigned int flags)"),
  fn("CUresult cuGreenCtxDestroy(CUgreenCtx hCtx)"),
  fn("CUresult cuCtxFromGreenCtx(CUcontext* pContext, CUgreenCtx hCtx)"),
  fn("CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource* resource, CUdevResourceType type)"),
  fn("CUresult cuCtxGetDevResource(CUcontext hCtx, CUdevResource* resource, CUdevResourceType type)"),
  fn("CUresult cuGreenCtxGetDevResource(CUgreenCtx hCtx, CUdevResource* resource, CUdevResourceType type)"),
  fn(
    "CUresult cuDevSmResourceSplitByCount(CUdevResource* result, unsigned int* nbGroups, const CUdevResource* input, CUdevResource* remaining, unsigned int useFlags, unsigned int minCount)"
  ),
  fn(
    "CUresult cuDevResourceGenerateDesc(CUdevResourceDesc* phDesc, CUdevResource* resources, unsigned int nbResources)"
  ),
  fn("CUresult cuGreenCtxRecordEvent(CUgreenCtx hCtx, CUevent hEvent)"),
  fn("CUresult cuGreenCtxWaitEvent(CUgreenCtx hCtx, CUevent hEvent)"),
  fn("CUresult cuStreamGetGreenCtx(CUstream hStream, CUgreenCtx* phCtx)"),
  fn("CUresult cuGreenCtxStreamCreate(CUstream* phStream, CUgreenCtx greenCtx, unsigned int flags, int priority)"),
  fn("CUresult cuGreenCtxGetId(CUgreenCtx greenCtx, unsigned long long* greenCtxId)")
])

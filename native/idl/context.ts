import { area, fn } from "./schema.ts"

export const contextArea = area("context", "Contexts: the stack of each thread, limits, synchronisation.", [
  fn("CUresult cuCtxCreate(CUcontext* pctx, unsigned int flags, CUdevice dev)"),
  fn("CUresult cuCtxCreate_v2(CUcontext* pctx, unsigned int flags, CUdevice dev)", { class: "custom", mayBlock: true }),
  fn(
    "CUresult cuCtxCreate_v3(CUcontext* pctx, CUexecAffinityParam* paramsArray, int numParams, unsigned int flags, CUdevice dev)",
    { class: "custom", mayBlock: true }
  ),
  fn("CUresult cuCtxCreate_v4(CUcontext* pctx, CUctxCreateParams* ctxCreateParams, unsigned int flags, CUdevice dev)", {
    class: "custom",
    mayBlock: true
  }),
  fn("CUresult cuCtxDestroy(CUcontext ctx)", { class: "custom", mayBlock: true }),
  fn("CUresult cuCtxDestroy_v2(CUcontext ctx)", { class: "custom", mayBlock: true }),
  fn("CUresult cuCtxPushCurrent(CUcontext ctx)", { class: "local" }),
  fn("CUresult cuCtxPushCurrent_v2(CUcontext ctx)", { class: "local" }),
  fn("CUresult cuCtxPopCurrent(CUcontext* pctx)", { class: "local" }),
  fn("CUresult cuCtxPopCurrent_v2(CUcontext* pctx)", { class: "local" }),
  fn("CUresult cuCtxSetCurrent(CUcontext ctx)", { class: "local" }),
  fn("CUresult cuCtxGetCurrent(CUcontext* pctx)", { class: "local" }),
  fn("CUresult cuCtxGetDevice(CUdevice* device)", { class: "local" }),
  fn("CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext ctx)", { class: "local" }),
  fn("CUresult cuCtxGetFlags(unsigned int* flags)", { class: "local" }),
  fn("CUresult cuCtxSetFlags(unsigned int flags)", { class: "local" }),
  fn("CUresult cuCtxGetId(CUcontext ctx, unsigned long long* ctxId)", { class: "local" }),
  fn("CUresult cuCtxSynchronize(void)", { class: "custom", mayBlock: true }),
  fn("CUresult cuCtxSynchronize_v2(CUcontext ctx)", { class: "custom", mayBlock: true }),
  fn("CUresult cuCtxSetLimit(CUlimit limit, size_t value)", { class: "waited", byHand: "shim" }),
  fn("CUresult cuCtxGetLimit(size_t* pvalue, CUlimit limit)", { class: "local" }),
  fn("CUresult cuCtxGetCacheConfig(CUfunc_cache* pconfig)", { class: "local" }),
  fn("CUresult cuCtxSetCacheConfig(CUfunc_cache config)", { class: "posted", byHand: "shim" }),
  fn("CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int* version)", { class: "local" }),
  fn("CUresult cuCtxGetStreamPriorityRange(int* leastPriority, int* greatestPriority)", { class: "local" }),
  fn("CUresult cuCtxResetPersistingL2Cache(void)", { class: "posted" }),
  fn("CUresult cuCtxGetExecAffinity(CUexecAffinityParam* pExecAffinity, CUexecAffinityType type)"),
  fn("CUresult cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent)"),
  fn("CUresult cuCtxWaitEvent(CUcontext hCtx, CUevent hEvent)"),
  fn("CUresult cuCtxAttach(CUcontext* pctx, unsigned int flags)", { class: "local" }),
  fn("CUresult cuCtxDetach(CUcontext ctx)", { class: "local" }),
  fn("CUresult cuCtxGetSharedMemConfig(CUsharedconfig* pConfig)", { class: "local" }),
  fn("CUresult cuCtxSetSharedMemConfig(CUsharedconfig config)", { class: "posted", byHand: "shim" }),
  fn("CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode)", { class: "local" })
])

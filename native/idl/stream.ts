import { area, fn } from "./schema.ts"

export const streamArea = area("stream", "Streams: life, order, attributes, waits on values.", [
  fn("CUresult cuStreamCreate(CUstream* phStream, unsigned int Flags)"),
  fn("CUresult cuStreamCreateWithPriority(CUstream* phStream, unsigned int flags, int priority)"),
  fn("CUresult cuStreamGetPriority(CUstream hStream, int* priority)", { perThread: "ptsz" }),
  fn("CUresult cuStreamGetDevice(CUstream hStream, CUdevice* device)", { perThread: "ptsz" }),
  fn("CUresult cuStreamGetFlags(CUstream hStream, unsigned int* flags)", { perThread: "ptsz" }),
  fn("CUresult cuStreamGetId(CUstream hStream, unsigned long long* streamId)", { perThread: "ptsz" }),
  fn("CUresult cuStreamGetCtx(CUstream hStream, CUcontext* pctx)", { perThread: "ptsz" }),
  fn("CUresult cuStreamGetCtx_v2(CUstream hStream, CUcontext* pCtx, CUgreenCtx* pGreenCtx)", { perThread: "ptsz" }),
  fn("CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)", { perThread: "ptsz" }),
  fn("CUresult cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void* userData, unsigned int flags)", {
    perThread: "ptsz"
  }),
  fn("CUresult cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, size_t length, unsigned int flags)", {
    perThread: "ptsz"
  }),
  fn("CUresult cuStreamQuery(CUstream hStream)", { perThread: "ptsz" }),
  fn("CUresult cuStreamSynchronize(CUstream hStream)", { perThread: "ptsz" }),
  fn("CUresult cuStreamDestroy(CUstream hStream)"),
  fn("CUresult cuStreamDestroy_v2(CUstream hStream)"),
  fn("CUresult cuStreamCopyAttributes(CUstream dst, CUstream src)", { perThread: "ptsz" }),
  fn("CUresult cuStreamGetAttribute(CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue* value_out)", {
    perThread: "ptsz"
  }),
  fn("CUresult cuStreamSetAttribute(CUstream hStream, CUstreamAttrID attr, const CUstreamAttrValue* value)", {
    perThread: "ptsz"
  }),
  fn("CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr addr, unsigned int value, unsigned int flags)", {
    perThread: "ptsz"
  }),
  fn("CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, unsigned int value, unsigned int flags)", {
    perThread: "ptsz"
  }),
  fn("CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr addr, unsigned long long value, unsigned int flags)", {
    perThread: "ptsz"
  }),
  fn(
    "CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr, unsigned long long value, unsigned int flags)",
    { perThread: "ptsz" }
  ),
  fn("CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr addr, unsigned int value, unsigned int flags)", {
    perThread: "ptsz"
  }),
  fn("CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, unsigned int value, unsigned int flags)", {
    perThread: "ptsz"
  }),
  fn("CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr addr, unsigned long long value, unsigned int flags)", {
    perThread: "ptsz"
  }),
  fn(
    "CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr, unsigned long long value, unsigned int flags)",
    { perThread: "ptsz" }
  ),
  fn(
    "CUresult cuStreamBatchMemOp(CUstream stream, unsigned int count, CUstreamBatchMemOpParams* paramArray, unsigned int flags)",
    { perThread: "ptsz" }
  ),
  fn(
    "CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count, CUstreamBatchMemOpParams* paramArray, unsigned int flags)",
    { perThread: "ptsz" }
  )
])

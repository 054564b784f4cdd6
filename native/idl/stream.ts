import { area, fn } from "./schema.ts"

export const streamArea = area("stream", "Streams: life, order, attributes, waits on values.", [
  fn("CUresult cuStreamCreate(CUstream* phStream, unsigned int Flags)", {
    class: "posted",
    byHand: "shim",
    args: { phStream: "new stream" }
  }),
  fn("CUresult cuStreamCreateWithPriority(CUstream* phStream, unsigned int flags, int priority)", {
    class: "posted",
    byHand: "shim",
    args: { phStream: "new stream" }
  }),
  fn("CUresult cuStreamGetPriority(CUstream hStream, int* priority)", {
    perThread: "ptsz",
    class: "cached",
    byHand: "shim",
    args: { priority: "out" }
  }),
  fn("CUresult cuStreamGetDevice(CUstream hStream, CUdevice* device)", { perThread: "ptsz", class: "local" }),
  fn("CUresult cuStreamGetFlags(CUstream hStream, unsigned int* flags)", {
    perThread: "ptsz",
    class: "cached",
    byHand: "shim",
    args: { flags: "out" }
  }),
  fn("CUresult cuStreamGetId(CUstream hStream, unsigned long long* streamId)", {
    perThread: "ptsz",
    class: "cached",
    byHand: "shim",
    args: { streamId: "out" }
  }),
  fn("CUresult cuStreamGetCtx(CUstream hStream, CUcontext* pctx)", { perThread: "ptsz", class: "local" }),
  fn("CUresult cuStreamGetCtx_v2(CUstream hStream, CUcontext* pCtx, CUgreenCtx* pGreenCtx)", {
    perThread: "ptsz",
    class: "local"
  }),
  fn("CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)", {
    perThread: "ptsz",
    class: "posted",
    byHand: "shim",
    require: ["(Flags & ~1u) == 0"]
  }),
  fn("CUresult cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void* userData, unsigned int flags)", {
    perThread: "ptsz",
    class: "custom"
  }),
  fn("CUresult cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, size_t length, unsigned int flags)", {
    perThread: "ptsz",
    class: "local"
  }),
  fn("CUresult cuStreamQuery(CUstream hStream)", { perThread: "ptsz", class: "custom" }),
  fn("CUresult cuStreamSynchronize(CUstream hStream)", {
    perThread: "ptsz",
    class: "custom",
    mayBlock: true
  }),
  fn("CUresult cuStreamDestroy(CUstream hStream)", { class: "custom" }),
  fn("CUresult cuStreamDestroy_v2(CUstream hStream)", {
    class: "posted",
    byHand: "shim",
    args: { hStream: "drop stream" }
  }),
  fn("CUresult cuStreamCopyAttributes(CUstream dst, CUstream src)", { perThread: "ptsz", class: "posted" }),
  fn("CUresult cuStreamGetAttribute(CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue* value_out)", {
    perThread: "ptsz",
    class: "waited",
    args: { value_out: "out" }
  }),
  fn("CUresult cuStreamSetAttribute(CUstream hStream, CUstreamAttrID attr, const CUstreamAttrValue* value)", {
    perThread: "ptsz",
    class: "waited",
    args: { value: "in" }
  }),
  fn("CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr addr, unsigned int value, unsigned int flags)", {
    perThread: "ptsz",
    class: "posted",
    as: "cuStreamWaitValue32_v2"
  }),
  fn("CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, unsigned int value, unsigned int flags)", {
    perThread: "ptsz",
    class: "posted",
    args: { addr: "read(4)" }
  }),
  fn("CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr addr, unsigned long long value, unsigned int flags)", {
    perThread: "ptsz",
    class: "posted",
    as: "cuStreamWaitValue64_v2"
  }),
  fn(
    "CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr, unsigned long long value, unsigned int flags)",
    { perThread: "ptsz", class: "posted", args: { addr: "read(8)" } }
  ),
  fn("CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr addr, unsigned int value, unsigned int flags)", {
    perThread: "ptsz",
    class: "posted",
    as: "cuStreamWriteValue32_v2"
  }),
  fn("CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, unsigned int value, unsigned int flags)", {
    perThread: "ptsz",
    class: "posted",
    args: { addr: "written(4)" }
  }),
  fn("CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr addr, unsigned long long value, unsigned int flags)", {
    perThread: "ptsz",
    class: "posted",
    as: "cuStreamWriteValue64_v2"
  }),
  fn(
    "CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr, unsigned long long value, unsigned int flags)",
    { perThread: "ptsz", class: "posted", args: { addr: "written(8)" } }
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

import { area, fn } from "./schema.ts"

export const managedArea = area("managed", "Advice, prefetching and discarding of managed memory.", [
  fn("CUresult cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream)", {
    perThread: "ptsz",
    class: "local"
  }),
  fn(
    "CUresult cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count, CUmemLocation location, unsigned int flags, CUstream hStream)",
    { perThread: "ptsz", class: "local" }
  ),
  fn("CUresult cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device)", {
    class: "local"
  }),
  fn("CUresult cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUmemLocation location)", {
    class: "local"
  }),
  fn(
    "CUresult cuMemPrefetchBatchAsync(CUdeviceptr* dptrs, size_t* sizes, size_t count, CUmemLocation* prefetchLocs, size_t* prefetchLocIdxs, size_t numPrefetchLocs, unsigned long long flags, CUstream hStream)",
    { perThread: "ptsz" }
  ),
  fn(
    "CUresult cuMemDiscardBatchAsync(CUdeviceptr* dptrs, size_t* sizes, size_t count, unsigned long long flags, CUstream hStream)",
    { perThread: "ptsz" }
  ),
  fn(
    "CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr* dptrs, size_t* sizes, size_t count, CUmemLocation* prefetchLocs, size_t* prefetchLocIdxs, size_t numPrefetchLocs, unsigned long long flags, CUstream hStream)",
    { perThread: "ptsz" }
  ),
  fn(
    "CUresult cuMemRangeGetAttribute(void* data, size_t dataSize, CUmem_range_attribute attribute, CUdeviceptr devPtr, size_t count)",
    { class: "local" }
  ),
  fn(
    "CUresult cuMemRangeGetAttributes(void** data, size_t* dataSizes, CUmem_range_attribute* attributes, size_t numAttributes, CUdeviceptr devPtr, size_t count)",
    { class: "local" }
  )
])

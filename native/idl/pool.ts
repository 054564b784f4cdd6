import { area, fn } from "./schema.ts"

export const poolArea = area("pool", "Memory pools and allocation in stream order.", [
  fn("CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)", {
    perThread: "ptsz",
    class: "custom",
    mayBlock: true
  }),
  fn("CUresult cuMemAllocAsync(CUdeviceptr* dptr, size_t bytesize, CUstream hStream)", {
    perThread: "ptsz",
    class: "custom",
    mayBlock: true
  }),
  fn("CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep)"),
  fn("CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void* value)"),
  fn("CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void* value)"),
  fn("CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* map, size_t count)"),
  fn("CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool memPool, CUmemLocation* location)"),
  fn("CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* poolProps)"),
  fn("CUresult cuMemPoolDestroy(CUmemoryPool pool)"),
  fn("CUresult cuMemGetDefaultMemPool(CUmemoryPool* pool_out, CUmemLocation* location, CUmemAllocationType type)"),
  fn("CUresult cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type)"),
  fn("CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool)"),
  fn("CUresult cuMemAllocFromPoolAsync(CUdeviceptr* dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream)", {
    perThread: "ptsz"
  }),
  fn(
    "CUresult cuMemPoolExportToShareableHandle(void* handle_out, CUmemoryPool pool, CUmemAllocationHandleType handleType, unsigned long long flags)"
  ),
  fn(
    "CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool* pool_out, void* handle, CUmemAllocationHandleType handleType, unsigned long long flags)"
  ),
  fn("CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData* shareData_out, CUdeviceptr ptr)"),
  fn("CUresult cuMemPoolImportPointer(CUdeviceptr* ptr_out, CUmemoryPool pool, CUmemPoolPtrExportData* shareData)")
])

import { area, fn } from "./schema.ts"

export const virtualArea = area(
  "virtual",
  "Virtual memory: address ranges, physical allocations, mappings, multicast.",
  [
    fn(
      "CUresult cuMemGetHandleForAddressRange(void* handle, CUdeviceptr dptr, size_t size, CUmemRangeHandleType handleType, unsigned long long flags)"
    ),
    fn(
      "CUresult cuMemAddressReserve(CUdeviceptr* ptr, size_t size, size_t alignment, CUdeviceptr addr, unsigned long long flags)"
    ),
    fn("CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size)"),
    fn(
      "CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size, const CUmemAllocationProp* prop, unsigned long long flags)"
    ),
    fn("CUresult cuMemRelease(CUmemGenericAllocationHandle handle)"),
    fn(
      "CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags)"
    ),
    fn("CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)"),
    fn("CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc* desc, size_t count)"),
    fn("CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr ptr)"),
    fn(
      "CUresult cuMemExportToShareableHandle(void* shareableHandle, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType handleType, unsigned long long flags)"
    ),
    fn(
      "CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* osHandle, CUmemAllocationHandleType shHandleType)"
    ),
    fn(
      "CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* prop, CUmemAllocationGranularity_flags option)"
    ),
    fn(
      "CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* prop, CUmemGenericAllocationHandle handle)"
    ),
    fn("CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* addr)"),
    fn("CUresult cuMulticastCreate(CUmemGenericAllocationHandle* mcHandle, const CUmulticastObjectProp* prop)"),
    fn("CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle mcHandle, CUdevice dev)"),
    fn(
      "CUresult cuMulticastBindMem(CUmemGenericAllocationHandle mcHandle, size_t mcOffset, CUmemGenericAllocationHandle memHandle, size_t memOffset, size_t size, unsigned long long flags)"
    ),
    fn(
      "CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle mcHandle, size_t mcOffset, CUdeviceptr memptr, size_t size, unsigned long long flags)"
    ),
    fn("CUresult cuMulticastUnbind(CUmemGenericAllocationHandle mcHandle, CUdevice dev, size_t mcOffset, size_t size)"),
    fn(
      "CUresult cuMulticastGetGranularity(size_t* granularity, const CUmulticastObjectProp* prop, CUmulticastGranularity_flags option)"
    )
  ]
)

import { area, fn, unknown } from "./schema.ts"

export const memoryArea = area("memory", "Memory: allocation, host memory, what a pointer is.", [
  fn("CUresult cuMemGetInfo(unsigned int* free, unsigned int* total)"),
  fn("CUresult cuMemGetInfo_v2(size_t* free, size_t* total)"),
  fn("CUresult cuMemAlloc(CUdeviceptr_v1* dptr, unsigned int bytesize)"),
  fn("CUresult cuMemAlloc_v2(CUdeviceptr* dptr, size_t bytesize)"),
  fn(
    "CUresult cuMemAllocPitch(CUdeviceptr_v1* dptr, unsigned int* pPitch, unsigned int WidthInBytes, unsigned int Height, unsigned int ElementSizeBytes)"
  ),
  fn(
    "CUresult cuMemAllocPitch_v2(CUdeviceptr* dptr, size_t* pPitch, size_t WidthInBytes, size_t Height, unsigned int ElementSizeBytes)"
  ),
  fn("CUresult cuMemFree(CUdeviceptr_v1 dptr)"),
  fn("CUresult cuMemFree_v2(CUdeviceptr dptr)"),
  fn("CUresult cuMemGetAddressRange(CUdeviceptr_v1* pbase, unsigned int* psize, CUdeviceptr_v1 dptr)"),
  fn("CUresult cuMemGetAddressRange_v2(CUdeviceptr* pbase, size_t* psize, CUdeviceptr dptr)"),
  fn("CUresult cuMemAllocHost(void** pp, unsigned int bytesize)"),
  fn("CUresult cuMemAllocHost_v2(void** pp, size_t bytesize)"),
  fn("CUresult cuMemFreeHost(void* p)"),
  fn("CUresult cuMemHostAlloc(void** pp, size_t bytesize, unsigned int Flags)"),
  fn("CUresult cuMemHostGetDevicePointer(CUdeviceptr_v1* pdptr, void* p, unsigned int Flags)"),
  fn("CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* pdptr, void* p, unsigned int Flags)"),
  fn("CUresult cuMemHostGetFlags(unsigned int* pFlags, void* p)"),
  fn("CUresult cuMemAllocManaged(CUdeviceptr* dptr, size_t bytesize, unsigned int flags)"),
  fn("CUresult cuMemHostRegister(void* p, size_t bytesize, unsigned int Flags)"),
  fn("CUresult cuMemHostRegister_v2(void* p, size_t bytesize, unsigned int Flags)"),
  fn("CUresult cuMemHostUnregister(void* p)"),
  fn("CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr ptr)"),
  fn("CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr ptr)"),
  fn(
    "CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute* attributes, void** data, CUdeviceptr ptr)"
  ),
  unknown("cuMemGetAttribute"),
  unknown("cuMemGetAttribute_v2")
])

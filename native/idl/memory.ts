import { area, fn, unknown } from "./schema.ts"

export const memoryArea = area("memory", "Memory: allocation, host memory, what a pointer is.", [
  fn("CUresult cuMemGetInfo(unsigned int* free, unsigned int* total)"),
  fn("CUresult cuMemGetInfo_v2(size_t* free, size_t* total)", {
    class: "waited",
    byHand: "worker",
    args: { free: "out?", total: "out?" }
  }),
  fn("CUresult cuMemAlloc(CUdeviceptr_v1* dptr, unsigned int bytesize)"),
  fn("CUresult cuMemAlloc_v2(CUdeviceptr* dptr, size_t bytesize)", { class: "custom", mayBlock: true }),
  fn(
    "CUresult cuMemAllocPitch(CUdeviceptr_v1* dptr, unsigned int* pPitch, unsigned int WidthInBytes, unsigned int Height, unsigned int ElementSizeBytes)"
  ),
  fn(
    "CUresult cuMemAllocPitch_v2(CUdeviceptr* dptr, size_t* pPitch, size_t WidthInBytes, size_t Height, unsigned int ElementSizeBytes)",
    { class: "custom", mayBlock: true }
  ),
  fn("CUresult cuMemFree(CUdeviceptr_v1 dptr)"),
  fn("CUresult cuMemFree_v2(CUdeviceptr dptr)", { class: "custom", mayBlock: true }),
  fn("CUresult cuMemGetAddressRange(CUdeviceptr_v1* pbase, unsigned int* psize, CUdeviceptr_v1 dptr)"),
  fn("CUresult cuMemGetAddressRange_v2(CUdeviceptr* pbase, size_t* psize, CUdeviceptr dptr)", { class: "local" }),
  fn("CUresult cuMemAllocHost(void** pp, unsigned int bytesize)"),
  fn("CUresult cuMemAllocHost_v2(void** pp, size_t bytesize)", { class: "custom", mayBlock: true }),
  fn("CUresult cuMemFreeHost(void* p)", { class: "custom", mayBlock: true }),
  fn("CUresult cuMemHostAlloc(void** pp, size_t bytesize, unsigned int Flags)", { class: "custom", mayBlock: true }),
  fn("CUresult cuMemHostGetDevicePointer(CUdeviceptr_v1* pdptr, void* p, unsigned int Flags)"),
  fn("CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* pdptr, void* p, unsigned int Flags)", { class: "local" }),
  fn("CUresult cuMemHostGetFlags(unsigned int* pFlags, void* p)", { class: "local" }),
  fn("CUresult cuMemAllocManaged(CUdeviceptr* dptr, size_t bytesize, unsigned int flags)", {
    class: "custom",
    mayBlock: true
  }),
  fn("CUresult cuMemHostRegister(void* p, size_t bytesize, unsigned int Flags)", { class: "custom", mayBlock: true }),
  fn("CUresult cuMemHostRegister_v2(void* p, size_t bytesize, unsigned int Flags)", {
    class: "custom",
    mayBlock: true
  }),
  fn("CUresult cuMemHostUnregister(void* p)", { class: "custom", mayBlock: true }),
  fn("CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr ptr)", { class: "local" }),
  fn("CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr ptr)"),
  fn(
    "CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute* attributes, void** data, CUdeviceptr ptr)",
    { class: "local" }
  ),
  unknown("cuMemGetAttribute"),
  unknown("cuMemGetAttribute_v2")
])

import { area, fn } from "./schema.ts"

export const copyArea = area("copy", "Copies, of every shape and direction.", [
  fn("CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)", {
    perThread: "ptds",
    class: "custom",
    mayBlock: true
  }),
  fn(
    "CUresult cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext, size_t ByteCount)",
    { perThread: "ptds", class: "custom" }
  ),
  fn("CUresult cuMemcpyHtoD(CUdeviceptr_v1 dstDevice, const void* srcHost, unsigned int ByteCount)"),
  fn("CUresult cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount)", {
    perThread: "ptds",
    class: "custom",
    mayBlock: true
  }),
  fn("CUresult cuMemcpyDtoH(void* dstHost, CUdeviceptr_v1 srcDevice, unsigned int ByteCount)"),
  fn("CUresult cuMemcpyDtoH_v2(void* dstHost, CUdeviceptr srcDevice, size_t ByteCount)", {
    perThread: "ptds",
    class: "custom",
    mayBlock: true
  }),
  fn("CUresult cuMemcpyDtoD(CUdeviceptr_v1 dstDevice, CUdeviceptr_v1 srcDevice, unsigned int ByteCount)"),
  fn("CUresult cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount)", {
    perThread: "ptds",
    class: "custom"
  }),
  fn(
    "CUresult cuMemcpyDtoA(CUarray dstArray, unsigned int dstOffset, CUdeviceptr_v1 srcDevice, unsigned int ByteCount)"
  ),
  fn("CUresult cuMemcpyDtoA_v2(CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice, size_t ByteCount)", {
    perThread: "ptds"
  }),
  fn(
    "CUresult cuMemcpyAtoD(CUdeviceptr_v1 dstDevice, CUarray srcArray, unsigned int srcOffset, unsigned int ByteCount)"
  ),
  fn("CUresult cuMemcpyAtoD_v2(CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset, size_t ByteCount)", {
    perThread: "ptds"
  }),
  fn("CUresult cuMemcpyHtoA(CUarray dstArray, unsigned int dstOffset, const void* srcHost, unsigned int ByteCount)"),
  fn("CUresult cuMemcpyHtoA_v2(CUarray dstArray, size_t dstOffset, const void* srcHost, size_t ByteCount)", {
    perThread: "ptds"
  }),
  fn("CUresult cuMemcpyAtoH(void* dstHost, CUarray srcArray, unsigned int srcOffset, unsigned int ByteCount)"),
  fn("CUresult cuMemcpyAtoH_v2(void* dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount)", {
    perThread: "ptds"
  }),
  fn(
    "CUresult cuMemcpyAtoA(CUarray dstArray, unsigned int dstOffset, CUarray srcArray, unsigned int srcOffset, unsigned int ByteCount)"
  ),
  fn(
    "CUresult cuMemcpyAtoA_v2(CUarray dstArray, size_t dstOffset, CUarray srcArray, size_t srcOffset, size_t ByteCount)",
    { perThread: "ptds" }
  ),
  fn("CUresult cuMemcpy2D(const CUDA_MEMCPY2D_v1* pCopy)"),
  fn("CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* pCopy)", { perThread: "ptds", class: "custom", mayBlock: true }),
  fn("CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D_v1* pCopy)"),
  fn("CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* pCopy)", {
    perThread: "ptds",
    class: "custom",
    mayBlock: true
  }),
  fn("CUresult cuMemcpy3D(const CUDA_MEMCPY3D_v1* pCopy)"),
  fn("CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* pCopy)", { perThread: "ptds", class: "custom", mayBlock: true }),
  fn("CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* pCopy)", { perThread: "ptds" }),
  fn("CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)", {
    perThread: "ptsz",
    class: "custom",
    mayBlock: true
  }),
  fn(
    "CUresult cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext, size_t ByteCount, CUstream hStream)",
    { perThread: "ptsz", class: "custom" }
  ),
  fn(
    "CUresult cuMemcpyHtoDAsync(CUdeviceptr_v1 dstDevice, const void* srcHost, unsigned int ByteCount, CUstream hStream)"
  ),
  fn("CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount, CUstream hStream)", {
    perThread: "ptsz",
    class: "custom",
    mayBlock: true
  }),
  fn("CUresult cuMemcpyDtoHAsync(void* dstHost, CUdeviceptr_v1 srcDevice, unsigned int ByteCount, CUstream hStream)"),
  fn("CUresult cuMemcpyDtoHAsync_v2(void* dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)", {
    perThread: "ptsz",
    class: "custom",
    mayBlock: true
  }),
  fn(
    "CUresult cuMemcpyDtoDAsync(CUdeviceptr_v1 dstDevice, CUdeviceptr_v1 srcDevice, unsigned int ByteCount, CUstream hStream)"
  ),
  fn(
    "CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)",
    { perThread: "ptsz", class: "custom" }
  ),
  fn(
    "CUresult cuMemcpyHtoAAsync(CUarray dstArray, unsigned int dstOffset, const void* srcHost, unsigned int ByteCount, CUstream hStream)"
  ),
  fn(
    "CUresult cuMemcpyHtoAAsync_v2(CUarray dstArray, size_t dstOffset, const void* srcHost, size_t ByteCount, CUstream hStream)",
    { perThread: "ptsz" }
  ),
  fn(
    "CUresult cuMemcpyAtoHAsync(void* dstHost, CUarray srcArray, unsigned int srcOffset, unsigned int ByteCount, CUstream hStream)"
  ),
  fn(
    "CUresult cuMemcpyAtoHAsync_v2(void* dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount, CUstream hStream)",
    { perThread: "ptsz" }
  ),
  fn("CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D_v1* pCopy, CUstream hStream)"),
  fn("CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* pCopy, CUstream hStream)", {
    perThread: "ptsz",
    class: "custom",
    mayBlock: true
  }),
  fn("CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D_v1* pCopy, CUstream hStream)"),
  fn("CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* pCopy, CUstream hStream)", {
    perThread: "ptsz",
    class: "custom",
    mayBlock: true
  }),
  fn("CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* pCopy, CUstream hStream)", { perThread: "ptsz" }),
  fn(
    "CUresult cuMemcpyBatchAsync(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes, size_t count, CUmemcpyAttributes* attrs, size_t* attrsIdxs, size_t numAttrs, size_t* failIdx, CUstream hStream)",
    { perThread: "ptsz" }
  ),
  fn(
    "CUresult cuMemcpyBatchAsync_v2(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes, size_t count, CUmemcpyAttributes* attrs, size_t* attrsIdxs, size_t numAttrs, CUstream hStream)",
    { perThread: "ptsz" }
  ),
  fn(
    "CUresult cuMemcpy3DBatchAsync(size_t numOps, CUDA_MEMCPY3D_BATCH_OP* opList, size_t* failIdx, unsigned long long flags, CUstream hStream)",
    { perThread: "ptsz" }
  ),
  fn(
    "CUresult cuMemcpy3DBatchAsync_v2(size_t numOps, CUDA_MEMCPY3D_BATCH_OP* opList, unsigned long long flags, CUstream hStream)",
    { perThread: "ptsz" }
  ),
  fn(
    "CUresult cuMemBatchDecompressAsync(CUmemDecompressParams* paramsArray, size_t count, unsigned int flags, size_t* errorIndex, CUstream stream)",
    { perThread: "ptsz" }
  )
])

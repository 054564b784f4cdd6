import { area, fn } from "./schema.ts"

export const fillArea = area("fill", "Fills.", [
  fn("CUresult cuMemsetD8(CUdeviceptr_v1 dstDevice, unsigned char uc, unsigned int N)"),
  fn("CUresult cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N)", {
    perThread: "ptds",
    class: "posted",
    as: "cuMemsetD8Async"
  }),
  fn("CUresult cuMemsetD16(CUdeviceptr_v1 dstDevice, unsigned short us, unsigned int N)"),
  fn("CUresult cuMemsetD16_v2(CUdeviceptr dstDevice, unsigned short us, size_t N)", {
    perThread: "ptds",
    class: "posted",
    as: "cuMemsetD16Async"
  }),
  fn("CUresult cuMemsetD32(CUdeviceptr_v1 dstDevice, unsigned int ui, unsigned int N)"),
  fn("CUresult cuMemsetD32_v2(CUdeviceptr dstDevice, unsigned int ui, size_t N)", {
    perThread: "ptds",
    class: "posted",
    as: "cuMemsetD32Async"
  }),
  fn(
    "CUresult cuMemsetD2D8(CUdeviceptr_v1 dstDevice, unsigned int dstPitch, unsigned char uc, unsigned int Width, unsigned int Height)"
  ),
  fn(
    "CUresult cuMemsetD2D8_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width, size_t Height)",
    { perThread: "ptds", class: "posted", as: "cuMemsetD2D8Async" }
  ),
  fn(
    "CUresult cuMemsetD2D16(CUdeviceptr_v1 dstDevice, unsigned int dstPitch, unsigned short us, unsigned int Width, unsigned int Height)"
  ),
  fn(
    "CUresult cuMemsetD2D16_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width, size_t Height)",
    { perThread: "ptds", class: "posted", as: "cuMemsetD2D16Async" }
  ),
  fn(
    "CUresult cuMemsetD2D32(CUdeviceptr_v1 dstDevice, unsigned int dstPitch, unsigned int ui, unsigned int Width, unsigned int Height)"
  ),
  fn(
    "CUresult cuMemsetD2D32_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width, size_t Height)",
    { perThread: "ptds", class: "posted", as: "cuMemsetD2D32Async" }
  ),
  fn("CUresult cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream)", {
    perThread: "ptsz",
    class: "posted",
    args: { dstDevice: "written(N)" },
    require: ["N < 1ull << 48"]
  }),
  fn("CUresult cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream)", {
    perThread: "ptsz",
    class: "posted",
    args: { dstDevice: "written(N * 2)" },
    require: ["dstDevice % 2 == 0", "N < 1ull << 48"]
  }),
  fn("CUresult cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream)", {
    perThread: "ptsz",
    class: "posted",
    args: { dstDevice: "written(N * 4)" },
    require: ["dstDevice % 4 == 0", "N < 1ull << 48"]
  }),
  fn(
    "CUresult cuMemsetD2D8Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width, size_t Height, CUstream hStream)",
    {
      perThread: "ptsz",
      class: "posted",
      args: { dstDevice: "written(Height == 0 ? 0 : dstPitch * (Height - 1) + Width)" },
      require: [
        "Width < 1ull << 40 && Height < 1ull << 40 && dstPitch < 1ull << 40",
        "Height <= 1 || Width <= dstPitch"
      ]
    }
  ),
  fn(
    "CUresult cuMemsetD2D16Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width, size_t Height, CUstream hStream)",
    {
      perThread: "ptsz",
      class: "posted",
      args: { dstDevice: "written(Height == 0 ? 0 : dstPitch * (Height - 1) + Width * 2)" },
      require: [
        "dstDevice % 2 == 0",
        "Width < 1ull << 40 && Height < 1ull << 40 && dstPitch < 1ull << 40",
        "Height <= 1 || Width * 2 <= dstPitch"
      ]
    }
  ),
  fn(
    "CUresult cuMemsetD2D32Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width, size_t Height, CUstream hStream)",
    {
      perThread: "ptsz",
      class: "posted",
      args: { dstDevice: "written(Height == 0 ? 0 : dstPitch * (Height - 1) + Width * 4)" },
      require: [
        "dstDevice % 4 == 0",
        "Width < 1ull << 40 && Height < 1ull << 40 && dstPitch < 1ull << 40",
        "Height <= 1 || Width * 4 <= dstPitch"
      ]
    }
  )
])

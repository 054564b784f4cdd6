import { area, fn } from "./schema.ts"

export const tensorArea = area("tensor", "Tensor maps for bulk copies inside kernels.", [
  fn(
    "CUresult cuTensorMapEncodeTiled(CUtensorMap* tensorMap, CUtensorMapDataType tensorDataType, unsigned int tensorRank, void* globalAddress, const unsigned long long* globalDim, const unsigned long long* globalStrides, const unsigned int* boxDim, const unsigned int* elementStrides, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill)",
    {
      class: "cached",
      contextless: true,
      require: ["tensorRank >= 1 && tensorRank <= 5"],
      args: {
        tensorMap: "out",
        globalAddress: "address",
        globalDim: "in[tensorRank]",
        globalStrides: "in[tensorRank - 1]",
        boxDim: "in[tensorRank]",
        elementStrides: "in[tensorRank]"
      }
    }
  ),
  fn(
    "CUresult cuTensorMapEncodeIm2col(CUtensorMap* tensorMap, CUtensorMapDataType tensorDataType, unsigned int tensorRank, void* globalAddress, const unsigned long long* globalDim, const unsigned long long* globalStrides, const int* pixelBoxLowerCorner, const int* pixelBoxUpperCorner, unsigned int channelsPerPixel, unsigned int pixelsPerColumn, const unsigned int* elementStrides, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill)",
    {
      class: "cached",
      contextless: true,
      require: ["tensorRank >= 3 && tensorRank <= 5"],
      args: {
        tensorMap: "out",
        globalAddress: "address",
        globalDim: "in[tensorRank]",
        globalStrides: "in[tensorRank - 1]",
        pixelBoxLowerCorner: "in[tensorRank - 2]",
        pixelBoxUpperCorner: "in[tensorRank - 2]",
        elementStrides: "in[tensorRank]"
      }
    }
  ),
  fn(
    "CUresult cuTensorMapEncodeIm2colWide(CUtensorMap* tensorMap, CUtensorMapDataType tensorDataType, unsigned int tensorRank, void* globalAddress, const unsigned long long* globalDim, const unsigned long long* globalStrides, int pixelBoxLowerCornerWidth, int pixelBoxUpperCornerWidth, unsigned int channelsPerPixel, unsigned int pixelsPerColumn, const unsigned int* elementStrides, CUtensorMapInterleave interleave, CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill)",
    {
      class: "cached",
      contextless: true,
      require: ["tensorRank >= 3 && tensorRank <= 5"],
      args: {
        tensorMap: "out",
        globalAddress: "address",
        globalDim: "in[tensorRank]",
        globalStrides: "in[tensorRank - 1]",
        elementStrides: "in[tensorRank]"
      }
    }
  ),
  fn("CUresult cuTensorMapReplaceAddress(CUtensorMap* tensorMap, void* globalAddress)", {
    class: "waited",
    contextless: true,
    args: { tensorMap: "inout", globalAddress: "address" }
  })
])

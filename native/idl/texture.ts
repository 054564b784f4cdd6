import { area, fn } from "./schema.ts"

export const textureArea = area("texture", "Textures, surfaces and texture references.", [
  fn("CUresult cuTexRefSetArray(CUtexref hTexRef, CUarray hArray, unsigned int Flags)"),
  fn("CUresult cuTexRefSetMipmappedArray(CUtexref hTexRef, CUmipmappedArray hMipmappedArray, unsigned int Flags)"),
  fn(
    "CUresult cuTexRefSetAddress(unsigned int* ByteOffset, CUtexref hTexRef, CUdeviceptr_v1 dptr, unsigned int bytes)"
  ),
  fn("CUresult cuTexRefSetAddress_v2(size_t* ByteOffset, CUtexref hTexRef, CUdeviceptr dptr, size_t bytes)"),
  fn(
    "CUresult cuTexRefSetAddress2D(CUtexref hTexRef, const CUDA_ARRAY_DESCRIPTOR_v1* desc, CUdeviceptr_v1 dptr, unsigned int Pitch)"
  ),
  fn(
    "CUresult cuTexRefSetAddress2D_v2(CUtexref hTexRef, const CUDA_ARRAY_DESCRIPTOR* desc, CUdeviceptr dptr, size_t Pitch)"
  ),
  fn(
    "CUresult cuTexRefSetAddress2D_v3(CUtexref hTexRef, const CUDA_ARRAY_DESCRIPTOR* desc, CUdeviceptr dptr, size_t Pitch)"
  ),
  fn("CUresult cuTexRefSetFormat(CUtexref hTexRef, CUarray_format fmt, int NumPackedComponents)"),
  fn("CUresult cuTexRefSetAddressMode(CUtexref hTexRef, int dim, CUaddress_mode am)"),
  fn("CUresult cuTexRefSetFilterMode(CUtexref hTexRef, CUfilter_mode fm)"),
  fn("CUresult cuTexRefSetMipmapFilterMode(CUtexref hTexRef, CUfilter_mode fm)"),
  fn("CUresult cuTexRefSetMipmapLevelBias(CUtexref hTexRef, float bias)"),
  fn("CUresult cuTexRefSetMipmapLevelClamp(CUtexref hTexRef, float minMipmapLevelClamp, float maxMipmapLevelClamp)"),
  fn("CUresult cuTexRefSetMaxAnisotropy(CUtexref hTexRef, unsigned int maxAniso)"),
  fn("CUresult cuTexRefSetBorderColor(CUtexref hTexRef, float* pBorderColor)"),
  fn("CUresult cuTexRefSetFlags(CUtexref hTexRef, unsigned int Flags)"),
  fn("CUresult cuTexRefGetAddress(CUdeviceptr_v1* pdptr, CUtexref hTexRef)"),
  fn("CUresult cuTexRefGetAddress_v2(CUdeviceptr* pdptr, CUtexref hTexRef)"),
  fn("CUresult cuTexRefGetArray(CUarray* phArray, CUtexref hTexRef)"),
  fn("CUresult cuTexRefGetMipmappedArray(CUmipmappedArray* phMipmappedArray, CUtexref hTexRef)"),
  fn("CUresult cuTexRefGetAddressMode(CUaddress_mode* pam, CUtexref hTexRef, int dim)"),
  fn("CUresult cuTexRefGetFilterMode(CUfilter_mode* pfm, CUtexref hTexRef)"),
  fn("CUresult cuTexRefGetFormat(CUarray_format* pFormat, int* pNumChannels, CUtexref hTexRef)"),
  fn("CUresult cuTexRefGetMipmapFilterMode(CUfilter_mode* pfm, CUtexref hTexRef)"),
  fn("CUresult cuTexRefGetMipmapLevelBias(float* pbias, CUtexref hTexRef)"),
  fn(
    "CUresult cuTexRefGetMipmapLevelClamp(float* pminMipmapLevelClamp, float* pmaxMipmapLevelClamp, CUtexref hTexRef)"
  ),
  fn("CUresult cuTexRefGetMaxAnisotropy(int* pmaxAniso, CUtexref hTexRef)"),
  fn("CUresult cuTexRefGetBorderColor(float* pBorderColor, CUtexref hTexRef)"),
  fn("CUresult cuTexRefGetFlags(unsigned int* pFlags, CUtexref hTexRef)"),
  fn("CUresult cuTexRefCreate(CUtexref* pTexRef)"),
  fn("CUresult cuTexRefDestroy(CUtexref hTexRef)"),
  fn("CUresult cuSurfRefSetArray(CUsurfref hSurfRef, CUarray hArray, unsigned int Flags)"),
  fn("CUresult cuSurfRefGetArray(CUarray* phArray, CUsurfref hSurfRef)"),
  fn(
    "CUresult cuTexObjectCreate(CUtexObject* pTexObject, const CUDA_RESOURCE_DESC* pResDesc, const CUDA_TEXTURE_DESC* pTexDesc, const CUDA_RESOURCE_VIEW_DESC* pResViewDesc)"
  ),
  fn("CUresult cuTexObjectDestroy(CUtexObject texObject)"),
  fn("CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC* pResDesc, CUtexObject texObject)"),
  fn("CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC* pTexDesc, CUtexObject texObject)"),
  fn("CUresult cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC* pResViewDesc, CUtexObject texObject)"),
  fn("CUresult cuSurfObjectCreate(CUsurfObject* pSurfObject, const CUDA_RESOURCE_DESC* pResDesc)"),
  fn("CUresult cuSurfObjectDestroy(CUsurfObject surfObject)"),
  fn("CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC* pResDesc, CUsurfObject surfObject)")
])

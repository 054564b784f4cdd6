import { area, fn } from "./schema.ts"

export const libraryArea = area("library", "Libraries and kernels: code loaded without a context.", [
  fn(
    "CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* jitOptions, void** jitOptionsValues, unsigned int numJitOptions, CUlibraryOption* libraryOptions, void** libraryOptionValues, unsigned int numLibraryOptions)",
    { class: "custom", mayBlock: true }
  ),
  fn(
    "CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* fileName, CUjit_option* jitOptions, void** jitOptionsValues, unsigned int numJitOptions, CUlibraryOption* libraryOptions, void** libraryOptionValues, unsigned int numLibraryOptions)",
    { class: "custom", mayBlock: true }
  ),
  fn("CUresult cuLibraryUnload(CUlibrary library)", { class: "custom", mayBlock: true }),
  fn("CUresult cuLibraryGetKernel(CUkernel* pKernel, CUlibrary library, const char* name)", {
    class: "custom",
    mayBlock: true
  }),
  fn("CUresult cuLibraryGetKernelCount(unsigned int* count, CUlibrary lib)", { class: "local" }),
  fn("CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned int numKernels, CUlibrary lib)", {
    class: "local"
  }),
  fn("CUresult cuLibraryGetModule(CUmodule* pMod, CUlibrary library)", { class: "custom", mayBlock: true }),
  fn("CUresult cuKernelGetFunction(CUfunction* pFunc, CUkernel kernel)", { class: "custom", mayBlock: true }),
  fn("CUresult cuKernelGetLibrary(CUlibrary* pLib, CUkernel kernel)", { class: "local" }),
  fn("CUresult cuLibraryGetGlobal(CUdeviceptr* dptr, size_t* bytes, CUlibrary library, const char* name)", {
    class: "custom",
    mayBlock: true
  }),
  fn("CUresult cuLibraryGetManaged(CUdeviceptr* dptr, size_t* bytes, CUlibrary library, const char* name)", {
    class: "custom",
    mayBlock: true
  }),
  fn("CUresult cuLibraryGetUnifiedFunction(void** fptr, CUlibrary library, const char* symbol)"),
  fn("CUresult cuKernelGetAttribute(int* pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev)", {
    class: "custom"
  }),
  fn("CUresult cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev)", {
    class: "waited",
    byHand: "shim"
  }),
  fn("CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev)", {
    class: "posted",
    require: ["config >= 0 && config <= 3"]
  }),
  fn("CUresult cuKernelGetName(const char** name, CUkernel hfunc)", { class: "local" }),
  fn("CUresult cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex, size_t* paramOffset, size_t* paramSize)", {
    class: "local"
  })
])

import { area, fn } from "./schema.ts"

export const moduleArea = area("module", "Modules, the linker, functions and their attributes.", [
  fn("CUresult cuModuleLoad(CUmodule* module, const char* fname)", { class: "custom", mayBlock: true }),
  fn("CUresult cuModuleLoadData(CUmodule* module, const void* image)", { class: "custom", mayBlock: true }),
  fn(
    "CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int numOptions, CUjit_option* options, void** optionValues)",
    { class: "custom", mayBlock: true }
  ),
  fn("CUresult cuModuleLoadFatBinary(CUmodule* module, const void* fatCubin)", { class: "custom", mayBlock: true }),
  fn("CUresult cuModuleUnload(CUmodule hmod)", { class: "custom", mayBlock: true }),
  fn("CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode)", { class: "local" }),
  fn("CUresult cuModuleGetFunction(CUfunction* hfunc, CUmodule hmod, const char* name)", {
    class: "custom",
    mayBlock: true
  }),
  fn("CUresult cuModuleGetFunctionCount(unsigned int* count, CUmodule mod)", { class: "local" }),
  fn("CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned int numFunctions, CUmodule mod)", {
    class: "local"
  }),
  fn("CUresult cuModuleGetGlobal(CUdeviceptr_v1* dptr, unsigned int* bytes, CUmodule hmod, const char* name)"),
  fn("CUresult cuModuleGetGlobal_v2(CUdeviceptr* dptr, size_t* bytes, CUmodule hmod, const char* name)", {
    class: "custom",
    mayBlock: true
  }),
  fn(
    "CUresult cuLinkCreate(unsigned int numOptions, CUjit_option* options, void** optionValues, CUlinkState* stateOut)"
  ),
  fn(
    "CUresult cuLinkCreate_v2(unsigned int numOptions, CUjit_option* options, void** optionValues, CUlinkState* stateOut)"
  ),
  fn(
    "CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, size_t size, const char* name, unsigned int numOptions, CUjit_option* options, void** optionValues)"
  ),
  fn(
    "CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data, size_t size, const char* name, unsigned int numOptions, CUjit_option* options, void** optionValues)"
  ),
  fn(
    "CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char* path, unsigned int numOptions, CUjit_option* options, void** optionValues)"
  ),
  fn(
    "CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char* path, unsigned int numOptions, CUjit_option* options, void** optionValues)"
  ),
  fn("CUresult cuLinkComplete(CUlinkState state, void** cubinOut, size_t* sizeOut)"),
  fn("CUresult cuLinkDestroy(CUlinkState state)"),
  fn("CUresult cuModuleGetTexRef(CUtexref* pTexRef, CUmodule hmod, const char* name)"),
  fn("CUresult cuModuleGetSurfRef(CUsurfref* pSurfRef, CUmodule hmod, const char* name)"),
  fn("CUresult cuFuncGetAttribute(int* pi, CUfunction_attribute attrib, CUfunction hfunc)", { class: "custom" }),
  fn("CUresult cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value)", {
    class: "waited",
    byHand: "shim"
  }),
  fn("CUresult cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config)", {
    class: "posted",
    require: ["config >= 0 && config <= 3"]
  }),
  fn("CUresult cuFuncGetModule(CUmodule* hmod, CUfunction hfunc)", { class: "local" }),
  fn("CUresult cuFuncGetName(const char** name, CUfunction hfunc)", { class: "local" }),
  fn("CUresult cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t* paramOffset, size_t* paramSize)", {
    class: "local"
  }),
  fn("CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function)", { class: "local" }),
  fn("CUresult cuFuncLoad(CUfunction function)", { class: "waited", mayBlock: true }),
  fn("CUresult cuFuncSetSharedMemConfig(CUfunction hfunc, CUsharedconfig config)", {
    class: "posted",
    require: ["config >= 0 && config <= 2"]
  })
])

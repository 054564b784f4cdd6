import { area, fn } from "./schema.ts"

export const moduleArea = area("module", "Modules, the linker, functions and their attributes.", [
  fn("CUresult cuModuleLoad(CUmodule* module, const char* fname)"),
  fn("CUresult cuModuleLoadData(CUmodule* module, const void* image)"),
  fn(
    "CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int numOptions, CUjit_option* options, void** optionValues)"
  ),
  fn("CUresult cuModuleLoadFatBinary(CUmodule* module, const void* fatCubin)"),
  fn("CUresult cuModuleUnload(CUmodule hmod)"),
  fn("CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode)"),
  fn("CUresult cuModuleGetFunction(CUfunction* hfunc, CUmodule hmod, const char* name)"),
  fn("CUresult cuModuleGetFunctionCount(unsigned int* count, CUmodule mod)"),
  fn("CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned int numFunctions, CUmodule mod)"),
  fn("CUresult cuModuleGetGlobal(CUdeviceptr_v1* dptr, unsigned int* bytes, CUmodule hmod, const char* name)"),
  fn("CUresult cuModuleGetGlobal_v2(CUdeviceptr* dptr, size_t* bytes, CUmodule hmod, const char* name)"),
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
  fn("CUresult cuFuncGetAttribute(int* pi, CUfunction_attribute attrib, CUfunction hfunc)"),
  fn("CUresult cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value)"),
  fn("CUresult cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config)"),
  fn("CUresult cuFuncGetModule(CUmodule* hmod, CUfunction hfunc)"),
  fn("CUresult cuFuncGetName(const char** name, CUfunction hfunc)"),
  fn("CUresult cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t* paramOffset, size_t* paramSize)"),
  fn("CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function)"),
  fn("CUresult cuFuncLoad(CUfunction function)"),
  fn("CUresult cuFuncSetSharedMemConfig(CUfunction hfunc, CUsharedconfig config)")
])

import { area, fn } from "./schema.ts"

export const launchArea = area(
  "launch",
  "Launches: kernels, host functions, and the parameter calls of the first driver.",
  [
    fn(
      "CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream, void** kernelParams, void** extra)",
      { perThread: "ptsz", class: "custom" }
    ),
    fn("CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction f, void** kernelParams, void** extra)", {
      perThread: "ptsz",
      class: "custom"
    }),
    fn(
      "CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream, void** kernelParams)",
      { perThread: "ptsz", class: "custom" }
    ),
    fn(
      "CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS* launchParamsList, unsigned int numDevices, unsigned int flags)"
    ),
    fn("CUresult cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void* userData)", {
      perThread: "ptsz",
      class: "custom"
    }),
    fn("CUresult cuFuncSetBlockShape(CUfunction hfunc, int x, int y, int z)"),
    fn("CUresult cuFuncSetSharedSize(CUfunction hfunc, unsigned int bytes)"),
    fn("CUresult cuParamSetSize(CUfunction hfunc, unsigned int numbytes)"),
    fn("CUresult cuParamSeti(CUfunction hfunc, int offset, unsigned int value)"),
    fn("CUresult cuParamSetf(CUfunction hfunc, int offset, float value)"),
    fn("CUresult cuParamSetv(CUfunction hfunc, int offset, void* ptr, unsigned int numbytes)"),
    fn("CUresult cuLaunch(CUfunction f)"),
    fn("CUresult cuLaunchGrid(CUfunction f, int grid_width, int grid_height)"),
    fn("CUresult cuLaunchGridAsync(CUfunction f, int grid_width, int grid_height, CUstream hStream)"),
    fn("CUresult cuParamSetTexRef(CUfunction hfunc, int texunit, CUtexref hTexRef)")
  ]
)

/* What the test programs need of <cuda.h>, and how they give up: none of them needs a toolkit. */
#pragma once
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
CUresult cuInit(unsigned flags);
CUresult cuDeviceGet(CUdevice* device, int ordinal);
CUresult cuDeviceGetCount(int* count);
CUresult cuDevicePrimaryCtxRetain(void** context, CUdevice device);
CUresult cuCtxSetCurrent(void* context);
CUresult cuCtxSynchronize(void);
CUresult cuModuleLoadData(void** module, const void* image);
CUresult cuModuleGetFunction(void** function, void* module, const char* name);
CUresult cuMemAlloc_v2(CUdeviceptr* pointer, size_t size);
CUresult cuMemFree_v2(CUdeviceptr pointer);
CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count);
CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t size);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t size, void* stream);
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t size, void* stream);
CUresult cuStreamCreate(void** stream, unsigned flags);
CUresult cuStreamSynchronize(void* stream);
CUresult cuStreamDestroy_v2(void* stream);
CUresult cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                        unsigned by, unsigned bz, unsigned shared, void* stream, void** params,
                        void** extra);

/* Any CUDA error ends the program: "error N" on stdout, exit code 3. */
static inline void check(CUresult result) {
    if (result == 0) return;
    printf("error %d\n", result);
    exit(3);
}

/* A kernel of one thread or many: p[i] = 3 * p[i] + add + i for i < n. */
static const char kStepPtx[] =
    ".version 7.0\n.target sm_52\n.address_size 64\n"
    ".visible .entry step(.param .u64 p, .param .u32 n, .param .u32 add)\n{\n"
    "  .reg .pred %q; .reg .b32 %i, %size, %block, %n, %v, %a; .reg .b64 %p, %o;\n"
    "  mov.u32 %size, %ntid.x;\n  mov.u32 %block, %ctaid.x;\n  mov.u32 %i, %tid.x;\n"
    "  mad.lo.s32 %i, %block, %size, %i;\n"
    "  ld.param.u32 %n, [n];\n  setp.ge.u32 %q, %i, %n;\n  @%q ret;\n"
    "  ld.param.u64 %p, [p];\n  cvta.to.global.u64 %p, %p;\n"
    "  mul.wide.u32 %o, %i, 4;\n  add.s64 %p, %p, %o;\n"
    "  ld.param.u32 %a, [add];\n  add.u32 %a, %a, %i;\n"
    "  ld.global.u32 %v, [%p];\n  mad.lo.u32 %v, %v, 3, %a;\n  st.global.u32 [%p], %v;\n  "
    "ret;\n}\n";

/* The device's primary context, current, and the function `step`. */
static inline void* openDevice(void** context) {
    CUdevice device;
    void *module, *step;
    check(cuInit(0));
    check(cuDeviceGet(&device, 0));
    check(cuDevicePrimaryCtxRetain(context, device));
    check(cuCtxSetCurrent(*context));
    check(cuModuleLoadData(&module, kStepPtx));
    check(cuModuleGetFunction(&step, module, "step"));
    return step;
}

/* Holds device memory and launches until it is killed or CUDA fails: what the fault tests do things
 * to. Prints "running" once the first kernel has ended; on a CUDA error prints "error N" and exits
 * with 3.
 *
 * usage: keep_busy [MiB of device memory, default 16] [seconds, default for ever] */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
CUresult cuInit(unsigned flags);
CUresult cuDeviceGet(CUdevice* device, int ordinal);
CUresult cuDevicePrimaryCtxRetain(void** context, CUdevice device);
CUresult cuCtxSetCurrent(void* context);
CUresult cuModuleLoadData(void** module, const void* image);
CUresult cuModuleGetFunction(void** function, void* module, const char* name);
CUresult cuMemAlloc_v2(CUdeviceptr* pointer, size_t size);
CUresult cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                        unsigned by, unsigned bz, unsigned shared, void* stream, void** params,
                        void** extra);
CUresult cuCtxSynchronize(void);

static const char kPtx[] =
    ".version 7.0\n.target sm_52\n.address_size 64\n"
    ".visible .entry store(.param .u64 p, .param .u32 v)\n{\n"
    "  .reg .b64 %p; .reg .b32 %v;\n"
    "  ld.param.u64 %p, [p];\n  ld.param.u32 %v, [v];\n"
    "  cvta.to.global.u64 %p, %p;\n  st.global.u32 [%p], %v;\n  ret;\n}\n";

static void check(CUresult result) {
    if (result == 0) return;
    printf("error %d\n", result);
    exit(3);
}

int main(int argc, char** argv) {
    const size_t size = (size_t)(argc > 1 ? atoi(argv[1]) : 16) << 20;
    const time_t end = argc > 2 ? time(NULL) + atoi(argv[2]) : 0;
    CUdevice device;
    CUdeviceptr memory;
    void *context, *module, *function;
    setvbuf(stdout, NULL, _IOLBF, 0);
    check(cuInit(0));
    check(cuDeviceGet(&device, 0));
    check(cuDevicePrimaryCtxRetain(&context, device));
    check(cuCtxSetCurrent(context));
    check(cuModuleLoadData(&module, kPtx));
    check(cuModuleGetFunction(&function, module, "store"));
    check(cuMemAlloc_v2(&memory, size));
    for (unsigned i = 0; end == 0 || time(NULL) < end; ++i) {
        void* params[] = {&memory, &i};
        check(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
        check(cuCtxSynchronize());
        if (i == 0) printf("running\n");
        usleep(2000);
    }
    return 0;
}

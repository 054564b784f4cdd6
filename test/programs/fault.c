/* Writes through a wild pointer on the device, as examples/cuda/faulting_kernel.cu does, but
 * without a toolkit: the launch succeeds, the next synchronisation and everything after it give
 * 700. */
#include "driver.h"

int main(void) {
    void* context;
    void* step = openDevice(&context);
    CUdeviceptr memory, wild = 0x10;
    unsigned n = 1, add = 0;
    void* good[] = {&memory, &n, &add};
    void* bad[] = {&wild, &n, &add};
    check(cuMemAlloc_v2(&memory, 64));
    check(cuLaunchKernel(step, 1, 1, 1, 1, 1, 1, 0, NULL, good, NULL));
    check(cuCtxSynchronize());
    const CUresult launched = cuLaunchKernel(step, 1, 1, 1, 1, 1, 1, 0, NULL, bad, NULL);
    const CUresult synchronised = cuCtxSynchronize();
    const CUresult afterwards = cuMemAlloc_v2(&memory, 64);
    printf("launch %d, synchronise %d, later allocation %d\n", launched, synchronised, afterwards);
    return launched == 0 && synchronised == 700 && afterwards == 700 ? 0 : 1;
}

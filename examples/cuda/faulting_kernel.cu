// A kernel that writes through a wild pointer. The launch itself succeeds; the error, 700, comes
// with the next synchronisation, and the context is dead from then on: exactly as on a local GPU.
#include "check.h"

__global__ void poke(int* where) {
    *where = 1;
}

int main() {
    int* good;
    CHECK(cudaMalloc(&good, 64));
    poke<<<1, 1>>>(good);
    CHECK(cudaDeviceSynchronize());

    poke<<<1, 1>>>(reinterpret_cast<int*>(0x10));
    const cudaError_t launched = cudaGetLastError();
    const cudaError_t synchronised = cudaDeviceSynchronize();
    void* more = nullptr;
    const cudaError_t afterwards = cudaMalloc(&more, 64);
    const bool ok = launched == cudaSuccess && synchronised == cudaErrorIllegalAddress &&
                    afterwards == cudaErrorIllegalAddress;
    std::printf("faulting_kernel: %s, launch %d, synchronise %d, later allocation %d\n",
                ok ? "ok" : "WRONG", static_cast<int>(launched), static_cast<int>(synchronised),
                static_cast<int>(afterwards));
    return ok ? 0 : 1;
}

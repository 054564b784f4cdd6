// Kernels that read and write the host's memory: pinned by the runtime, and the program's own that
// is registered. Nothing is ever copied by a call.
#include "arrays.h"

__global__ void addTo(const int* in, int* out, int n, int round) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] += round * in[i];
}

int main(int argc, char** argv) {
    const int n = argument(argc, argv, 1, 3'000), rounds = 5;
    const size_t bytes = n * sizeof(int);
    int *pinned, *onGpu;
    CHECK(cudaHostAlloc(&pinned, bytes, cudaHostAllocMapped));
    CHECK(cudaHostGetDevicePointer(&onGpu, pinned, 0));
    std::vector<int> own(n, 0), expected(n, 0);
    int* ownOnGpu;
    CHECK(cudaHostRegister(own.data(), bytes, cudaHostRegisterMapped));
    CHECK(cudaHostGetDevicePointer(&ownOnGpu, own.data(), 0));
    int wrong = 0;
    for (int round = 1; round <= rounds; ++round) {
        for (int i = 0; i < n; ++i) {
            pinned[i] = i % 97 + round;
            expected[i] += round * pinned[i];
        }
        addTo<<<(n + 127) / 128, 128>>>(onGpu, ownOnGpu, n, round);
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
        for (int i = 0; i < n; ++i) wrong += own[i] != expected[i];
        // The host changes what the kernel has written, and the next kernel goes on from there.
        own[round] = expected[round] = -round;
    }
    CHECK(cudaHostUnregister(own.data()));
    CHECK(cudaFreeHost(pinned));
    std::printf("zero_copy: %s, %d rounds over %d elements, %d differ from the CPU\n",
                wrong == 0 ? "ok" : "WRONG", rounds, n, wrong);
    return wrong == 0 ? 0 : 1;
}

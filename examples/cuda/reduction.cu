// Sum and maximum of an array: shuffles within a warp, shared memory across warps, atomics across
// blocks.
#include <algorithm>
#include <vector>

#include "check.h"

__global__ void reduce(const int* in, int n, unsigned long long* sum, int* maximum) {
    __shared__ long long sums[32];
    __shared__ int maxima[32];
    long long s = 0;
    int m = INT_MIN;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        s += in[i];
        m = max(m, in[i]);
    }
    for (int offset = 16; offset > 0; offset /= 2) {
        s += __shfl_down_sync(0xffffffffu, s, offset);
        m = max(m, __shfl_xor_sync(0xffffffffu, m, offset));
    }
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane == 0) {
        sums[warp] = s;
        maxima[warp] = m;
    }
    __syncthreads();
    if (warp == 0) {
        const bool present = lane < blockDim.x / 32;
        s = present ? sums[lane] : 0;
        m = present ? maxima[lane] : INT_MIN;
        for (int offset = 16; offset > 0; offset /= 2) {
            s += __shfl_down_sync(0xffffffffu, s, offset);
            m = max(m, __shfl_down_sync(0xffffffffu, m, offset));
        }
        if (lane == 0) {
            atomicAdd(sum, static_cast<unsigned long long>(s));
            atomicMax(maximum, m);
        }
    }
}

int main(int argc, char** argv) {
    const int n = argument(argc, argv, 1, 100'003);
    std::vector<int> in(n);
    unsigned state = 99;
    for (int& x : in)
        x = static_cast<int>((state = state * 1664525u + 1013904223u) >> 4) - (1 << 27);
    long long expectedSum = 0;
    for (int x : in) expectedSum += x;
    const int expectedMaximum = *std::max_element(in.begin(), in.end());

    int *din, *dmaximum;
    unsigned long long* dsum;
    const int lowest = INT_MIN;
    CHECK(cudaMalloc(&din, n * sizeof(int)));
    CHECK(cudaMalloc(&dsum, sizeof *dsum));
    CHECK(cudaMalloc(&dmaximum, sizeof *dmaximum));
    CHECK(cudaMemcpy(din, in.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemset(dsum, 0, sizeof *dsum));
    CHECK(cudaMemcpy(dmaximum, &lowest, sizeof lowest, cudaMemcpyHostToDevice));
    reduce<<<40, 256>>>(din, n, dsum, dmaximum);
    CHECK(cudaGetLastError());
    unsigned long long sum = 0;
    int maximum = 0;
    CHECK(cudaMemcpy(&sum, dsum, sizeof sum, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(&maximum, dmaximum, sizeof maximum, cudaMemcpyDeviceToHost));
    const bool ok = static_cast<long long>(sum) == expectedSum && maximum == expectedMaximum;
    std::printf("reduction: %s, %d numbers, sum %lld (CPU %lld), maximum %d (CPU %d)\n",
                ok ? "ok" : "WRONG", n, static_cast<long long>(sum), expectedSum, maximum,
                expectedMaximum);
    return ok ? 0 : 1;
}

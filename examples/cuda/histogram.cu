// How often each byte value occurs: counted in shared memory by every block, then added up.
#include "arrays.h"

constexpr int kBins = 256;

__global__ void count(const uint8_t* in, int n, unsigned* bins) {
    __shared__ unsigned mine[kBins];
    for (int i = threadIdx.x; i < kBins; i += blockDim.x) mine[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        atomicAdd(&mine[in[i]], 1u);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < kBins; i += blockDim.x) {
        if (mine[i] != 0) atomicAdd(&bins[i], mine[i]);
    }
}

int main(int argc, char** argv) {
    const int n = argument(argc, argv, 1, 60'001);
    std::vector<uint8_t> in(n);
    std::vector<unsigned> expected(kBins);
    uint64_t state = 1;
    for (uint8_t& x : in) {
        // The smaller of two: small values are frequent, so many threads meet at the same bins.
        const uint64_t bits = nextRandom(state);
        x = static_cast<uint8_t>(std::min(bits & 255, (bits >> 8) & 255));
        ++expected[x];
    }
    const uint8_t* din = toDevice(in);
    unsigned* dbins = onDevice<unsigned>(kBins);
    CHECK(cudaMemset(dbins, 0, kBins * sizeof(unsigned)));
    count<<<12, 128>>>(din, n, dbins);
    CHECK(cudaGetLastError());
    const std::vector<unsigned> bins = fromDevice(dbins, kBins);
    int wrong = 0;
    for (int i = 0; i < kBins; ++i) wrong += bins[i] != expected[i];
    std::printf("histogram: %s, %d bytes, %d of %d bins differ from the CPU\n",
                wrong == 0 ? "ok" : "WRONG", n, wrong, kBins);
    return wrong == 0 ? 0 : 1;
}

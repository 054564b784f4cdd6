// Running sums of an array: within warps by shuffles, within blocks through shared memory, and
// across blocks by scanning the blocks' totals in the same way.
#include "arrays.h"

constexpr int kBlock = 256;

// Writes the inclusive scan of each block's part, and the block's total.
__global__ void scanBlocks(const unsigned* in, unsigned* out, unsigned* totals, int n) {
    __shared__ unsigned warps[kBlock / 32];
    const int i = blockIdx.x * kBlock + threadIdx.x, lane = threadIdx.x % 32,
              warp = threadIdx.x / 32;
    unsigned sum = i < n ? in[i] : 0;
    for (int distance = 1; distance < 32; distance *= 2) {
        const unsigned before = __shfl_up_sync(0xffffffffu, sum, distance);
        if (lane >= distance) sum += before;
    }
    if (lane == 31) warps[warp] = sum;
    __syncthreads();
    for (int w = 0; w < warp; ++w) sum += warps[w];
    if (i < n) out[i] = sum;
    if (threadIdx.x == kBlock - 1) totals[blockIdx.x] = sum;
}

__global__ void addTotals(unsigned* out, const unsigned* totals, int n) {
    const int i = blockIdx.x * kBlock + threadIdx.x;
    if (i < n && blockIdx.x > 0) out[i] += totals[blockIdx.x - 1];
}

void scan(const unsigned* in, unsigned* out, int n) {
    const int blocks = (n + kBlock - 1) / kBlock;
    unsigned* totals = onDevice<unsigned>(blocks);
    scanBlocks<<<blocks, kBlock>>>(in, out, totals, n);
    CHECK(cudaGetLastError());
    if (blocks > 1) {
        scan(totals, totals, blocks);
        addTotals<<<blocks, kBlock>>>(out, totals, n);
        CHECK(cudaGetLastError());
    }
    CHECK(cudaFree(totals));
}

int main(int argc, char** argv) {
    // More than a block of block totals, so that three levels are scanned.
    const int n = argument(argc, argv, 1, kBlock * kBlock + 1'000);
    std::vector<unsigned> in(n);
    uint64_t state = 2;
    for (unsigned& x : in) x = static_cast<unsigned>(nextRandom(state));
    const unsigned* din = toDevice(in);
    unsigned* dout = onDevice<unsigned>(n);
    scan(din, dout, n);
    const std::vector<unsigned> out = fromDevice(dout, n);
    int wrong = 0;
    unsigned sum = 0;
    for (int i = 0; i < n; ++i) wrong += out[i] != (sum += in[i]);
    std::printf("prefix_scan: %s, %d numbers, %d running sums differ from the CPU\n",
                wrong == 0 ? "ok" : "WRONG", n, wrong);
    return wrong == 0 ? 0 : 1;
}

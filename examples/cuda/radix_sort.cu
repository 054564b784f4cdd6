// Sorts keys with the values that belong to them, four bits at a time: count the digits of every
// block, scan the counts, and move each pair to its place. Every pass keeps the order of equals.
#include <numeric>

#include "arrays.h"

constexpr int kBlock = 256, kWarps = kBlock / 32, kDigits = 16;

__global__ void countDigits(const unsigned* keys, int n, int shift, unsigned* counts) {
    __shared__ unsigned mine[kDigits];
    if (threadIdx.x < kDigits) mine[threadIdx.x] = 0;
    __syncthreads();
    const int i = blockIdx.x * kBlock + threadIdx.x;
    if (i < n) atomicAdd(&mine[(keys[i] >> shift) % kDigits], 1u);
    __syncthreads();
    // Digit by digit, block by block: scanned in this order the counts become places.
    if (threadIdx.x < kDigits) counts[threadIdx.x * gridDim.x + blockIdx.x] = mine[threadIdx.x];
}

// Exclusive scan by one block.
__global__ void scanCounts(unsigned* counts, int n) {
    __shared__ unsigned part[kBlock];
    unsigned before = 0;
    for (int start = 0; start < n; start += kBlock) {
        const int i = start + threadIdx.x;
        const unsigned own = i < n ? counts[i] : 0;
        part[threadIdx.x] = own;
        __syncthreads();
        for (int distance = 1; distance < kBlock; distance *= 2) {
            const unsigned left = threadIdx.x >= distance ? part[threadIdx.x - distance] : 0;
            __syncthreads();
            part[threadIdx.x] += left;
            __syncthreads();
        }
        if (i < n) counts[i] = before + part[threadIdx.x] - own;
        before += part[kBlock - 1];
        __syncthreads();
    }
}

__global__ void move(const unsigned* keys, const int* values, int n, int shift,
                     const unsigned* places, unsigned* outKeys, int* outValues) {
    __shared__ unsigned ofWarp[kWarps][kDigits];
    const int i = blockIdx.x * kBlock + threadIdx.x, lane = threadIdx.x % 32,
              warp = threadIdx.x / 32;
    for (int k = threadIdx.x; k < kWarps * kDigits; k += kBlock)
        ofWarp[k / kDigits][k % kDigits] = 0;
    __syncthreads();
    // Beyond the end: a digit that no key has, so that all lanes of the warp take part.
    const unsigned key = i < n ? keys[i] : 0, digit = i < n ? (key >> shift) % kDigits : kDigits;
    const unsigned alike = __match_any_sync(0xffffffffu, digit);
    const unsigned earlier = __popc(alike & ((1u << lane) - 1));
    if (digit < kDigits && earlier == 0) ofWarp[warp][digit] = __popc(alike);
    __syncthreads();
    if (i >= n) return;
    unsigned place = places[digit * gridDim.x + blockIdx.x] + earlier;
    for (int w = 0; w < warp; ++w) place += ofWarp[w][digit];
    outKeys[place] = key;
    outValues[place] = values[i];
}

int main(int argc, char** argv) {
    const int n = argument(argc, argv, 1, 10'007), blocks = (n + kBlock - 1) / kBlock;
    std::vector<unsigned> keys(n);
    std::vector<int> values(n);
    uint64_t state = 4;
    // Few distinct keys at the upper end: equals must keep their order.
    for (unsigned& key : keys) {
        const uint64_t bits = nextRandom(state);
        key = bits % 3 == 0 ? 0xfffffff0u | (bits >> 60) : static_cast<unsigned>(bits >> 32);
    }
    std::iota(values.begin(), values.end(), 0);
    std::vector<int> expected = values;
    std::stable_sort(expected.begin(), expected.end(),
                     [&](int a, int b) { return keys[a] < keys[b]; });

    unsigned *from = toDevice(keys), *to = onDevice<unsigned>(n);
    int *valuesFrom = toDevice(values), *valuesTo = onDevice<int>(n);
    unsigned* counts = onDevice<unsigned>(kDigits * blocks);
    for (int shift = 0; shift < 32; shift += 4) {
        countDigits<<<blocks, kBlock>>>(from, n, shift, counts);
        scanCounts<<<1, kBlock>>>(counts, kDigits * blocks);
        move<<<blocks, kBlock>>>(from, valuesFrom, n, shift, counts, to, valuesTo);
        CHECK(cudaGetLastError());
        std::swap(from, to);
        std::swap(valuesFrom, valuesTo);
    }
    const std::vector<unsigned> sorted = fromDevice(from, n);
    const std::vector<int> order = fromDevice(valuesFrom, n);
    int wrong = 0;
    for (int i = 0; i < n; ++i) wrong += order[i] != expected[i] || sorted[i] != keys[expected[i]];
    std::printf("radix_sort: %s, %d pairs, %d stand elsewhere than on the CPU\n",
                wrong == 0 ? "ok" : "WRONG", n, wrong);
    return wrong == 0 ? 0 : 1;
}

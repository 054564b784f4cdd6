// The circle's number by throwing darts, each thread with random numbers of its own. The CPU throws
// the same darts, so that the hits must be the same to the last.
#include <cmath>

#include "arrays.h"

__host__ __device__ int hits(int thrower, int darts) {
    uint64_t state = 0x51ed2701u + 0x1000003ull * thrower;
    int inside = 0;
    for (int i = 0; i < darts; ++i) {
        const uint64_t bits = nextRandom(state);
        const float x = static_cast<float>(bits >> 40) / (1 << 24);
        const float y = static_cast<float>((bits >> 8) & 0xffffff) / (1 << 24);
        // Every rounding is spelt out: the compilers may fuse as they like otherwise.
#ifdef __CUDA_ARCH__
        const float square = __fadd_rn(__fmul_rn(x, x), __fmul_rn(y, y));
#else
        const volatile float xx = x * x, yy = y * y;
        const float square = xx + yy;
#endif
        inside += square <= 1.0f;
    }
    return inside;
}

__global__ void throwDarts(int darts, unsigned long long* total) {
    const int mine = hits(blockIdx.x * blockDim.x + threadIdx.x, darts);
    int warp = mine;
    for (int offset = 16; offset > 0; offset /= 2) {
        warp += __shfl_xor_sync(0xffffffffu, warp, offset);
    }
    if (threadIdx.x % 32 == 0) atomicAdd(total, static_cast<unsigned long long>(warp));
}

int main(int argc, char** argv) {
    const int darts = argument(argc, argv, 1, 60), blocks = 16, threads = 128;
    unsigned long long* dtotal = onDevice<unsigned long long>(1);
    CHECK(cudaMemset(dtotal, 0, sizeof *dtotal));
    throwDarts<<<blocks, threads>>>(darts, dtotal);
    CHECK(cudaGetLastError());
    const unsigned long long total = fromDevice(dtotal, 1)[0];
    unsigned long long expected = 0;
    for (int i = 0; i < blocks * threads; ++i) expected += hits(i, darts);
    const double pi = 4.0 * total / (double(darts) * blocks * threads);
    const bool ok = total == expected && std::abs(pi - M_PI) < 0.02;
    std::printf("monte_carlo: %s, %llu hits (CPU %llu), pi is about %.3f\n", ok ? "ok" : "WRONG",
                total, expected, pi);
    return ok ? 0 : 1;
}

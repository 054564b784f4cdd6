// An image folded with a 7 x 7 mask in constant memory; each block first brings its tile and a rim
// around it into shared memory.
#include "arrays.h"

constexpr int kTile = 16, kRadius = 3, kMask = 2 * kRadius + 1, kRim = kTile + 2 * kRadius;
__constant__ int mask[kMask][kMask];

__global__ void fold(const uint8_t* in, int* out, int width, int height) {
    __shared__ uint8_t tile[kRim][kRim];
    const int left = blockIdx.x * kTile - kRadius, top = blockIdx.y * kTile - kRadius;
    for (int k = threadIdx.y * kTile + threadIdx.x; k < kRim * kRim; k += kTile * kTile) {
        // Beyond the edge the image goes on as it ends.
        const int x = min(max(left + k % kRim, 0), width - 1);
        const int y = min(max(top + k / kRim, 0), height - 1);
        tile[k / kRim][k % kRim] = in[y * width + x];
    }
    __syncthreads();
    const int x = blockIdx.x * kTile + threadIdx.x, y = blockIdx.y * kTile + threadIdx.y;
    if (x >= width || y >= height) return;
    int sum = 0;
    for (int dy = 0; dy < kMask; ++dy) {
        for (int dx = 0; dx < kMask; ++dx) {
            sum += mask[dy][dx] * tile[threadIdx.y + dy][threadIdx.x + dx];
        }
    }
    out[y * width + x] = sum;
}

int main(int argc, char** argv) {
    const int width = argument(argc, argv, 1, 121), height = argument(argc, argv, 2, 75);
    int weights[kMask][kMask];
    uint64_t state = 7;
    for (auto& row : weights) {
        for (int& weight : row) weight = static_cast<int>(nextRandom(state) % 201) - 100;
    }
    CHECK(cudaMemcpyToSymbol(mask, weights, sizeof weights));
    std::vector<uint8_t> in(width * height);
    for (uint8_t& pixel : in) pixel = static_cast<uint8_t>(nextRandom(state));
    int* dout = onDevice<int>(in.size());
    const dim3 blocks((width + kTile - 1) / kTile, (height + kTile - 1) / kTile);
    fold<<<blocks, dim3(kTile, kTile)>>>(toDevice(in), dout, width, height);
    CHECK(cudaGetLastError());
    const std::vector<int> out = fromDevice(dout, in.size());
    int wrong = 0;
    for (int y = 0; y < height; ++y) {
        for (int x = 0; x < width; ++x) {
            int expected = 0;
            for (int dy = -kRadius; dy <= kRadius; ++dy) {
                for (int dx = -kRadius; dx <= kRadius; ++dx) {
                    const int nx = std::clamp(x + dx, 0, width - 1);
                    const int ny = std::clamp(y + dy, 0, height - 1);
                    expected += weights[dy + kRadius][dx + kRadius] * in[ny * width + nx];
                }
            }
            wrong += out[y * width + x] != expected;
        }
    }
    std::printf("convolution: %s, %d x %d pixels, %d differ from the CPU\n",
                wrong == 0 ? "ok" : "WRONG", width, height, wrong);
    return wrong == 0 ? 0 : 1;
}

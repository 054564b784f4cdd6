// C = A * B with 16 x 16 tiles in shared memory and a barrier before and after each tile.
#include <cmath>
#include <vector>

#include "check.h"

constexpr int kTile = 16;

__global__ void product(const float* a, const float* b, float* c, int n) {
    __shared__ float ta[kTile][kTile], tb[kTile][kTile];
    const int row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
    float sum = 0;
    for (int t = 0; t < n; t += kTile) {
        const int ax = t + threadIdx.x, by = t + threadIdx.y;
        ta[threadIdx.y][threadIdx.x] = row < n && ax < n ? a[row * n + ax] : 0;
        tb[threadIdx.y][threadIdx.x] = by < n && column < n ? b[by * n + column] : 0;
        __syncthreads();
        for (int k = 0; k < kTile; ++k) sum += ta[threadIdx.y][k] * tb[k][threadIdx.x];
        __syncthreads();
    }
    if (row < n && column < n) c[row * n + column] = sum;
}

int main(int argc, char** argv) {
    const int n = argument(argc, argv, 1, 100);  // not a multiple of the tile: the edges count
    std::vector<float> a(n * n), b(n * n), c(n * n);
    unsigned state = 12345;
    const auto random = [&] {
        return ((state = state * 1664525u + 1013904223u) >> 8) / 16777216.0f - 0.5f;
    };
    for (float& x : a) x = random();
    for (float& x : b) x = random();
    const size_t bytes = a.size() * sizeof(float);
    float *da, *db, *dc;
    CHECK(cudaMalloc(&da, bytes));
    CHECK(cudaMalloc(&db, bytes));
    CHECK(cudaMalloc(&dc, bytes));
    CHECK(cudaMemcpy(da, a.data(), bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(db, b.data(), bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(dc, 0xff, bytes));  // NaNs: an element that nobody writes is seen
    const dim3 grid((n + kTile - 1) / kTile, (n + kTile - 1) / kTile), block(kTile, kTile);
    product<<<grid, block>>>(da, db, dc, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(c.data(), dc, bytes, cudaMemcpyDeviceToHost));
    double error = 0, norm = 0;
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j) {
            double sum = 0;
            for (int k = 0; k < n; ++k) sum += static_cast<double>(a[i * n + k]) * b[k * n + j];
            error += (c[i * n + j] - sum) * (c[i * n + j] - sum);
            norm += sum * sum;
        }
    const double relative = std::sqrt(error / norm);
    const bool ok = relative < 1e-6;
    std::printf("matrix_product: %s, %d x %d, relative error %.2g\n", ok ? "ok" : "WRONG", n, n,
                relative);
    return ok ? 0 : 1;
}

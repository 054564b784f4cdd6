// A sparse matrix (rows of very different length) times a vector, a warp for each row. The values
// are whole numbers, so that the sums are exact in any order.
#include "arrays.h"

__global__ void multiply(const int* rows, const int* columns, const double* values, const double* x,
                         double* y, int n) {
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= n) return;
    double sum = 0;
    for (int i = rows[row] + lane; i < rows[row + 1]; i += 32) sum += values[i] * x[columns[i]];
    for (int offset = 16; offset > 0; offset /= 2) {
        sum += __shfl_down_sync(0xffffffffu, sum, offset);
    }
    if (lane == 0) y[row] = sum;
}

int main(int argc, char** argv) {
    const int n = argument(argc, argv, 1, 1'500);
    std::vector<int> rows = {0}, columns;
    std::vector<double> values, x(n);
    uint64_t state = 5;
    for (int row = 0; row < n; ++row) {
        x[row] = static_cast<double>(nextRandom(state) % 2'001) - 1'000;
        // Every tenth row is empty, every seventh long.
        const int length = row % 10 == 3 ? 0 : row % 7 == 0 ? 100 : 1 + nextRandom(state) % 8;
        for (int k = 0; k < length; ++k) {
            columns.push_back(nextRandom(state) % n);
            values.push_back(static_cast<double>(nextRandom(state) % 19) - 9);
        }
        rows.push_back(static_cast<int>(columns.size()));
    }
    double* dy = onDevice<double>(n);
    multiply<<<(n * 32 + 127) / 128, 128>>>(toDevice(rows), toDevice(columns), toDevice(values),
                                            toDevice(x), dy, n);
    CHECK(cudaGetLastError());
    const std::vector<double> y = fromDevice(dy, n);
    int wrong = 0;
    for (int row = 0; row < n; ++row) {
        double expected = 0;
        for (int i = rows[row]; i < rows[row + 1]; ++i) expected += values[i] * x[columns[i]];
        wrong += y[row] != expected;
    }
    std::printf("sparse_product: %s, %d rows, %zu values, %d rows differ from the CPU\n",
                wrong == 0 ? "ok" : "WRONG", n, values.size(), wrong);
    return wrong == 0 ? 0 : 1;
}

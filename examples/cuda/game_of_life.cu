// Conway's Game of Life on a torus: a glider that must come back to where it started, and a soup of
// random cells that must live as it does on the CPU.
#include "arrays.h"

__host__ __device__ uint8_t next(const uint8_t* cells, int width, int height, int x, int y) {
    int neighbours = 0;
    for (int dy = -1; dy <= 1; ++dy) {
        for (int dx = -1; dx <= 1; ++dx) {
            if (dx == 0 && dy == 0) continue;
            const int nx = (x + dx + width) % width, ny = (y + dy + height) % height;
            neighbours += cells[ny * width + nx];
        }
    }
    return neighbours == 3 || (neighbours == 2 && cells[y * width + x] == 1);
}

__global__ void live(const uint8_t* from, uint8_t* to, int width, int height) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) to[y * width + x] = next(from, width, height, x, y);
}

using Cells = std::vector<uint8_t>;

Cells afterOnGpu(const Cells& start, int width, int height, int generations) {
    uint8_t *from = toDevice(start), *to = onDevice<uint8_t>(start.size());
    const dim3 block(16, 8), grid((width + 15) / 16, (height + 7) / 8);
    for (int g = 0; g < generations; ++g) {
        live<<<grid, block>>>(from, to, width, height);
        CHECK(cudaGetLastError());
        std::swap(from, to);
    }
    return fromDevice(from, start.size());
}

int main(int argc, char** argv) {
    const int width = argument(argc, argv, 1, 60), height = argument(argc, argv, 2, 50);
    const int generations = 15, side = 12;
    Cells glider(side * side);
    for (const int cell : {1, side + 2, 2 * side, 2 * side + 1, 2 * side + 2}) glider[cell] = 1;
    // It moves by one cell in four generations.
    const Cells returned = afterOnGpu(glider, side, side, 4 * side);

    Cells soup(width * height);
    uint64_t state = 8;
    for (uint8_t& cell : soup) cell = nextRandom(state) % 3 == 0;
    const Cells lived = afterOnGpu(soup, width, height, generations);
    Cells expected = soup;
    for (int g = 0; g < generations; ++g) {
        const Cells before = expected;
        for (int i = 0; i < width * height; ++i) {
            expected[i] = next(before.data(), width, height, i % width, i / width);
        }
    }
    int wrong = 0;
    for (int i = 0; i < width * height; ++i) wrong += lived[i] != expected[i];
    const bool ok = returned == glider && wrong == 0;
    std::printf("game_of_life: %s, the glider %s, %d cells of %d differ from the CPU\n",
                ok ? "ok" : "WRONG", returned == glider ? "came back" : "is lost", wrong,
                width * height);
    return ok ? 0 : 1;
}

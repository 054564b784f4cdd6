// The Mandelbrot set, one thread a pixel: divergent loops in double precision. Writes a PNG.
#include <algorithm>
#include <vector>

#include "check.h"
#include "png.h"

constexpr int kLimit = 200;

__host__ __device__ inline int iterations(double cx, double cy) {
    double x = 0, y = 0;
    int i = 0;
    while (i < kLimit && x * x + y * y <= 4) {
        const double next = x * x - y * y + cx;
        y = 2 * x * y + cy;
        x = next;
        ++i;
    }
    return i;
}

__global__ void mandelbrot(int* out, int width, int height) {
    const int px = blockIdx.x * blockDim.x + threadIdx.x,
              py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= width || py >= height) return;
    out[py * width + px] = iterations(-2.2 + 3.2 * px / width, -1.2 + 2.4 * py / height);
}

int main(int argc, char** argv) {
    const char* path = argc > 1 ? argv[1] : "mandelbrot.png";
    const int width = argument(argc, argv, 2, 320), height = width * 3 / 4;
    std::vector<int> counts(width * height);
    int* device;
    CHECK(cudaMalloc(&device, counts.size() * sizeof(int)));
    mandelbrot<<<dim3((width + 15) / 16, (height + 15) / 16), dim3(16, 16)>>>(device, width,
                                                                              height);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(counts.data(), device, counts.size() * sizeof(int), cudaMemcpyDeviceToHost));

    // GPU and CPU may contract a*b+c differently, so that a few points on the edge may escape a
    // step apart.
    int differ = 0;
    std::vector<uint8_t> rgb;
    for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x) {
            const int count = counts[y * width + x];
            differ += count != iterations(-2.2 + 3.2 * x / width, -1.2 + 2.4 * y / height);
            const double t = count == kLimit ? 0 : static_cast<double>(count) / kLimit;
            rgb.push_back(static_cast<uint8_t>(255 * std::min(1.0, 4 * t)));
            rgb.push_back(static_cast<uint8_t>(255 * std::min(1.0, 1.5 * t)));
            rgb.push_back(static_cast<uint8_t>(count == kLimit ? 0 : 64 + 191 * t));
        }
    const bool ok = differ <= width * height / 100;
    if (!png::write(path, width, height, rgb)) {
        std::fprintf(stderr, "cannot write %s\n", path);
        return 1;
    }
    std::printf("mandelbrot: %s, %d x %d, %d pixels differ from the CPU, wrote %s\n",
                ok ? "ok" : "WRONG", width, height, differ, path);
    return ok ? 0 : 1;
}

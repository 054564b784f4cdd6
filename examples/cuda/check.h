// What every example shares: stop at the first CUDA error, and report in one line.
#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                        \
    do {                                                                                   \
        const cudaError_t status = (call);                                                 \
        if (status != cudaSuccess) {                                                       \
            std::fprintf(stderr, "%s:%d: %s failed: %s (%d)\n", __FILE__, __LINE__, #call, \
                         cudaGetErrorString(status), static_cast<int>(status));            \
            std::exit(1);                                                                  \
        }                                                                                  \
    } while (0)

// The argument at `index` as a positive number, or `fallback`.
inline int argument(int argc, char** argv, int index, int fallback) {
    const int value = argc > index ? std::atoi(argv[index]) : 0;
    return value > 0 ? value : fallback;
}

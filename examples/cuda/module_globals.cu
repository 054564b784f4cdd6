// Variables and constants of modules: those of this program, by their symbols, and those of a
// module that is loaded from PTX text while the program runs, by their names.
#include <cuda.h>

#include "arrays.h"

constexpr int kCount = 8;
__constant__ int weights[kCount];
__device__ int counter = 5;
__device__ int table[kCount] = {10, 20, 30, 40, 50, 60, 70, 80};

__global__ void use() {
    atomicAdd(&counter, 1);
    table[threadIdx.x] = table[threadIdx.x] * weights[threadIdx.x];
}

const char* const kPtx = R"(.version 7.0
.target sm_52
.address_size 64
.visible .const .align 4 .u32 factor[2];
.visible .global .align 4 .u32 result = 1;
.visible .entry compute()
{
  .reg .b32 %a, %b, %c;
  ld.const.u32 %a, [factor];
  ld.const.u32 %b, [factor+4];
  ld.global.u32 %c, [result];
  mad.lo.u32 %c, %c, %a, %b;
  st.global.u32 [result], %c;
  ret;
}
)";

// The driver's own entry points, found through the runtime: nothing to link against.
template <typename Function>
Function driver(const char* name) {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result;
    CHECK(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result));
    return reinterpret_cast<Function>(found);
}

#define CHECK_DRIVER(call)                                                            \
    do {                                                                              \
        const CUresult status = (call);                                               \
        if (status != CUDA_SUCCESS) {                                                 \
            std::fprintf(stderr, "%s failed: %d\n", #call, static_cast<int>(status)); \
            std::exit(1);                                                             \
        }                                                                             \
    } while (0)

// 1 if all is right.
int throughSymbols() {
    const int given[kCount] = {1, 2, 3, 4, 5, 6, 7, 8}, first = 100;
    CHECK(cudaMemcpyToSymbol(weights, given, sizeof given));
    CHECK(cudaMemcpyToSymbol(table, &first, sizeof first, 3 * sizeof(int)));
    use<<<1, kCount>>>();
    use<<<1, kCount>>>();
    CHECK(cudaGetLastError());
    int count = 0, values[kCount];
    CHECK(cudaMemcpyFromSymbol(&count, counter, sizeof count));
    CHECK(cudaMemcpyFromSymbol(values, table, sizeof values));
    size_t size = 0;
    void* address = nullptr;
    CHECK(cudaGetSymbolSize(&size, table));
    CHECK(cudaGetSymbolAddress(&address, table));
    int right = count == 5 + 2 * kCount && size == sizeof values;
    for (int i = 0; i < kCount; ++i) {
        const int start = i == 3 ? 100 : 10 * (i + 1);
        right &= values[i] == start * given[i] * given[i];
    }
    return right && fromDevice(static_cast<int*>(address) + 3, 1)[0] == 100 * 16;
}

// 1 if all is right.
int throughModule() {
    CUmodule module;
    CUfunction compute;
    CUdeviceptr factor, result;
    size_t factorSize = 0, resultSize = 0;
    CHECK_DRIVER(driver<decltype(&cuModuleLoadData)>("cuModuleLoadData")(&module, kPtx));
    const auto global = driver<decltype(&cuModuleGetGlobal)>("cuModuleGetGlobal");
    CHECK_DRIVER(global(&factor, &factorSize, module, "factor"));
    CHECK_DRIVER(global(&result, &resultSize, module, "result"));
    const unsigned factors[] = {7, 3};
    CHECK(cudaMemcpy(reinterpret_cast<void*>(factor), factors, sizeof factors,
                     cudaMemcpyHostToDevice));
    CHECK_DRIVER(
        driver<decltype(&cuModuleGetFunction)>("cuModuleGetFunction")(&compute, module, "compute"));
    const auto launch = driver<decltype(&cuLaunchKernel)>("cuLaunchKernel");
    for (int i = 0; i < 2; ++i) {
        CHECK_DRIVER(launch(compute, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
    }
    const unsigned value = fromDevice(reinterpret_cast<unsigned*>(result), 1)[0];
    CHECK_DRIVER(driver<decltype(&cuModuleUnload)>("cuModuleUnload")(module));
    return factorSize == 8 && resultSize == 4 && value == (1 * 7 + 3) * 7 + 3;
}

int main() {
    const int symbols = throughSymbols(), module = throughModule();
    std::printf("module_globals: %s, symbols %s, loaded module %s\n",
                symbols && module ? "ok" : "WRONG", symbols ? "right" : "wrong",
                module ? "right" : "wrong");
    return symbols && module ? 0 : 1;
}

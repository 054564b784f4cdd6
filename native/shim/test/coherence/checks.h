// Programs that share host memory with the device, and check for themselves what they find there.
// They run on any driver: a real one must pass as well.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "native/gen/driver_table.h"

namespace juice::coherence_test {

extern DriverTable cu;

/// Prints a line for a check that failed, and counts it.
void expect(bool holds, const char* what, int line);
#define EXPECT(condition) ::juice::coherence_test::expect(condition, #condition, __LINE__)

/// Ends the program when a call fails that ought not to.
void succeed(CUresult result, const char* what, int line);
#define OK(call) ::juice::coherence_test::succeed(cu.call, #call, __LINE__)

/// A kernel of kPtx.
CUfunction kernel(const char* name);
template <typename... Arguments>
void launch(const char* name, unsigned threads, CUstream stream, Arguments... arguments) {
    void* parameters[] = {&arguments...};
    const unsigned block = threads < 256 ? threads : 256;
    OK(cuLaunchKernel(kernel(name), (threads + block - 1) / block, 1, 1, block, 1, 1, 0, stream,
                      parameters, nullptr));
}
inline CUdeviceptr device(const void* pointer) {
    return reinterpret_cast<CUdeviceptr>(pointer);
}
/// Pinned memory, filled with `value`.
template <typename T>
T* pinned(size_t count, T value, unsigned flags = 0) {
    void* memory = nullptr;
    OK(cuMemHostAlloc(&memory, count * sizeof(T), flags));
    T* const out = static_cast<T*>(memory);
    for (size_t i = 0; i < count; ++i) out[i] = value;
    return out;
}
/// Does it come true within some seconds? Reads memory anew each time.
bool comesTrue(const std::function<bool()>& condition);

struct Check {
    const char* name;
    void (*run)();
};
extern const Check kFills[], kCopies[], kKernels[], kTalks[], kManaged[];

}  // namespace juice::coherence_test

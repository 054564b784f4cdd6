// Kernels that read and write host memory in place.
#include <sys/mman.h>

#include "native/shim/test/coherence/checks.h"

namespace juice::coherence_test {

CUdeviceptr tableOfModule();

namespace {

constexpr unsigned kCount = 10'000;

bool all(const unsigned* memory, unsigned value) {
    for (unsigned i = 0; i < kCount; ++i)
        if (memory[i] != value) return false;
    return true;
}

void pinnedMemory(unsigned flags) {
    auto* const memory = pinned<unsigned>(kCount, 1, flags);
    CUdeviceptr mapped = 0;
    OK(cuMemHostGetDevicePointer_v2(&mapped, memory, 0));
    for (unsigned round = 0; round < 5; ++round) {
        launch("add", kCount, nullptr, mapped, 10u, kCount);
        OK(cuCtxSynchronize());
        EXPECT(all(memory, 11 + round * 11));
        for (unsigned i = 0; i < kCount; ++i) ++memory[i];
    }
    OK(cuMemFreeHost(memory));
}

void mappedMemory() {
    pinnedMemory(CU_MEMHOSTALLOC_DEVICEMAP);
}
void portableMemory() {
    pinnedMemory(CU_MEMHOSTALLOC_PORTABLE);
}
void writeCombinedMemory() {
    pinnedMemory(CU_MEMHOSTALLOC_WRITECOMBINED);
}

/// With unified addresses nobody has to ask for the device's pointer.
void pinnedMemoryAsItIs() {
    auto* const memory = pinned<unsigned>(kCount, 1);
    // From the middle of the buffer on.
    launch("add", kCount / 2, nullptr, memory + kCount / 2, 10u, kCount / 2);
    OK(cuCtxSynchronize());
    EXPECT(memory[kCount / 2 - 1] == 1 && memory[kCount / 2] == 11 && memory[kCount - 1] == 11);
    OK(cuMemFreeHost(memory));
}

void registeredMemory() {
    constexpr size_t kBytes = 64 * 1024;
    void* const pages =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    auto* const memory = static_cast<unsigned*>(pages);
    for (unsigned i = 0; i < kCount; ++i) memory[i] = i;
    OK(cuMemHostRegister_v2(pages, kBytes, CU_MEMHOSTREGISTER_DEVICEMAP));
    CUdeviceptr mapped = 0;
    OK(cuMemHostGetDevicePointer_v2(&mapped, pages, 0));
    launch("add", kCount, nullptr, mapped, 5u, kCount);
    OK(cuCtxSynchronize());
    bool right = true;
    for (unsigned i = 0; i < kCount; ++i) right = right && memory[i] == i + 5;
    EXPECT(right);
    OK(cuMemHostUnregister(pages));
    EXPECT(memory[kCount - 1] == kCount + 4);
    munmap(pages, kBytes);
}

/// Not as it should be, but no driver minds.
void registeredMemoryIsGivenBackAsItIs() {
    constexpr size_t kSizes[] = {8192, 1 << 20};
    void* mapped[2];  // both at once, so that neither takes the other's place
    for (int i = 0; i < 2; ++i)
        mapped[i] =
            mmap(nullptr, kSizes[i], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 2; ++i) {
        const size_t bytes = kSizes[i];
        void* const pages = mapped[i];
        OK(cuMemHostRegister_v2(pages, bytes, 0));
        auto* const memory = static_cast<unsigned*>(pages);
        memory[0] = 1;
        launch("add", 1000, nullptr, memory, 5u, 1000u);
        OK(cuCtxSynchronize());
        EXPECT(memory[0] == 6 && memory[999] == 5);
        munmap(pages, bytes);
        auto* const other = pinned<unsigned>(1000, 1);
        launch("add", 1000, nullptr, other, 5u, 1000u);
        OK(cuCtxSynchronize());
        EXPECT(other[0] == 6 && other[999] == 6);
        OK(cuMemFreeHost(other));
    }
}

/// The address reaches the device in memory: copied there, or in pinned memory itself.
void memoryBehindAddresses() {
    auto* const memory = pinned<unsigned>(64, 1);
    auto** const place = reinterpret_cast<unsigned**>(pinned<uint64_t>(8, 0));
    CUdeviceptr there = 0;
    OK(cuMemAlloc_v2(&there, 8));
    OK(cuMemcpyHtoD_v2(there, &memory, 8));
    launch("add_behind", 64, nullptr, there, 2u);
    OK(cuCtxSynchronize());
    EXPECT(memory[0] == 3 && memory[63] == 3);
    auto* const other = pinned<unsigned>(64, 5);
    *place = other;
    launch("add_behind", 64, nullptr, place, 2u);
    OK(cuCtxSynchronize());
    EXPECT(other[0] == 7 && other[63] == 7);
    auto* const third = pinned<unsigned>(1, 9);
    OK(cuMemcpyHtoD_v2(tableOfModule(), &third, 8));
    launch("add_table", 1, nullptr, 1u);
    OK(cuCtxSynchronize());
    EXPECT(*third == 10);
    for (void* const one : {static_cast<void*>(memory), static_cast<void*>(place),
                            static_cast<void*>(other), static_cast<void*>(third)})
        OK(cuMemFreeHost(one));
    OK(cuMemFree_v2(there));
}

/// Bytes of the CPU's between bytes of the kernel's, on the same pages and in the same words, while
/// the kernel runs.
void neighboursAreLeftAlone() {
    constexpr unsigned kBytes = 1u << 16;
    auto* const memory = pinned<unsigned char>(2 * kBytes, 0);
    for (unsigned round = 1; round <= 10; ++round) {
        launch("even_bytes", kBytes, nullptr, memory, round);
        for (unsigned i = 0; i < kBytes; ++i)
            __atomic_store_n(&memory[2 * i + 1], 100 + round, __ATOMIC_RELAXED);
        OK(cuCtxSynchronize());
        unsigned wrong = 0;
        for (unsigned i = 0; i < kBytes; ++i)
            wrong += memory[2 * i] != round || memory[2 * i + 1] != 100 + round;
        EXPECT(wrong == 0);
    }
    // And the kernel sees the CPU's.
    CUdeviceptr there = 0;
    OK(cuMemAlloc_v2(&there, 2 * kBytes));
    OK(cuMemcpyDtoD_v2(there, device(memory), 2 * kBytes));
    unsigned char last[2] = {};
    OK(cuMemcpyDtoH_v2(last, there + 2 * kBytes - 2, 2));
    EXPECT(last[0] == 10 && last[1] == 110);
    OK(cuMemFree_v2(there));
    OK(cuMemFreeHost(memory));
}

/// Memory that is freed while device code has just used it, and memory that comes after it.
void memoryComesAndGoes() {
    for (unsigned round = 0; round < 20; ++round) {
        auto* const memory = pinned<unsigned>(kCount, round);
        launch("add", kCount, nullptr, memory, 1u, kCount);
        if (round % 2 == 0) {
            OK(cuCtxSynchronize());
            EXPECT(all(memory, round + 1));
        }
        OK(cuMemFreeHost(memory));
    }
}

void twoContexts() {
    CUcontext before = nullptr, other = nullptr;
    OK(cuCtxGetCurrent(&before));
    auto* const memory = pinned<unsigned>(kCount, 1, CU_MEMHOSTALLOC_PORTABLE);
    launch("add", kCount, nullptr, memory, 1u, kCount);
    OK(cuCtxSynchronize());
    OK(cuCtxCreate_v2(&other, 0, 0));
    OK(cuMemsetD32_v2(device(memory), 50, 100));
    OK(cuCtxSynchronize());
    EXPECT(memory[0] == 50 && memory[99] == 50 && memory[100] == 2);
    // Memory of a context that ends is gone; the rest stays.
    auto* const gone = pinned<unsigned>(kCount, 1);
    OK(cuMemsetD32_v2(device(gone), 50, 100));
    OK(cuCtxDestroy_v2(other));
    OK(cuCtxSetCurrent(before));
    launch("add", kCount, nullptr, memory, 1u, kCount);
    OK(cuCtxSynchronize());
    EXPECT(memory[0] == 51 && memory[100] == 3);
    OK(cuMemFreeHost(memory));
}

}  // namespace

const Check kKernels[] = {
    {"mapped", mappedMemory},
    {"portable", portableMemory},
    {"write_combined", writeCombinedMemory},
    {"as_it_is", pinnedMemoryAsItIs},
    {"registered", registeredMemory},
    {"registered_gone", registeredMemoryIsGivenBackAsItIs},
    {"behind_addresses", memoryBehindAddresses},
    {"neighbours", neighboursAreLeftAlone},
    {"come_and_go", memoryComesAndGoes},
    {"two_contexts", twoContexts},
    {nullptr, nullptr},
};

}  // namespace juice::coherence_test

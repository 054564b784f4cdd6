// Managed memory: one address for the CPU and for the device.
#include "native/shim/test/coherence/checks.h"

namespace juice::coherence_test {
namespace {

constexpr unsigned kCount = 20'000;

template <typename T>
T* managed(size_t count) {
    CUdeviceptr address = 0;
    OK(cuMemAllocManaged(&address, count * sizeof(T), CU_MEM_ATTACH_GLOBAL));
    return reinterpret_cast<T*>(address);
}
void release(const void* memory) {
    OK(cuMemFree_v2(device(memory)));
}

bool all(const unsigned* memory, unsigned value) {
    for (unsigned i = 0; i < kCount; ++i)
        if (memory[i] != value) return false;
    return true;
}

void theCpuAndKernelsTakeTurns() {
    auto* const memory = managed<unsigned>(kCount);
    for (unsigned i = 0; i < kCount; ++i) memory[i] = 1;
    for (unsigned round = 0; round < 5; ++round) {
        launch("add", kCount, nullptr, memory, 10u, kCount);
        launch("add", kCount, nullptr, memory, 1u, kCount);
        OK(cuCtxSynchronize());
        EXPECT(all(memory, 12 + round * 12));
        for (unsigned i = 0; i < kCount; ++i) ++memory[i];
    }
    release(memory);
}

void managedPointersAreWhatTheySay() {
    auto* const memory = managed<unsigned>(kCount);
    unsigned isManaged = 0, type = 0;
    void* host = nullptr;
    CUdeviceptr there = 0, begin = 0;
    size_t size = 0;
    const CUdeviceptr inside = device(memory + 10);
    OK(cuPointerGetAttribute(&isManaged, CU_POINTER_ATTRIBUTE_IS_MANAGED, inside));
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, inside));
    OK(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, inside));
    OK(cuPointerGetAttribute(&there, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, inside));
    OK(cuMemGetAddressRange_v2(&begin, &size, inside));
    EXPECT(isManaged == 1 && type == CU_MEMORYTYPE_DEVICE && host == memory + 10);
    EXPECT(there == inside && begin == device(memory) && size == kCount * sizeof(unsigned));
    EXPECT(cu.cuMemAllocManaged(&begin, 0, CU_MEM_ATTACH_GLOBAL) == CUDA_ERROR_INVALID_VALUE);
    EXPECT(cu.cuMemAllocManaged(&begin, 8, 0) == CUDA_ERROR_INVALID_VALUE);
    release(memory);
    EXPECT(cu.cuMemFree_v2(device(memory)) == CUDA_ERROR_INVALID_VALUE);
}

/// Every copy and fill that can name it.
void copiesAndFillsOfManagedMemory() {
    auto *const memory = managed<unsigned>(kCount), *const other = managed<unsigned>(kCount);
    constexpr size_t kBytes = kCount * sizeof(unsigned);
    static unsigned plain[kCount];
    CUdeviceptr there = 0;
    CUstream stream = nullptr;
    OK(cuMemAlloc_v2(&there, kBytes));
    OK(cuStreamCreate(&stream, 0));
    OK(cuMemsetD32_v2(device(memory), 7, kCount));
    OK(cuCtxSynchronize());
    EXPECT(all(memory, 7));
    OK(cuMemcpyDtoD_v2(there, device(memory), kBytes));
    OK(cuMemcpyDtoH_v2(plain, there, kBytes));
    EXPECT(all(plain, 7));
    for (unsigned& one : plain) one = 9;
    OK(cuMemcpyHtoD_v2(device(memory), plain, kBytes));
    EXPECT(all(memory, 9));
    launch("add", kCount, stream, memory, 1u, kCount);
    OK(cuMemcpyAsync(device(other), device(memory), kBytes, stream));
    OK(cuStreamSynchronize(stream));
    EXPECT(all(other, 10));
    OK(cuMemcpyDtoH_v2(plain, device(other), kBytes));
    EXPECT(all(plain, 10));
    OK(cuMemcpyDtoDAsync_v2(there, device(other), kBytes, stream));
    OK(cuMemcpyDtoDAsync_v2(device(memory), there, kBytes, stream));
    launch("add", kCount, stream, memory, 5u, kCount);
    OK(cuStreamSynchronize(stream));
    EXPECT(all(memory, 15));
    OK(cuStreamDestroy_v2(stream));
    OK(cuMemFree_v2(there));
    release(memory);
    release(other);
}

/// Structures that point at each other need nobody to be told of their parts.
void managedStructuresPointAtEachOther() {
    auto* const memory = managed<unsigned>(64);
    auto** const place = managed<unsigned*>(1);
    for (int i = 0; i < 64; ++i) memory[i] = 5;
    *place = memory;
    launch("add_behind", 64, nullptr, place, 2u);
    OK(cuCtxSynchronize());
    EXPECT(memory[0] == 7 && memory[63] == 7 && *place == memory);
    release(memory);
    release(place);
}

void adviceIsTakenAndTold() {
    auto* const memory = managed<char>(1 << 20);
    const CUdeviceptr at = device(memory);
    int value = -7, devices[3] = {};
    OK(cuMemAdvise(at, 1 << 20, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    OK(cuMemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, at, 1 << 20));
    EXPECT(value == 1);
    OK(cuMemAdvise(at, 1 << 19, CU_MEM_ADVISE_UNSET_READ_MOSTLY, 0));
    OK(cuMemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, at, 1 << 20));
    EXPECT(value == 0);
    OK(cuMemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, at + (1 << 19),
                              1 << 19));
    EXPECT(value == 1);
    OK(cuMemAdvise(at, 1 << 20, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU));
    OK(cuMemAdvise(at, 1 << 20, CU_MEM_ADVISE_SET_ACCESSED_BY, CU_DEVICE_CPU));
    OK(cuMemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, at, 1 << 20));
    EXPECT(value == CU_DEVICE_CPU);
    OK(cuMemRangeGetAttribute(devices, sizeof devices, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, at,
                              1 << 20));
    EXPECT(devices[0] == CU_DEVICE_CPU && devices[1] == CU_DEVICE_INVALID);
    OK(cuMemPrefetchAsync(at, 1 << 20, CU_DEVICE_CPU, nullptr));
    OK(cuStreamSynchronize(nullptr));
    OK(cuMemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, at,
                              1 << 20));
    EXPECT(value == CU_DEVICE_CPU);
    release(memory);
}

}  // namespace

const Check kManaged[] = {
    {"managed_turns", theCpuAndKernelsTakeTurns},
    {"managed_pointers", managedPointersAreWhatTheySay},
    {"managed_copies", copiesAndFillsOfManagedMemory},
    {"managed_structures", managedStructuresPointAtEachOther},
    {"managed_advice", adviceIsTakenAndTold},
    {nullptr, nullptr},
};

}  // namespace juice::coherence_test

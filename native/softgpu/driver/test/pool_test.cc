#include "native/softgpu/driver/test/driver_fixture.h"

namespace juice::softgpu {
namespace {

using Pools = DriverTest;

uint64_t usedIn(CUmemoryPool pool) {
    uint64_t used = 0;
    EXPECT_OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    return used;
}

TEST_F(Pools, AllocateAndFreeInStreamOrder) {
    CUmemoryPool pool = nullptr;
    EXPECT_OK(cuDeviceGetDefaultMemPool(&pool, device));
    volatile uint32_t* gate = pinnedWord();
    const CUstream on = stream();
    CUdeviceptr word = 0;
    EXPECT_OK(cuMemAllocAsync(&word, 4, on));
    EXPECT_EQ(usedIn(pool), 4U);
    CUmemoryPool from = nullptr;
    EXPECT_OK(cuPointerGetAttribute(&from, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, word));
    EXPECT_EQ(from, pool);
    uint32_t value = 5;
    spin(gate, on);
    EXPECT_OK(launch("store", {&word, &value}, on));
    EXPECT_OK(cuMemFreeAsync(word, on));
    EXPECT_EQ(usedIn(pool), 0U) << "counted as free from the call on";
    *gate = 1;
    EXPECT_OK(cuStreamSynchronize(on));
    EXPECT_EQ(cuMemFreeAsync(word, on), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Pools, CanBeMadeAndSetForADevice) {
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    CUmemoryPool made = nullptr, current = nullptr, standard = nullptr;
    ASSERT_OK(cuMemPoolCreate(&made, &properties));
    EXPECT_OK(cuDeviceSetMemPool(device, made));
    EXPECT_OK(cuDeviceGetMemPool(&current, device));
    EXPECT_EQ(current, made);
    CUdeviceptr pointer = 0;
    EXPECT_OK(cuMemAllocAsync(&pointer, 100, nullptr));
    EXPECT_EQ(usedIn(made), 100U);
    EXPECT_OK(cuMemFree_v2(pointer));
    if (isSoftwareGpu()) {
        EXPECT_EQ(usedIn(made), 0U);
    }
    uint64_t threshold = 12345;
    EXPECT_OK(cuMemPoolSetAttribute(made, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    EXPECT_OK(cuMemPoolDestroy(made));
    EXPECT_OK(cuDeviceGetMemPool(&current, device));
    EXPECT_OK(cuDeviceGetDefaultMemPool(&standard, device));
    EXPECT_EQ(current, standard);
    EXPECT_EQ(cuMemPoolDestroy(standard), CUDA_ERROR_INVALID_VALUE);
    properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    EXPECT_OK(cuMemPoolCreate(&made, &properties));
    EXPECT_OK(cuMemPoolDestroy(made));
}

TEST_F(Pools, AreNoLargerThanTheyMayBe) {
    SOFTWARE_GPU_ONLY();
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    properties.maxSize = 1000;
    CUmemoryPool pool = nullptr;
    ASSERT_OK(cuMemPoolCreate(&pool, &properties));
    CUdeviceptr first = 0, second = 0;
    EXPECT_OK(cuMemAllocFromPoolAsync(&first, 600, pool, nullptr));
    EXPECT_EQ(cuMemAllocFromPoolAsync(&second, 600, pool, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_OK(cuMemFreeAsync(first, nullptr));
    EXPECT_OK(cuMemAllocFromPoolAsync(&second, 600, pool, nullptr));
}

TEST_F(Pools, OutlivedByTheirMemoryTakeNothingFromTheNext) {
    SOFTWARE_GPU_ONLY();
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    CUmemoryPool pool = nullptr;
    CUdeviceptr word = 0;
    ASSERT_OK(cuMemPoolCreate(&pool, &properties));
    ASSERT_OK(cuMemAllocFromPoolAsync(&word, 64, pool, nullptr));
    ASSERT_OK(cuMemPoolDestroy(pool));
    EXPECT_EQ(cuMemAllocFromPoolAsync(&word, 64, pool, nullptr), CUDA_ERROR_INVALID_HANDLE);
    ASSERT_OK(cuMemPoolCreate(&pool, &properties));
    EXPECT_OK(cuMemFreeAsync(word, nullptr));
    EXPECT_EQ(usedIn(pool), 0U);
}

TEST_F(Pools, AreFoundByTheirLocation) {
    CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, device};
    CUmemoryPool byLocation = nullptr, byDevice = nullptr;
    EXPECT_OK(cuMemGetDefaultMemPool(&byLocation, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
    EXPECT_OK(cuDeviceGetDefaultMemPool(&byDevice, device));
    EXPECT_EQ(byLocation, byDevice);
    EXPECT_OK(cuMemGetMemPool(&byLocation, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
    EXPECT_EQ(byLocation, byDevice);
    EXPECT_OK(cuMemSetMemPool(&here, CU_MEM_ALLOCATION_TYPE_PINNED, byDevice));
}

}  // namespace
}  // namespace juice::softgpu

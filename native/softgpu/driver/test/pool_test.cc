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
    if (isSoftwareGpu()) {
        EXPECT_EQ(cuMemPoolCreate(&made, &properties), CUDA_ERROR_NOT_SUPPORTED);
    }
}

}  // namespace
}  // namespace juice::softgpu

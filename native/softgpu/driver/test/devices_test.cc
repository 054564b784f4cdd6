// Two devices and what each may reach of the other.
#include "native/softgpu/driver/test/driver_fixture.h"

namespace juice::softgpu {
namespace {

class Devices : public DriverTest {
  protected:
    void SetUp() override {
        setenv("JUICE_SOFTGPU_DEVICES", "2", 0);
        DriverTest::SetUp();
        int count = 0;
        ASSERT_OK(cuDeviceGetCount(&count));
        if (count < 2) GTEST_SKIP() << "needs two devices";
        ASSERT_OK(cuDeviceGet(&other, 1));
        int can = 0;
        ASSERT_OK(cuDeviceCanAccessPeer(&can, device, other));
        if (can == 0) GTEST_SKIP() << "needs devices that are peers";
        ASSERT_OK(cuDevicePrimaryCtxRetain(&second, other));
        ASSERT_OK(cuCtxSetCurrent(second));
        theirs = allocate(1 << 20);
        uint32_t value = 5;
        ASSERT_OK(cuMemcpyHtoD_v2(theirs, &value, sizeof(value)));
        ASSERT_OK(cuCtxSetCurrent(context));
        ours = allocate(1 << 20);
    }

    void TearDown() override {
        if (second != nullptr) {
            EXPECT_OK(cuDevicePrimaryCtxReset(other));
        }
        DriverTest::TearDown();
    }

    CUdevice other = 0;
    CUcontext second = nullptr;
    CUdeviceptr theirs = 0, ours = 0;
};

TEST_F(Devices, AKernelReachesItsPeersMemoryOnceThatIsEnabled) {
    EXPECT_OK(cuCtxEnablePeerAccess(second, 0));
    EXPECT_EQ(cuCtxEnablePeerAccess(second, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    EXPECT_OK(launch("copyFirst", {&ours, &theirs}));
    EXPECT_OK(cuCtxSynchronize());
    EXPECT_EQ(read(ours), 5U);
    EXPECT_OK(cuCtxDisablePeerAccess(second));
    EXPECT_EQ(cuCtxDisablePeerAccess(second), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
}

TEST_F(Devices, AKernelThatReachesAPeersMemoryUnaskedFaults) {
    EXPECT_OK(launch("copyFirst", {&ours, &theirs}));
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_OK(cuCtxSetCurrent(second));
    EXPECT_EQ(read(theirs), 5U) << "the other device lives";
}

TEST_F(Devices, ManagedMemoryIsBoths) {
    CUdeviceptr managed = 0;
    ASSERT_OK(cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL));
    *reinterpret_cast<uint32_t*>(managed) = 40;
    uint32_t one = 1;
    EXPECT_OK(launch("add", {&managed, &one}));
    EXPECT_OK(cuCtxSynchronize());
    EXPECT_OK(cuCtxSetCurrent(second));
    CUmodule loaded = nullptr;
    CUfunction add = nullptr;
    ASSERT_OK(cuModuleLoadData(&loaded, kKernels));
    ASSERT_OK(cuModuleGetFunction(&add, loaded, "add"));
    void* parameters[] = {&managed, &one};
    EXPECT_OK(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
    EXPECT_OK(cuCtxSynchronize());
    EXPECT_EQ(*reinterpret_cast<uint32_t*>(managed), 42U);
    EXPECT_OK(cuCtxSetCurrent(context));
}

TEST_F(Devices, CopiesNeedNoPeerAccess) {
    EXPECT_OK(cuMemcpyPeer(ours, context, theirs, second, 1 << 20));
    EXPECT_EQ(read(ours), 5U);
    EXPECT_OK(cuMemcpy(ours + 4, theirs, 4));
    EXPECT_EQ(read(ours + 4), 5U);
    EXPECT_OK(cuMemcpyPeerAsync(theirs + 8, second, ours, context, 4, nullptr));
    EXPECT_OK(cuCtxSynchronize());
    EXPECT_EQ(read(theirs + 8), 5U);
}

TEST_F(Devices, MappedMemoryIsReachedByWhomItWasAllowed) {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, other};
    size_t unit = 0;
    ASSERT_OK(cuMemGetAllocationGranularity(&unit, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr range = 0;
    ASSERT_OK(cuMemCreate(&handle, unit, &properties, 0));
    ASSERT_OK(cuMemAddressReserve(&range, unit, 0, 0, 0));
    ASSERT_OK(cuMemMap(range, unit, 0, handle, 0));
    const CUmemAccessDesc both[] = {
        {{CU_MEM_LOCATION_TYPE_DEVICE, device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
        {{CU_MEM_LOCATION_TYPE_DEVICE, other}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE}};
    ASSERT_OK(cuMemSetAccess(range, unit, both, 2));
    uint32_t value = 9;
    EXPECT_OK(launch("store", {&range, &value})) << "no peer access was enabled";
    EXPECT_OK(cuCtxSynchronize());
    EXPECT_EQ(read(range), 9U);
    CUmemAccessDesc none{{CU_MEM_LOCATION_TYPE_DEVICE, device}, CU_MEM_ACCESS_FLAGS_PROT_NONE};
    EXPECT_OK(cuMemSetAccess(range, unit, &none, 1));
    SOFTWARE_GPU_ONLY();
    EXPECT_OK(launch("store", {&range, &value}));
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(Devices, PoolMemoryIsReachedByWhomThePoolAllows) {
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, other};
    CUmemoryPool pool = nullptr;
    ASSERT_OK(cuMemPoolCreate(&pool, &properties));
    ASSERT_OK(cuCtxSetCurrent(second));
    CUdeviceptr word = 0;
    ASSERT_OK(cuMemAllocFromPoolAsync(&word, 64, pool, nullptr));
    uint32_t value = 6;
    ASSERT_OK(cuMemcpyHtoD_v2(word, &value, sizeof(value)));
    ASSERT_OK(cuCtxSetCurrent(context));
    const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, device},
                                 CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    EXPECT_OK(cuMemPoolSetAccess(pool, &access, 1));
    CUmemAccess_flags flags = 0;
    CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, device};
    EXPECT_OK(cuMemPoolGetAccess(&flags, pool, &here));
    EXPECT_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    EXPECT_OK(launch("copyFirst", {&ours, &word}));
    EXPECT_OK(cuCtxSynchronize());
    EXPECT_EQ(read(ours), 6U);
    SOFTWARE_GPU_ONLY();
    const CUmemAccessDesc none{{CU_MEM_LOCATION_TYPE_DEVICE, device},
                               CU_MEM_ACCESS_FLAGS_PROT_NONE};
    EXPECT_OK(cuMemPoolSetAccess(pool, &none, 1));
    EXPECT_OK(cuCtxEnablePeerAccess(second, 0)) << "which is not about pools";
    EXPECT_OK(launch("copyFirst", {&ours, &word}));
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

}  // namespace
}  // namespace juice::softgpu

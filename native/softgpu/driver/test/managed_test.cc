#include <array>
#include <cstring>

#include "native/softgpu/driver/test/driver_fixture.h"

namespace juice::softgpu {
namespace {

class Managed : public DriverTest {
  protected:
    static constexpr size_t kSize = size_t{1} << 20;

    void SetUp() override {
        DriverTest::SetUp();
        ASSERT_OK(cuMemAllocManaged(&memory, kSize, CU_MEM_ATTACH_GLOBAL));
    }

    int ask(CUmem_range_attribute attribute, size_t offset = 0, size_t size = kSize) const {
        int value = 77;
        EXPECT_OK(cuMemRangeGetAttribute(&value, sizeof(value), attribute, memory + offset, size));
        return value;
    }

    CUdeviceptr memory = 0;
};

TEST_F(Managed, IsSaidToBeSharedByTheDevice) {
    int value = 0;
    EXPECT_OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, device));
    EXPECT_EQ(value, 1);
    EXPECT_OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, device));
    EXPECT_EQ(value, 1);
}

TEST_F(Managed, BeginsItsOwnPages) {
    CUdeviceptr first = 0, second = 0;
    EXPECT_OK(cuMemAllocManaged(&first, 1, CU_MEM_ATTACH_HOST));
    EXPECT_OK(cuMemAllocManaged(&second, 1, CU_MEM_ATTACH_HOST));
    EXPECT_EQ(first % 4096, 0U);
    EXPECT_EQ(second % 4096, 0U);
}

TEST_F(Managed, HasNoAdviceToBeginWith) {
    EXPECT_EQ(ask(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY), 0);
    EXPECT_EQ(ask(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION), CU_DEVICE_INVALID);
    EXPECT_EQ(ask(CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY), CU_DEVICE_INVALID);
    EXPECT_EQ(ask(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION), CU_DEVICE_INVALID);
}

TEST_F(Managed, TellsWhatItWasAdvised) {
    const size_t half = kSize / 2;
    EXPECT_OK(cuMemAdvise(memory, half, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
    EXPECT_EQ(ask(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, 0, half), 1);
    EXPECT_EQ(ask(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY), 0) << "not all of it";
    EXPECT_OK(cuMemAdvise(memory, kSize, CU_MEM_ADVISE_UNSET_READ_MOSTLY, device));
    EXPECT_EQ(ask(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, 0, half), 0);

    EXPECT_OK(cuMemAdvise(memory, kSize, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, device));
    EXPECT_EQ(ask(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION), device);
    EXPECT_OK(cuMemAdvise(memory, half, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU));
    EXPECT_EQ(ask(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, 0, half), CU_DEVICE_CPU);
    EXPECT_EQ(ask(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION), CU_DEVICE_INVALID);
    EXPECT_EQ(ask(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, half, half),
              CU_MEM_LOCATION_TYPE_DEVICE);
    EXPECT_EQ(ask(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID, half, half), device);
}

TEST_F(Managed, TellsWhoAccessesIt) {
    EXPECT_OK(cuMemAdvise(memory, kSize, CU_MEM_ADVISE_SET_ACCESSED_BY, device));
    EXPECT_OK(cuMemAdvise(memory, kSize / 2, CU_MEM_ADVISE_SET_ACCESSED_BY, CU_DEVICE_CPU));
    std::array<int, 3> who{};
    EXPECT_OK(cuMemRangeGetAttribute(who.data(), sizeof(who), CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY,
                                     memory, kSize));
    EXPECT_EQ(who, (std::array<int, 3>{device, CU_DEVICE_INVALID, CU_DEVICE_INVALID}));
    EXPECT_EQ(
        cuMemRangeGetAttribute(who.data(), 5, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, memory, kSize),
        CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Managed, IsPrefetchedInStreamOrder) {
    const CUstream on = stream();
    EXPECT_OK(cuMemPrefetchAsync(memory, kSize, device, on));
    EXPECT_OK(cuStreamSynchronize(on));
    EXPECT_EQ(ask(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION), device);
    EXPECT_OK(cuMemPrefetchAsync_v2(memory, 4096, {CU_MEM_LOCATION_TYPE_HOST, 0}, 0, on));
    EXPECT_OK(cuStreamSynchronize(on));
    int values[2] = {};
    void* data[] = {&values[0], &values[1]};
    size_t sizes[] = {sizeof(int), sizeof(int)};
    CUmem_range_attribute attributes[] = {CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION,
                                          CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE};
    EXPECT_OK(cuMemRangeGetAttributes(data, sizes, attributes, 2, memory, 4096));
    EXPECT_EQ(values[0], CU_DEVICE_CPU);
    EXPECT_EQ(values[1], CU_MEM_LOCATION_TYPE_HOST);
}

TEST_F(Managed, IsPrefetchedAndDiscardedInBatches) {
    const CUstream on = stream();
    CUdeviceptr pointers[] = {memory, memory + kSize / 2};
    size_t sizes[] = {4096, 8192};
    CUmemLocation locations[] = {{CU_MEM_LOCATION_TYPE_DEVICE, device},
                                 {CU_MEM_LOCATION_TYPE_HOST, 0}};
    size_t indices[] = {0, 1};
    EXPECT_OK(cuMemPrefetchBatchAsync(pointers, sizes, 2, locations, indices, 2, 0, on));
    EXPECT_OK(cuMemDiscardBatchAsync(pointers, sizes, 2, 0, on));
    EXPECT_OK(cuStreamSynchronize(on));
    SOFTWARE_GPU_ONLY();
    EXPECT_EQ(ask(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, 0, 4096), device);
    EXPECT_EQ(ask(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, kSize / 2, 8192), CU_DEVICE_CPU);
    indices[1] = 2;
    EXPECT_EQ(cuMemPrefetchBatchAsync(pointers, sizes, 2, locations, indices, 2, 0, on),
              CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Managed, IsAllThatAdviceIsTakenFor) {
    const CUdeviceptr plain = allocate(4096);
    EXPECT_EQ(cuMemAdvise(plain, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, device),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemAdvise(memory, 0, CU_MEM_ADVISE_SET_READ_MOSTLY, device),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemAdvise(memory, 4096, 99, device), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemAdvise(memory, 4096, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 1000),
              CUDA_ERROR_INVALID_DEVICE);
    EXPECT_EQ(cuMemPrefetchAsync(memory, 4096, 1000, nullptr), CUDA_ERROR_INVALID_DEVICE);
    int value = 0;
    EXPECT_EQ(cuMemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, plain, 4096),
              CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Managed, LosesItsAdviceWhenItIsFreed) {
    SOFTWARE_GPU_ONLY();
    EXPECT_OK(cuMemAdvise(memory, kSize, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
    EXPECT_OK(cuMemFree_v2(memory));
    ASSERT_OK(cuMemAllocManaged(&memory, kSize, CU_MEM_ATTACH_GLOBAL));
    EXPECT_EQ(ask(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY), 0);
}

TEST_F(Managed, IsAttachedAsAWhole) {
    const CUstream on = stream();
    EXPECT_OK(cuStreamAttachMemAsync(on, memory, 0, CU_MEM_ATTACH_SINGLE));
    EXPECT_OK(cuStreamAttachMemAsync(on, memory, kSize, CU_MEM_ATTACH_GLOBAL));
    EXPECT_OK(cuStreamSynchronize(on));
    EXPECT_EQ(cuStreamAttachMemAsync(nullptr, memory, 0, CU_MEM_ATTACH_SINGLE),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuStreamAttachMemAsync(on, memory, 0, 8), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuStreamAttachMemAsync(on, allocate(64), 0, CU_MEM_ATTACH_GLOBAL),
              CUDA_ERROR_INVALID_VALUE);
}

constexpr char kVariables[] = R"(
.version 9.0
.target sm_75
.address_size 64
.visible .global .attribute(.managed) .align 4 .u32 shared = 40;
.visible .global .align 4 .u32 plain = 5;
.visible .entry bump()
{
    .reg .b32 %r<3>;
    ld.global.u32 %r1, [shared];
    ld.global.u32 %r2, [plain];
    add.u32 %r1, %r1, %r2;
    st.global.u32 [shared], %r1;
    ret;
}
)";

TEST_F(Managed, VariablesAreTheHostsToo) {
    CUmodule loaded = nullptr;
    ASSERT_OK(cuModuleLoadData(&loaded, kVariables));
    CUdeviceptr address = 0;
    size_t size = 0;
    ASSERT_OK(cuModuleGetGlobal_v2(&address, &size, loaded, "shared"));
    EXPECT_EQ(size, 4U);
    int managed = 0;
    EXPECT_OK(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address));
    EXPECT_EQ(managed, 1);
    auto* const word = reinterpret_cast<volatile uint32_t*>(address);
    EXPECT_EQ(*word, 40U);
    *word = 37;
    CUfunction bump = nullptr;
    ASSERT_OK(cuModuleGetFunction(&bump, loaded, "bump"));
    EXPECT_OK(cuLaunchKernel(bump, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
    EXPECT_OK(cuCtxSynchronize());
    EXPECT_EQ(*word, 42U);
    EXPECT_EQ(cuMemFree_v2(address), CUDA_ERROR_INVALID_VALUE);
    EXPECT_OK(cuModuleUnload(loaded));
}

TEST_F(Managed, VariablesOfALibraryAreTheSameInEveryContext) {
    CUlibrary library = nullptr;
    ASSERT_OK(cuLibraryLoadData(&library, kVariables, nullptr, nullptr, 0, nullptr, nullptr, 0));
    CUdeviceptr address = 0, again = 0;
    size_t size = 0;
    ASSERT_OK(cuLibraryGetManaged(&address, &size, library, "shared"));
    EXPECT_EQ(cuLibraryGetManaged(&again, &size, library, "plain"), CUDA_ERROR_NOT_FOUND);
    auto* const word = reinterpret_cast<volatile uint32_t*>(address);
    CUkernel bump = nullptr;
    ASSERT_OK(cuLibraryGetKernel(&bump, library, "bump"));
    const auto run = [&] {
        return cuLaunchKernel(reinterpret_cast<CUfunction>(bump), 1, 1, 1, 1, 1, 1, 0, nullptr,
                              nullptr, nullptr);
    };
    EXPECT_OK(run());
    EXPECT_OK(cuCtxSynchronize());
    EXPECT_EQ(*word, 45U);
    CUcontext second = nullptr;
    ASSERT_OK(cuCtxCreate_v4(&second, nullptr, 0, device));
    EXPECT_OK(run());
    EXPECT_OK(cuCtxSynchronize());
    EXPECT_EQ(*word, 50U);
    EXPECT_OK(cuCtxDestroy_v2(second));
    EXPECT_OK(cuCtxSetCurrent(context));
    EXPECT_OK(run());
    EXPECT_OK(cuCtxSynchronize());
    EXPECT_EQ(*word, 55U);
    EXPECT_OK(cuLibraryUnload(library));
}

}  // namespace
}  // namespace juice::softgpu

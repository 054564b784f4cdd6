// Managed memory, virtual memory and memory of other processes, through the driver API.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>

#include "test/softgpu/device.h"

namespace juice::truth {
namespace {

class DriverMemory : public DeviceTest {
  protected:
    int attribute(CUdevice_attribute which) const {
        int value = 0;
        EXPECT_OK(cuDeviceGetAttribute(&value, which, device));
        return value;
    }

    /// Adds to the word at an address.
    std::string adder() const {
        return head() + R"(
.visible .entry add(.param .u64 at, .param .u32 value)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [at];
    ld.param.u32 %r1, [value];
    ld.u32 %r2, [%rd1];
    add.u32 %r2, %r2, %r1;
    st.u32 [%rd1], %r2;
    ret;
}
)";
    }
};

#define NEEDS_ATTRIBUTE(which) \
    if (attribute(which) == 0) GTEST_SKIP() << "needs device attribute " << (which)

TEST_F(DriverMemory, ManagedIsReadAndWrittenByBothSides) {
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
    const Module module(adder());
    CUdeviceptr memory = 0;
    ASSERT_OK(cuMemAllocManaged(&memory, 1 << 20, CU_MEM_ATTACH_GLOBAL));
    auto* const words = reinterpret_cast<volatile uint32_t*>(memory);
    words[1000] = 40;
    EXPECT_OK(run(module.function("add"), {}, {}, 0, memory + 4000, 2));
    EXPECT_EQ(words[1000], 42U);
    EXPECT_OK(cuMemFree_v2(memory));
}

TEST_F(DriverMemory, ManagedTellsWhatItWasAdvised) {
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
    constexpr size_t kSize = size_t{4} << 20;
    CUdeviceptr memory = 0;
    ASSERT_OK(cuMemAllocManaged(&memory, kSize, CU_MEM_ATTACH_GLOBAL));
    const auto ask = [&](CUmem_range_attribute which) {
        int value = 77;
        EXPECT_OK(cuMemRangeGetAttribute(&value, sizeof(value), which, memory, kSize));
        return value;
    };
    EXPECT_EQ(ask(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY), 0);
    EXPECT_EQ(ask(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION), CU_DEVICE_INVALID);
    EXPECT_OK(cuMemAdvise(memory, kSize, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
    EXPECT_EQ(ask(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY), 1);
    EXPECT_OK(cuMemAdvise(memory, kSize, CU_MEM_ADVISE_UNSET_READ_MOSTLY, device));
    EXPECT_OK(cuMemAdvise(memory, kSize, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, device));
    EXPECT_EQ(ask(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION), device);
    EXPECT_OK(cuMemPrefetchAsync(memory, kSize, device, nullptr));
    EXPECT_OK(cuCtxSynchronize());
    EXPECT_EQ(ask(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION), device);
    EXPECT_OK(cuMemFree_v2(memory));
}

class VirtualMemory : public DriverMemory {
  protected:
    void SetUp() override {
        DriverMemory::SetUp();
        if (IsSkipped() || HasFatalFailure()) return;
        NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
        properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
        ASSERT_OK(
            cuMemGetAllocationGranularity(&unit, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    }

    void allow(CUdeviceptr address, size_t size) const {
        const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, device},
                                     CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        EXPECT_OK(cuMemSetAccess(address, size, &access, 1));
    }

    CUmemAllocationProp properties{};
    size_t unit = 0;
};

TEST_F(VirtualMemory, NeighbouringMappingsAreOneStretch) {
    CUdeviceptr range = 0;
    ASSERT_OK(cuMemAddressReserve(&range, 2 * unit, 0, 0, 0));
    for (size_t i = 0; i < 2; ++i) {
        CUmemGenericAllocationHandle handle = 0;
        ASSERT_OK(cuMemCreate(&handle, unit, &properties, 0));
        ASSERT_OK(cuMemMap(range + i * unit, unit, 0, handle, 0));
        EXPECT_OK(cuMemRelease(handle));
    }
    allow(range, 2 * unit);
    std::vector<uint8_t> from(2 * unit), to(2 * unit);
    for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<uint8_t>(i * 7 + i / unit);
    EXPECT_OK(cuMemcpyHtoD_v2(range, from.data(), from.size()));
    EXPECT_OK(cuMemcpyDtoH_v2(to.data(), range, to.size()));
    EXPECT_EQ(std::memcmp(from.data(), to.data(), to.size()), 0);
    EXPECT_OK(cuMemUnmap(range, 2 * unit));
    EXPECT_OK(cuMemAddressFree(range, 2 * unit));
}

TEST_F(VirtualMemory, PhysicalMemoryIsSeenWhereverItIsMapped) {
    const Module module(adder());
    CUdeviceptr range = 0;
    CUmemGenericAllocationHandle handle = 0;
    ASSERT_OK(cuMemAddressReserve(&range, 2 * unit, 0, 0, 0));
    ASSERT_OK(cuMemCreate(&handle, unit, &properties, 0));
    ASSERT_OK(cuMemMap(range, unit, 0, handle, 0));
    ASSERT_OK(cuMemMap(range + unit, unit, 0, handle, 0));
    allow(range, 2 * unit);
    EXPECT_OK(cuMemsetD32_v2(range, 5, unit / 4));
    EXPECT_OK(run(module.function("add"), {}, {}, 0, range + unit + 64, 4));
    uint32_t value = 0;
    EXPECT_OK(cuMemcpyDtoH_v2(&value, range + 64, 4));
    EXPECT_EQ(value, 9U);
    EXPECT_OK(cuMemUnmap(range, 2 * unit));
    EXPECT_OK(cuMemRelease(handle));
    EXPECT_OK(cuMemAddressFree(range, 2 * unit));
}

TEST_F(VirtualMemory, ImpossibleCallsAreErrors) {
    CUdeviceptr range = 0;
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_EQ(cuMemAddressReserve(&range, unit + 1, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemCreate(&handle, unit + 1, &properties, 0), CUDA_ERROR_INVALID_VALUE);
    ASSERT_OK(cuMemAddressReserve(&range, unit, 0, 0, 0));
    ASSERT_OK(cuMemCreate(&handle, unit, &properties, 0));
    EXPECT_EQ(cuMemMap(range, 2 * unit, 0, handle, 0), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT_OK(cuMemRelease(handle));
    EXPECT_OK(cuMemAddressFree(range, unit));
}

/// The other process of the test below is this program again, told by a variable what to do.
constexpr char kHandle[] = "JUICE_TRUTH_IPC_HANDLE";

class Ipc : public DriverMemory {};

TEST_F(Ipc, OtherProcess) {
    const char* const digits = std::getenv(kHandle);
    if (digits == nullptr) GTEST_SKIP() << "the other half of SharesMemoryBetweenProcesses";
    CUipcMemHandle handle{};
    for (size_t i = 0; i < sizeof(handle.reserved); ++i) {
        const std::string two(digits + 2 * i, 2);
        handle.reserved[i] = static_cast<char>(std::stoi(two, nullptr, 16));
    }
    CUdeviceptr memory = 0;
    ASSERT_OK(cuIpcOpenMemHandle_v2(&memory, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    const Module module(adder());
    EXPECT_OK(run(module.function("add"), {}, {}, 0, memory + 12, 1));
    EXPECT_OK(cuIpcCloseMemHandle(memory));
}

TEST_F(Ipc, SharesMemoryBetweenProcesses) {
    Buffer<uint32_t> buffer(std::vector<uint32_t>(1024, 41));
    CUipcMemHandle handle{};
    const CUresult exported = cuIpcGetMemHandle(&handle, buffer.address());
    if (exported == CUDA_ERROR_NOT_SUPPORTED) GTEST_SKIP() << "needs memory between processes";
    ASSERT_OK(exported);
    std::string digits;
    for (const char c : handle.reserved) {
        std::array<char, 3> two{};
        std::snprintf(two.data(), two.size(), "%02x", static_cast<unsigned char>(c));
        digits += two.data();
    }
    const std::string command = std::string(kHandle) + "=" + digits + " /proc/" +
                                std::to_string(getpid()) +
                                "/exe --gtest_filter=Ipc.OtherProcess --gtest_brief=1";
    EXPECT_EQ(std::system(command.c_str()), 0);
    EXPECT_EQ(buffer.read()[3], 42U);
    CUdeviceptr own = 0;
    EXPECT_EQ(cuIpcOpenMemHandle_v2(&own, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
              CUDA_ERROR_INVALID_CONTEXT);
}

}  // namespace
}  // namespace juice::truth

#include <unistd.h>

#include <cstring>

#include "native/softgpu/driver/test/driver_fixture.h"

namespace juice::softgpu {
namespace {

class Virtual : public DriverTest {
  protected:
    void SetUp() override {
        DriverTest::SetUp();
        properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
        ASSERT_OK(
            cuMemGetAllocationGranularity(&unit, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    }

    static CUdeviceptr reserve(size_t size) {
        CUdeviceptr range = 0;
        EXPECT_OK(cuMemAddressReserve(&range, size, 0, 0, 0));
        return range;
    }

    CUmemGenericAllocationHandle create(size_t size) const {
        CUmemGenericAllocationHandle handle = 0;
        EXPECT_OK(cuMemCreate(&handle, size, &properties, 0));
        return handle;
    }

    CUresult allow(CUdeviceptr address, size_t size, CUmemAccess_flags flags) const {
        const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, device}, flags};
        return cuMemSetAccess(address, size, &access, 1);
    }

    /// Memory of `count` units, each of its own allocation, that may be read and written.
    CUdeviceptr mapped(size_t count) const {
        const CUdeviceptr range = reserve(count * unit);
        for (size_t i = 0; i < count; ++i) {
            const auto handle = create(unit);
            EXPECT_OK(cuMemMap(range + i * unit, unit, 0, handle, 0));
            EXPECT_OK(cuMemRelease(handle));
        }
        EXPECT_OK(allow(range, count * unit, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
        return range;
    }

    static void write(CUdeviceptr address, uint32_t value) {
        EXPECT_OK(cuMemcpyHtoD_v2(address, &value, sizeof(value)));
    }

    CUmemAllocationProp properties{};
    size_t unit = 0;
};

TEST_F(Virtual, MemoryIsUsedLikeAnyOther) {
    CUdeviceptr word = mapped(1) + 100;
    write(word, 40);
    uint32_t two = 2;
    EXPECT_OK(launch("add", {&word, &two}));
    EXPECT_EQ(read(word), 42U);
    EXPECT_OK(cuMemsetD32_v2(word, 7, 10));
    EXPECT_EQ(read(word + 36), 7U);
}

TEST_F(Virtual, NeighbouringMappingsAreOneForCopiesAndKernels) {
    const CUdeviceptr range = mapped(3);
    std::vector<uint8_t> from(3 * unit), to(3 * unit);
    for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<uint8_t>(i * 7 + i / unit);
    EXPECT_OK(cuMemcpyHtoD_v2(range, from.data(), from.size()));
    EXPECT_OK(cuMemcpyDtoH_v2(to.data(), range, to.size()));
    EXPECT_EQ(std::memcmp(from.data(), to.data(), to.size()), 0);
    EXPECT_OK(cuMemsetD8_v2(range + unit - 8, 9, 16));
    EXPECT_OK(cuMemcpyDtoH_v2(to.data(), range + unit - 8, 16));
    for (size_t i = 0; i < 16; ++i) EXPECT_EQ(to[i], 9);
}

TEST_F(Virtual, PhysicalMemoryIsSeenAtEveryPlaceWhereItIsMapped) {
    const CUdeviceptr range = reserve(2 * unit);
    const auto handle = create(unit);
    EXPECT_OK(cuMemMap(range, unit, 0, handle, 0));
    EXPECT_OK(cuMemMap(range + unit, unit, 0, handle, 0));
    EXPECT_OK(allow(range, 2 * unit, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    write(range + 64, 5);
    EXPECT_EQ(read(range + unit + 64), 5U);
    EXPECT_OK(cuMemUnmap(range, 2 * unit));
    EXPECT_OK(cuMemMap(range, unit, 0, handle, 0));
    EXPECT_OK(allow(range, unit, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    EXPECT_EQ(read(range + 64), 5U) << "kept while unmapped";
}

TEST_F(Virtual, WithoutAccessItIsNotReached) {
    const CUdeviceptr range = reserve(unit);
    EXPECT_OK(cuMemMap(range, unit, 0, create(unit), 0));
    unsigned long long flags = 9;
    const CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, device};
    EXPECT_OK(cuMemGetAccess(&flags, &here, range));
    EXPECT_EQ(flags, 0U);
    SOFTWARE_GPU_ONLY();
    uint32_t word = 0;
    EXPECT_EQ(cuMemcpyHtoD_v2(range, &word, 4), CUDA_ERROR_INVALID_VALUE);
    CUdeviceptr address = range;
    EXPECT_OK(launch("store", {&address, &word}));
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(Virtual, AccessForReadingAloneIsRefusedByName) {
    SOFTWARE_GPU_ONLY();
    const CUdeviceptr range = mapped(1);
    EXPECT_EQ(allow(range, unit, CU_MEM_ACCESS_FLAGS_PROT_READ), CUDA_ERROR_NOT_SUPPORTED);
}

TEST_F(Virtual, WhatWasUnmappedIsNotReached) {
    SOFTWARE_GPU_ONLY();
    CUdeviceptr range = mapped(1);
    uint32_t value = 1;
    EXPECT_OK(launch("store", {&range, &value}));
    EXPECT_OK(cuCtxSynchronize());
    EXPECT_OK(cuMemUnmap(range, unit));
    EXPECT_EQ(cuMemcpyHtoD_v2(range, &value, 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT_OK(launch("store", {&range, &value}));
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(Virtual, TakesAndGivesBackDeviceMemory) {
    SOFTWARE_GPU_ONLY();
    size_t before = 0, during = 0, after = 0, total = 0;
    EXPECT_OK(cuMemGetInfo_v2(&before, &total));
    const auto handle = create(4 * unit);
    const CUdeviceptr range = reserve(4 * unit);
    EXPECT_OK(cuMemMap(range, 4 * unit, 0, handle, 0));
    EXPECT_OK(cuMemRelease(handle));
    EXPECT_OK(cuMemGetInfo_v2(&during, &total));
    EXPECT_EQ(during, before - 4 * unit) << "mapped though its handle is released";
    EXPECT_OK(cuMemUnmap(range, 4 * unit));
    EXPECT_OK(cuMemGetInfo_v2(&after, &total));
    EXPECT_EQ(after, before);
    CUmemGenericAllocationHandle huge = 0;
    EXPECT_EQ(cuMemCreate(&huge, (total / unit + 1) * unit, &properties, 0),
              CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(Virtual, AHandleIsFoundByAnAddress) {
    const CUdeviceptr range = mapped(1);
    CUmemGenericAllocationHandle handle = 0;
    ASSERT_OK(cuMemRetainAllocationHandle(&handle, reinterpret_cast<void*>(range + 5)));
    CUmemAllocationProp found{};
    EXPECT_OK(cuMemGetAllocationPropertiesFromHandle(&found, handle));
    EXPECT_EQ(found.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
    EXPECT_EQ(found.location.id, device);
    EXPECT_OK(cuMemRelease(handle));
    void* own = &handle;
    EXPECT_EQ(cuMemRetainAllocationHandle(&handle, own), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Virtual, AReservationIsAtItsHintWhenThatIsFree) {
    const CUdeviceptr first = reserve(4 * unit);
    EXPECT_OK(cuMemAddressFree(first, 4 * unit));
    CUdeviceptr second = 0;
    EXPECT_OK(cuMemAddressReserve(&second, 4 * unit, 0, first, 0));
    EXPECT_EQ(second, first);
    CUdeviceptr third = 0;
    EXPECT_OK(cuMemAddressReserve(&third, unit, 0, first, 0));
    EXPECT_NE(third, first);
    CUdeviceptr aligned = 0;
    EXPECT_OK(cuMemAddressReserve(&aligned, unit, 16 * unit, 0, 0));
    EXPECT_EQ(aligned % (16 * unit), 0U);
}

TEST_F(Virtual, ImpossibleCallsAreErrorsAndChangeNothing) {
    CUdeviceptr range = reserve(2 * unit), none = 0;
    CUmemGenericAllocationHandle handle = create(unit), bad = 0;
    EXPECT_EQ(cuMemAddressReserve(&none, unit + 1, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemAddressReserve(&none, 0, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemCreate(&bad, unit + 1, &properties, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemMap(range, unit, 0, handle + 8, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemMap(range + 1, unit, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemMap(range, 2 * unit, 0, handle, 0), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(allow(range, unit, CU_MEM_ACCESS_FLAGS_PROT_READWRITE), CUDA_ERROR_INVALID_VALUE);
    EXPECT_OK(cuMemMap(range, unit, 0, handle, 0));
    EXPECT_EQ(cuMemMap(range, unit, 0, handle, 0), CUDA_ERROR_INVALID_VALUE) << "mapped already";
    EXPECT_EQ(allow(range, 2 * unit, CU_MEM_ACCESS_FLAGS_PROT_READWRITE), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemAddressFree(range, 2 * unit), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemUnmap(range, 2 * unit), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemFree_v2(range), CUDA_ERROR_INVALID_VALUE);
    EXPECT_OK(cuMemUnmap(range, unit));
    EXPECT_OK(cuMemAddressFree(range, 2 * unit));
    EXPECT_OK(cuMemRelease(handle));
    if (isSoftwareGpu()) {
        EXPECT_EQ(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
    }
}

TEST_F(Virtual, MemoryIsExportedAsAFileDescriptor) {
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    const auto handle = create(unit);
    const CUdeviceptr range = reserve(2 * unit);
    int file = -1;
    ASSERT_OK(
        cuMemExportToShareableHandle(&file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    CUmemGenericAllocationHandle imported = 0;
    ASSERT_OK(cuMemImportFromShareableHandle(&imported,
                                             reinterpret_cast<void*>(static_cast<intptr_t>(file)),
                                             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    EXPECT_EQ(close(file), 0);
    EXPECT_OK(cuMemMap(range, unit, 0, handle, 0));
    EXPECT_OK(cuMemMap(range + unit, unit, 0, imported, 0));
    EXPECT_OK(allow(range, 2 * unit, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    write(range + 12, 77);
    EXPECT_EQ(read(range + unit + 12), 77U);
}

TEST_F(Virtual, OnlyWhatAskedForItIsExported) {
    int file = -1;
    EXPECT_EQ(cuMemExportToShareableHandle(&file, create(unit),
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
              CUDA_ERROR_INVALID_VALUE);
    SOFTWARE_GPU_ONLY();
    CUmemGenericAllocationHandle imported = 0;
    EXPECT_EQ(cuMemImportFromShareableHandle(&imported, nullptr,
                                             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
              CUDA_ERROR_INVALID_VALUE)
        << "standard input is no memory";
}

TEST_F(Virtual, PointersTellWhatTheyAre) {
    const CUdeviceptr range = mapped(2);
    int type = 0, ordinal = 9, managed = 9;
    EXPECT_OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, range));
    EXPECT_EQ(type, CU_MEMORYTYPE_DEVICE);
    EXPECT_OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, range));
    EXPECT_EQ(ordinal, device);
    EXPECT_OK(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, range));
    EXPECT_EQ(managed, 0);
    CUdeviceptr base = 0;
    size_t size = 0;
    EXPECT_OK(cuMemGetAddressRange_v2(&base, &size, range + unit + 1));
    SOFTWARE_GPU_ONLY();
    EXPECT_EQ(base, range + unit);
    EXPECT_EQ(size, unit);
}

}  // namespace
}  // namespace juice::softgpu

#include <fcntl.h>

#include <cstring>

#include "native/softgpu/driver/test/driver_fixture.h"
#include "native/softgpu/driver/test/peer.h"

namespace juice::softgpu {
namespace {

class Ipc : public DriverTest {
  protected:
    template <typename Handle>
    static std::string text(const Handle& handle) {
        std::string digits;
        for (const char c : handle.reserved) {
            char two[3];
            std::snprintf(two, sizeof(two), "%02x", static_cast<unsigned char>(c));
            digits += two;
        }
        return digits;
    }

    /// The handle in an answer "0 digits".
    template <typename Handle>
    static Handle handleIn(const std::string& answer) {
        Handle handle{};
        EXPECT_EQ(answer.substr(0, 2), "0 ");
        for (size_t i = 0; i < sizeof(handle.reserved) && 3 + 2 * i < answer.size(); ++i) {
            handle.reserved[i] =
                static_cast<char>(std::stoi(answer.substr(2 + 2 * i, 2), nullptr, 16));
        }
        return handle;
    }

    static CUipcMemHandle exported(CUdeviceptr pointer) {
        CUipcMemHandle handle{};
        EXPECT_OK(cuIpcGetMemHandle(&handle, pointer));
        return handle;
    }

    static CUdeviceptr open(const CUipcMemHandle& handle) {
        CUdeviceptr pointer = 0;
        EXPECT_OK(cuIpcOpenMemHandle_v2(&pointer, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
        return pointer;
    }

    static void write(CUdeviceptr address, uint32_t value) {
        EXPECT_OK(cuMemcpyHtoD_v2(address, &value, sizeof(value)));
    }

    Peer peer;
};

TEST_F(Ipc, MemoryIsSharedInBothDirections) {
    allocate(100);  // so that the next does not begin its block
    const CUdeviceptr memory = allocate(4096);
    write(memory + 8, 11);
    EXPECT_EQ(peer.ask("open " + text(exported(memory))), "0");
    EXPECT_EQ(peer.ask("read 8"), "0 11");
    EXPECT_EQ(peer.ask("write 12 22"), "0");
    EXPECT_EQ(read(memory + 12), 22U);
    uint32_t one = 1;
    CUdeviceptr word = memory + 12;
    EXPECT_OK(launch("add", {&word, &one}));
    EXPECT_OK(cuCtxSynchronize());
    EXPECT_EQ(peer.ask("read 12"), "0 23");
    EXPECT_EQ(peer.ask("close"), "0");
}

TEST_F(Ipc, KernelsReachWhatAnotherProcessExported) {
    const CUdeviceptr memory = open(handleIn<CUipcMemHandle>(peer.ask("export 3000000")));
    EXPECT_EQ(peer.ask("write 2999996 40"), "0");
    uint32_t two = 2;
    CUdeviceptr word = memory + 2999996;
    EXPECT_OK(launch("add", {&word, &two}));
    EXPECT_OK(cuCtxSynchronize());
    EXPECT_EQ(peer.ask("read 2999996"), "0 42");
    CUdeviceptr base = 0;
    size_t size = 0;
    EXPECT_OK(cuMemGetAddressRange_v2(&base, &size, word));
    EXPECT_EQ(base, memory);
    EXPECT_EQ(size, 3000000U);
    EXPECT_OK(cuIpcCloseMemHandle(memory));
    EXPECT_EQ(cuIpcCloseMemHandle(memory), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Ipc, AnInteriorPointerExportsTheWholeAllocation) {
    const CUdeviceptr memory = allocate(4096);
    write(memory, 7);
    EXPECT_EQ(peer.ask("open " + text(exported(memory + 100))), "0");
    EXPECT_EQ(peer.ask("read 0"), "0 7");
}

TEST_F(Ipc, AHandleIsTheSameEachTime) {
    const CUdeviceptr memory = allocate(4096);
    EXPECT_EQ(text(exported(memory)), text(exported(memory)));
}

TEST_F(Ipc, OpenedTwiceItIsOneAddressAndClosedTwice) {
    const auto handle = handleIn<CUipcMemHandle>(peer.ask("export 4096"));
    const CUdeviceptr memory = open(handle);
    EXPECT_EQ(open(handle), memory);
    EXPECT_OK(cuIpcCloseMemHandle(memory));
    write(memory, 3);
    EXPECT_EQ(peer.ask("read 0"), "0 3");
    EXPECT_OK(cuIpcCloseMemHandle(memory));
    uint32_t word = 0;
    EXPECT_EQ(cuMemcpyDtoH_v2(&word, memory, 4), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Ipc, OnesOwnHandleIsRefused) {
    CUdeviceptr opened = 0;
    EXPECT_EQ(
        cuIpcOpenMemHandle_v2(&opened, exported(allocate(64)), CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
        CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(Ipc, OnlyPlainDeviceMemoryIsExported) {
    CUipcMemHandle handle{};
    CUdeviceptr managed = 0, pooled = 0;
    void* host = nullptr;
    ASSERT_OK(cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL));
    ASSERT_OK(cuMemHostAlloc(&host, 64, 0));
    ASSERT_OK(cuMemAllocAsync(&pooled, 64, nullptr));
    EXPECT_EQ(cuIpcGetMemHandle(&handle, managed), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuIpcGetMemHandle(&handle, reinterpret_cast<CUdeviceptr>(host)),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuIpcGetMemHandle(&handle, pooled), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuIpcGetMemHandle(&handle, 0x1234), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Ipc, WhatWasFreedIsNotOpenedAnyMore) {
    const auto handle = handleIn<CUipcMemHandle>(peer.ask("export 4096"));
    EXPECT_EQ(peer.ask("free"), "0");
    CUdeviceptr opened = 0;
    EXPECT_NE(cuIpcOpenMemHandle_v2(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
              CUDA_SUCCESS);
}

TEST_F(Ipc, WhatIsFreedWhileOthersHaveItStaysAsItWasForThem) {
    SOFTWARE_GPU_ONLY();
    const CUdeviceptr memory = allocate(4 << 20);
    write(memory, 5);
    EXPECT_EQ(peer.ask("open " + text(exported(memory))), "0");
    EXPECT_OK(cuMemFree_v2(memory));
    const CUdeviceptr next = allocate(4 << 20);
    EXPECT_OK(cuMemsetD8_v2(next, 0xff, 4 << 20));
    EXPECT_OK(cuCtxSynchronize());
    EXPECT_EQ(peer.ask("read 0"), "0 5");
    size_t before = 0, after = 0;
    EXPECT_OK(cuMemGetInfo_v2(&before, nullptr));
    EXPECT_EQ(peer.ask("close"), "0");
    EXPECT_TRUE(eventually([&] {
        EXPECT_OK(cuMemGetInfo_v2(&after, nullptr));
        return after == before + (4 << 20);
    })) << "it is free for others once the last one has closed it";
}

TEST_F(Ipc, AKilledImporterGivesBackWhatItHad) {
    SOFTWARE_GPU_ONLY();
    size_t before = 0, after = 0;
    EXPECT_OK(cuMemGetInfo_v2(&before, nullptr));
    const CUdeviceptr memory = allocate(4 << 20);
    EXPECT_EQ(peer.ask("open " + text(exported(memory))), "0");
    peer.kill();
    EXPECT_OK(cuMemFree_v2(memory));
    EXPECT_TRUE(eventually([&] {
        EXPECT_OK(cuMemGetInfo_v2(&after, nullptr));
        return after == before;
    }));
}

TEST_F(Ipc, MemoryOutlivesTheProcessThatExportedIt) {
    SOFTWARE_GPU_ONLY();
    const CUdeviceptr memory = open(handleIn<CUipcMemHandle>(peer.ask("export 4096")));
    EXPECT_EQ(peer.ask("write 0 9"), "0");
    peer.kill();
    EXPECT_EQ(read(memory), 9U);
    EXPECT_OK(cuIpcCloseMemHandle(memory));
}

TEST_F(Ipc, HandlesOfDeadProcessesAndMadeUpOnesAreErrors) {
    auto handle = handleIn<CUipcMemHandle>(peer.ask("export 4096"));
    peer.kill();
    CUdeviceptr opened = 0;
    EXPECT_NE(cuIpcOpenMemHandle_v2(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
              CUDA_SUCCESS);
    SOFTWARE_GPU_ONLY();
    std::memset(&handle, 0x5a, sizeof(handle));
    EXPECT_EQ(cuIpcOpenMemHandle_v2(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
              CUDA_ERROR_INVALID_HANDLE);
}

/// A descriptor that processes started from now on have too.
int inherited(int file) {
    const int copy = fcntl(file, F_DUPFD, 100);
    close(file);
    return copy;
}

TEST_F(Ipc, PoolsArePassedAsFileDescriptors) {
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    CUmemoryPool pool = nullptr;
    CUdeviceptr before = 0, memory = 0;
    ASSERT_OK(cuMemPoolCreate(&pool, &properties));
    ASSERT_OK(cuMemAllocFromPoolAsync(&before, 5000, pool, nullptr));
    ASSERT_OK(cuMemAllocFromPoolAsync(&memory, 5000, pool, nullptr));
    write(memory + 4996, 31);
    int file = -1;
    ASSERT_OK(
        cuMemPoolExportToShareableHandle(&file, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    CUmemPoolPtrExportData data{};
    ASSERT_OK(cuMemPoolExportPointer(&data, memory));
    file = inherited(file);
    Peer other;
    close(file);
    EXPECT_EQ(other.ask("importPool " + std::to_string(file) + " " + text(data)), "0");
    EXPECT_EQ(other.ask("read 4996"), "0 31");
    EXPECT_EQ(other.ask("write 0 32"), "0");
    EXPECT_EQ(read(memory), 32U);
    EXPECT_EQ(other.ask("free"), "0");
    EXPECT_EQ(read(memory), 32U);
    CUmemoryPool plain = nullptr;
    ASSERT_OK(cuDeviceGetDefaultMemPool(&plain, device));
    EXPECT_EQ(
        cuMemPoolExportToShareableHandle(&file, plain, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
        CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Ipc, PhysicalMemoryIsPassedAsAFileDescriptor) {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    size_t unit = 0;
    ASSERT_OK(cuMemGetAllocationGranularity(&unit, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr range = 0;
    ASSERT_OK(cuMemCreate(&handle, unit, &properties, 0));
    ASSERT_OK(cuMemAddressReserve(&range, unit, 0, 0, 0));
    ASSERT_OK(cuMemMap(range, unit, 0, handle, 0));
    const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, device},
                                 CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    ASSERT_OK(cuMemSetAccess(range, unit, &access, 1));
    write(range + 40, 8);
    int file = -1;
    ASSERT_OK(
        cuMemExportToShareableHandle(&file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    file = inherited(file);
    Peer other;
    close(file);
    EXPECT_EQ(other.ask("importPhysical " + std::to_string(file) + " " + std::to_string(unit)),
              "0");
    EXPECT_EQ(other.ask("read 40"), "0 8");
    EXPECT_EQ(other.ask("write 44 9"), "0");
    EXPECT_EQ(read(range + 44), 9U);
}

TEST_F(Ipc, EventsTellOfTheOtherProcesssWork) {
    CUevent opened = nullptr;
    const auto handle = handleIn<CUipcEventHandle>(peer.ask("event"));
    ASSERT_OK(cuIpcOpenEventHandle(&opened, handle));
    EXPECT_OK(cuEventQuery(opened)) << "never recorded";
    EXPECT_EQ(peer.ask("busy"), "0");
    EXPECT_EQ(peer.ask("record"), "0");
    EXPECT_EQ(cuEventQuery(opened), CUDA_ERROR_NOT_READY);

    const CUstream waiting = stream(CU_STREAM_NON_BLOCKING);
    EXPECT_OK(cuStreamWaitEvent(waiting, opened, 0));
    giveItTime();
    EXPECT_EQ(cuStreamQuery(waiting), CUDA_ERROR_NOT_READY);
    EXPECT_EQ(peer.ask("idle"), "0");
    EXPECT_OK(cuEventSynchronize(opened));
    EXPECT_OK(cuStreamSynchronize(waiting));
    EXPECT_OK(cuEventQuery(opened));
    EXPECT_OK(cuEventDestroy_v2(opened));
}

TEST_F(Ipc, EventsAreRecordedByTheProcessThatOpenedThemToo) {
    const CUevent own = event(CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
    CUipcEventHandle handle{};
    ASSERT_OK(cuIpcGetEventHandle(&handle, own));
    EXPECT_EQ(peer.ask("openEvent " + text(handle)), "0");
    EXPECT_EQ(peer.ask("busy"), "0");
    EXPECT_EQ(peer.ask("record"), "0");
    EXPECT_EQ(cuEventQuery(own), CUDA_ERROR_NOT_READY);
    EXPECT_EQ(peer.ask("idle"), "0");
    EXPECT_OK(cuEventSynchronize(own));

    volatile uint32_t* gate = pinnedWord();
    const CUstream on = stream(CU_STREAM_NON_BLOCKING);
    spin(gate, on);
    EXPECT_OK(cuEventRecord(own, on));
    EXPECT_EQ(peer.ask("query"), std::to_string(CUDA_ERROR_NOT_READY));
    *gate = 1;
    EXPECT_OK(cuEventSynchronize(own));
    EXPECT_TRUE(eventually([&] { return peer.ask("query") == "0"; }));
}

TEST_F(Ipc, NobodyWaitsForTheWorkOfADeadProcess) {
    SOFTWARE_GPU_ONLY();
    CUevent opened = nullptr;
    ASSERT_OK(cuIpcOpenEventHandle(&opened, handleIn<CUipcEventHandle>(peer.ask("event"))));
    EXPECT_EQ(peer.ask("busy"), "0");
    EXPECT_EQ(peer.ask("record"), "0");
    EXPECT_EQ(cuEventQuery(opened), CUDA_ERROR_NOT_READY);
    peer.kill();
    EXPECT_OK(cuEventSynchronize(opened));
}

TEST_F(Ipc, EventsWithClocksAndPlainEventsAreNotShared) {
    CUevent made = nullptr;
    EXPECT_EQ(cuEventCreate(&made, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
    CUipcEventHandle handle{};
    EXPECT_NE(cuIpcGetEventHandle(&handle, event()), CUDA_SUCCESS);
}

}  // namespace
}  // namespace juice::softgpu

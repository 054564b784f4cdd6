// A process that has called cuInit and made device 0's primary context current, over a FakeLink.
#pragma once

#include <gtest/gtest.h>

#include "native/gen/cuda_api.h"
#include "native/link/custom.h"
#include "native/shim/session.h"
#include "native/shim/test/fake_link.h"
#include "native/shim/thread.h"

namespace juice::shim::test {

inline Snapshot twoGpus() {
    Snapshot snapshot;
    snapshot.driverVersion = 13000;
    snapshot.driverText = "test";
    for (int i = 0; i < 2; ++i) {
        DeviceSnapshot device;
        device.name = "Test GPU " + std::to_string(i);
        device.uuid[0] = static_cast<uint8_t>(0xa0 + i);
        device.totalMemory = 8u << 30;
        device.pciBusId = i == 0 ? "0000:06:00.0" : "0000:07:00.0";
        device.attributes = {
            {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
            {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
            {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
            {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
            {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
            {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
            {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
            {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
            {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 4},
            {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
            {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
            {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
        };
        device.limits = {{CU_LIMIT_STACK_SIZE, 1024}, {CU_LIMIT_PRINTF_FIFO_SIZE, 1 << 20}};
        device.greatestPriority = -5;
        snapshot.devices.push_back(device);
    }
    snapshot.peer = {0, 1, 1, 0};
    return snapshot;
}

class Attached : public testing::Test {
  protected:
    void SetUp() override {
        thread().contexts.clear();
        auto made = std::make_unique<FakeLink>();
        link = made.get();
        link->answer = [this](const Sent& call) { return answer(call); };
        session::installForTest(twoGpus(), std::move(made));
        ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
        ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
        link->sent.clear();
    }
    void TearDown() override {
        link->brokenBecause.clear();
        cuDevicePrimaryCtxReset_v2(0);
        while (cuDevicePrimaryCtxRelease_v2(0) == CUDA_SUCCESS) {
        }
        thread().contexts.clear();
        thread().deferred = CUDA_SUCCESS;
        session::installForTest({}, nullptr);
    }

    /// A worker with memory to give and one module, with the kernel "store(u64, u8, u32)".
    virtual Reply answer(const Sent& call) {
        Reply reply;
        Writer out;
        switch (call.op) {
            case Op::cuMemAlloc_v2:
            case Op::cuMemAllocAsync:
                out.put(nextAddress);
                nextAddress += 2u << 20;
                break;
            case Op::cuMemHostAlloc:
                out.put(nextAddress).put(nextAddress).put(uint32_t{2}).put(uint32_t{0});
                nextAddress += 2u << 20;
                break;
            case Op::cuMemHostRegister_v2:
                out.put(uint64_t{0}).put(uint32_t{2}).put(uint32_t{0});
                break;
            case Op::cuModuleLoadDataEx:
            case Op::cuLibraryLoadData:
                out.put(custom::LoadStatus::done).text("").text("").put(0.0f);
                out.put(uint32_t{1}).put(uint32_t{1}).text("store").put(uint32_t{3});
                out.put(uint32_t{0}).put(uint32_t{8}).put(uint32_t{8}).put(uint32_t{1});
                out.put(uint32_t{12}).put(uint32_t{4});
                break;
            case Op::juiceFunctionInfo:
                out.put(uint32_t{16});
                for (int i = 0; i < 16; ++i)
                    out.put(i == 0 ? 256 : i == 8 ? 49152 : i == 9 ? -1 : 0);
                break;
            default:
                break;
        }
        reply.payload = out.take();
        return reply;
    }

    CUdeviceptr alloc(size_t size) {
        CUdeviceptr address = 0;
        EXPECT_EQ(cuMemAlloc_v2(&address, size), CUDA_SUCCESS);
        return address;
    }
    void* pinned(size_t size) {
        void* memory = nullptr;
        EXPECT_EQ(cuMemHostAlloc(&memory, size, 0), CUDA_SUCCESS);
        return memory;
    }
    CUfunction store() {
        CUmodule module = nullptr;
        CUfunction function = nullptr;
        EXPECT_EQ(cuModuleLoadData(&module, ".version 7.0\n.target sm_52\n"), CUDA_SUCCESS);
        EXPECT_EQ(cuModuleGetFunction(&function, module, "store"), CUDA_SUCCESS);
        return function;
    }

    FakeLink* link = nullptr;  // the session's
    CUcontext context = nullptr;
    static inline uint64_t nextAddress = wire::kArenas[0].begin + (1u << 30);
};

}  // namespace juice::shim::test

// What the driver's tests share: a primary context that is current, small kernels, and waiting.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <string>
#include <thread>
#include <vector>

#include "native/gen/cuda_api.h"

namespace juice::softgpu {

/// Kernels of one thread; addresses are 64-bit, values 32-bit:
///   store(address, value)  add(address, value)
///   spin(address)          runs until the word at the address is not 0
///   copyFirst(to, from)    copies one word
///   workspace(address)     stores the address of the grid barrier's memory, 64 bits
/// and the variables `counter` (initially 7) and `table` (two words, constant).
inline constexpr char kKernels[] = R"(
.version 9.0
.target sm_75
.address_size 64

.visible .global .align 4 .u32 counter = 7;
.visible .const .align 8 .b8 table[8] = {1, 0, 0, 0, 2, 0, 0, 0};

.visible .entry store(.param .u64 store_param_0, .param .u32 store_param_1)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [store_param_0];
    ld.param.u32 %r1, [store_param_1];
    cvta.to.global.u64 %rd2, %rd1;
    st.global.u32 [%rd2], %r1;
    ret;
}

.visible .entry add(.param .u64 add_param_0, .param .u32 add_param_1)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [add_param_0];
    ld.param.u32 %r1, [add_param_1];
    cvta.to.global.u64 %rd2, %rd1;
    ld.global.u32 %r2, [%rd2];
    add.s32 %r3, %r2, %r1;
    st.global.u32 [%rd2], %r3;
    ret;
}

.visible .entry spin(.param .u64 spin_param_0)
{
    .reg .pred %p<2>;
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [spin_param_0];
$L_again:
    ld.volatile.u32 %r1, [%rd1];
    setp.eq.s32 %p1, %r1, 0;
    @%p1 bra $L_again;
    ret;
}

.visible .entry copyFirst(.param .u64 copyFirst_param_0, .param .u64 copyFirst_param_1)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [copyFirst_param_0];
    ld.param.u64 %rd2, [copyFirst_param_1];
    cvta.to.global.u64 %rd3, %rd1;
    cvta.to.global.u64 %rd4, %rd2;
    ld.global.u32 %r1, [%rd4];
    st.global.u32 [%rd3], %r1;
    ret;
}

.visible .entry workspace(.param .u64 workspace_param_0)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [workspace_param_0];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r1, %envreg2;
    mov.u32 %r2, %envreg1;
    cvt.u64.u32 %rd3, %r1;
    cvt.u64.u32 %rd4, %r2;
    bfi.b64 %rd5, %rd4, %rd3, 32, 32;
    st.global.u64 [%rd2], %rd5;
    ret;
}
)";

#define EXPECT_OK(call) EXPECT_EQ(call, CUDA_SUCCESS)
#define ASSERT_OK(call) ASSERT_EQ(call, CUDA_SUCCESS)

/// For what holds of the software GPU only. Everything else in these tests holds of a real device
/// as well: run them there with LD_LIBRARY_PATH naming its driver, each in a process of its own.
#define SOFTWARE_GPU_ONLY() \
    if (!isSoftwareGpu()) GTEST_SKIP() << "a real device differs"

class DriverTest : public testing::Test {
  protected:
    void SetUp() override {
        // A real driver that loads code lazily waits for running kernels before it does.
        setenv("CUDA_MODULE_LOADING", "EAGER", 1);
        ASSERT_OK(cuInit(0));
        ASSERT_OK(cuDeviceGet(&device, 0));
        ASSERT_OK(cuDevicePrimaryCtxRetain(&context, device));
        ASSERT_OK(cuCtxSetCurrent(context));
        ASSERT_OK(cuModuleLoadData(&module, kKernels));
    }

    bool isSoftwareGpu() const {
        char name[64] = {};
        return cuDeviceGetName(name, sizeof(name), device) == CUDA_SUCCESS &&
               std::string(name) == "Juice Software GPU";
    }

    void TearDown() override {
        EXPECT_OK(cuDevicePrimaryCtxReset(device));
        EXPECT_OK(cuCtxSetCurrent(nullptr));
    }

    CUfunction function(const char* name) const {
        CUfunction found = nullptr;
        EXPECT_OK(cuModuleGetFunction(&found, module, name));
        return found;
    }

    /// Launches one thread.
    CUresult launch(const char* name, std::vector<void*> parameters, CUstream stream = nullptr) {
        return cuLaunchKernel(function(name), 1, 1, 1, 1, 1, 1, 0, stream, parameters.data(),
                              nullptr);
    }

    static CUdeviceptr allocate(size_t size) {
        CUdeviceptr pointer = 0;
        EXPECT_OK(cuMemAlloc_v2(&pointer, size));
        return pointer;
    }

    /// A word of pinned memory: the handle on a spinning kernel.
    static volatile uint32_t* pinnedWord() {
        void* pointer = nullptr;
        EXPECT_OK(cuMemHostAlloc(&pointer, sizeof(uint32_t), 0));
        auto* word = static_cast<volatile uint32_t*>(pointer);
        *word = 0;
        return word;
    }

    /// Keeps a stream busy until the word is set.
    void spin(volatile uint32_t* word, CUstream stream) {
        auto address = reinterpret_cast<CUdeviceptr>(word);
        EXPECT_OK(launch("spin", {&address}, stream));
    }

    static uint32_t read(CUdeviceptr address) {
        uint32_t value = 0;
        EXPECT_OK(cuMemcpyDtoH_v2(&value, address, sizeof(value)));
        return value;
    }

    static CUstream stream(unsigned flags = CU_STREAM_DEFAULT) {
        CUstream made = nullptr;
        EXPECT_OK(cuStreamCreate(&made, flags));
        return made;
    }

    static CUevent event(unsigned flags = CU_EVENT_DEFAULT) {
        CUevent made = nullptr;
        EXPECT_OK(cuEventCreate(&made, flags));
        return made;
    }

    /// Polls until the condition holds; false after a generous deadline.
    static bool eventually(const std::function<bool()>& condition) {
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
        while (!condition()) {
            if (std::chrono::steady_clock::now() > deadline) return false;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return true;
    }

    /// Long enough for work that is free to run to have run.
    static void giveItTime() { std::this_thread::sleep_for(std::chrono::milliseconds(50)); }

    CUdevice device = 0;
    CUcontext context = nullptr;
    CUmodule module = nullptr;
};

}  // namespace juice::softgpu

// Copies between the device and pinned memory that device code uses too.
#include "native/shim/test/coherence/checks.h"

namespace juice::coherence_test {
namespace {

constexpr size_t kCount = 5000;

/// A kernel's results in pinned memory are what a copy out of it reads, without any wait between.
void aCopyFollowsAKernel() {
    CUdeviceptr there = 0;
    CUstream stream = nullptr;
    OK(cuMemAlloc_v2(&there, kCount * 4));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    auto *const memory = pinned<unsigned>(kCount, 10), *const back = pinned<unsigned>(kCount, 0);
    launch("add", kCount, stream, memory, 5u, unsigned{kCount});
    OK(cuMemcpyHtoDAsync_v2(there, memory, kCount * 4, stream));
    OK(cuMemcpyDtoHAsync_v2(back, there, kCount * 4, stream));
    OK(cuStreamSynchronize(stream));
    EXPECT(back[0] == 15 && back[kCount - 1] == 15);
    OK(cuStreamDestroy_v2(stream));
    OK(cuMemFreeHost(memory));
    OK(cuMemFreeHost(back));
    OK(cuMemFree_v2(there));
}

/// A kernel reads what a copy from the device has brought, without any wait between.
void aKernelFollowsACopy() {
    CUdeviceptr there = 0;
    CUstream stream = nullptr;
    OK(cuMemAlloc_v2(&there, kCount * 4));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemsetD32_v2(there, 100, kCount));
    OK(cuCtxSynchronize());
    auto* const memory = pinned<unsigned>(kCount, 3);
    for (unsigned round = 0; round < 3; ++round) {
        OK(cuMemcpyDtoHAsync_v2(memory, there, kCount * 4, stream));
        launch("add", kCount, stream, memory, 5u + round, unsigned{kCount});
        OK(cuStreamSynchronize(stream));
        EXPECT(memory[0] == 105 + round && memory[kCount - 1] == 105 + round);
    }
    OK(cuStreamDestroy_v2(stream));
    OK(cuMemFreeHost(memory));
    OK(cuMemFree_v2(there));
}

/// The blocking copies, and those that name no kind.
void blockingCopies() {
    CUdeviceptr there = 0;
    OK(cuMemAlloc_v2(&there, kCount * 4));
    auto* const memory = pinned<unsigned>(kCount, 3);
    unsigned plain[16] = {};
    launch("add", kCount, nullptr, memory, 1u, unsigned{kCount});
    OK(cuMemcpyHtoD_v2(there, memory, kCount * 4));
    for (size_t i = 0; i < kCount; ++i) memory[i] = 0;  // the copy is over
    OK(cuMemcpyDtoH_v2(memory, there, kCount * 4));
    EXPECT(memory[0] == 4 && memory[kCount - 1] == 4);
    launch("add", kCount, nullptr, memory, 1u, unsigned{kCount});
    OK(cuMemcpy(device(plain), device(memory), sizeof plain));
    EXPECT(plain[0] == 5 && plain[15] == 5);
    plain[3] = 99;
    OK(cuMemcpy(device(memory), device(plain), sizeof plain));
    launch("add", kCount, nullptr, memory, 1u, unsigned{kCount});
    OK(cuCtxSynchronize());
    EXPECT(memory[3] == 100 && memory[4] == 6 && memory[16] == 6);
    CUcontext context = nullptr;
    OK(cuCtxGetCurrent(&context));
    OK(cuMemcpyPeer(there, context, device(memory), context, kCount * 4));
    launch("add", kCount, nullptr, memory, 1u, unsigned{kCount});
    OK(cuMemcpyPeer(device(memory), context, there, context, 64));
    OK(cuCtxSynchronize());
    EXPECT(memory[0] == 6 && memory[3] == 100 && memory[16] == 7);
    OK(cuMemFreeHost(memory));
    OK(cuMemFree_v2(there));
}

/// Boxes whose rows lie apart, in and out of memory that a kernel changes.
void boxes() {
    constexpr size_t kPitch = 128, kRows = 10, kWidth = 60;
    CUdeviceptr there = 0;
    CUstream stream = nullptr;
    OK(cuMemAlloc_v2(&there, kPitch * kRows));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    auto* const memory = pinned<unsigned>(kPitch * kRows / 4, 3);
    auto* const back = pinned<unsigned>(kPitch * kRows / 4, 1);
    for (const bool async : {true, false}) {
        OK(cuMemsetD8_v2(there, 0, kPitch * kRows));
        OK(cuCtxSynchronize());
        launch("add", kPitch * kRows / 4, stream, memory, 7u, unsigned{kPitch * kRows / 4});
        launch("add", kPitch * kRows / 4, stream, back, 1u, unsigned{kPitch * kRows / 4});
        CUDA_MEMCPY2D in{};
        in.srcMemoryType = CU_MEMORYTYPE_HOST;
        in.srcHost = memory;
        in.srcPitch = kPitch;
        in.dstMemoryType = CU_MEMORYTYPE_DEVICE;
        in.dstDevice = there;
        in.dstPitch = kPitch;
        in.WidthInBytes = kWidth;
        in.Height = kRows;
        CUDA_MEMCPY2D out = in;
        out.srcMemoryType = CU_MEMORYTYPE_DEVICE;
        out.srcDevice = there;
        out.dstMemoryType = CU_MEMORYTYPE_HOST;
        out.dstHost = back;
        if (!async) OK(cuStreamSynchronize(stream));
        if (async) {
            OK(cuMemcpy2DAsync_v2(&in, stream));
            OK(cuMemcpy2DAsync_v2(&out, stream));
            OK(cuStreamSynchronize(stream));
        } else {
            OK(cuMemcpy2D_v2(&in));
            OK(cuMemcpy2D_v2(&out));
        }
        const unsigned value = async ? 10 : 17, around = async ? 2 : 3;
        EXPECT(back[0] == value && back[kWidth / 4 - 1] == value && back[kWidth / 4] == around);
        EXPECT(back[kPitch / 4 * 9] == value && back[kPitch / 4 * 9 + kWidth / 4] == around);
    }
    OK(cuStreamDestroy_v2(stream));
    OK(cuMemFreeHost(memory));
    OK(cuMemFreeHost(back));
    OK(cuMemFree_v2(there));
}

}  // namespace

const Check kCopies[] = {
    {"copy_after_kernel", aCopyFollowsAKernel},
    {"kernel_after_copy", aKernelFollowsACopy},
    {"blocking_copies", blockingCopies},
    {"boxes", boxes},
    {nullptr, nullptr},
};

}  // namespace juice::coherence_test

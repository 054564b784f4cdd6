// Fills of pinned memory, by every entry: the program sees them where and when CUDA says so.
#include "native/shim/test/coherence/checks.h"

namespace juice::coherence_test {

CUdeviceptr tableOfModule();

namespace {

constexpr size_t kSize = 4096, kPitch = 256, kRows = 8;
/// Not at the beginning, and short of the end: what lies around it must stay.
constexpr size_t kAt = 64;

/// One fill of `bytes` bytes of memory that holds 0x11 everywhere, and what it looks like after.
template <typename Fill>
void linear(size_t bytes, const unsigned char (&pattern)[4], Fill fill) {
    auto* const memory = pinned<unsigned char>(kSize, 0x11);
    fill(device(memory + kAt));
    OK(cuCtxSynchronize());
    bool right = true;
    for (size_t i = 0; i < kSize; ++i) {
        const bool inside = i >= kAt && i < kAt + bytes;
        right = right && memory[i] == (inside ? pattern[(i - kAt) % 4] : 0x11);
    }
    EXPECT(right);
    OK(cuMemFreeHost(memory));
}

template <typename Fill>
void pitched(size_t width, const unsigned char (&pattern)[4], Fill fill) {
    auto* const memory = pinned<unsigned char>(kSize, 0x11);
    fill(device(memory + kAt));
    OK(cuCtxSynchronize());
    bool right = true;
    for (size_t i = 0; i < kSize; ++i) {
        const size_t from = i - kAt;  // wraps around before kAt: then it is in no row
        const bool inside = from / kPitch < kRows && from % kPitch < width;
        right = right && memory[i] == (inside ? pattern[from % kPitch % 4] : 0x11);
    }
    EXPECT(right);
    OK(cuMemFreeHost(memory));
}

constexpr unsigned char kD8[] = {0xa5, 0xa5, 0xa5, 0xa5}, kD16[] = {0x34, 0x12, 0x34, 0x12},
                        kD32[] = {0x78, 0x56, 0x34, 0x12};

void fillsOfPinnedMemory() {
    linear(1001, kD8, [](CUdeviceptr at) { OK(cuMemsetD8_v2(at, 0xa5, 1001)); });
    linear(1002, kD16, [](CUdeviceptr at) { OK(cuMemsetD16_v2(at, 0x1234, 501)); });
    linear(1004, kD32, [](CUdeviceptr at) { OK(cuMemsetD32_v2(at, 0x12345678, 251)); });
    pitched(100, kD8, [](CUdeviceptr at) { OK(cuMemsetD2D8_v2(at, kPitch, 0xa5, 100, kRows)); });
    pitched(100, kD16, [](CUdeviceptr at) { OK(cuMemsetD2D16_v2(at, kPitch, 0x1234, 50, kRows)); });
    pitched(100, kD32,
            [](CUdeviceptr at) { OK(cuMemsetD2D32_v2(at, kPitch, 0x12345678, 25, kRows)); });
}

void asynchronousFillsOfPinnedMemory() {
    CUstream stream = nullptr;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    linear(1001, kD8, [=](CUdeviceptr at) { OK(cuMemsetD8Async(at, 0xa5, 1001, stream)); });
    linear(1002, kD16, [=](CUdeviceptr at) { OK(cuMemsetD16Async(at, 0x1234, 501, stream)); });
    linear(1004, kD32, [=](CUdeviceptr at) { OK(cuMemsetD32Async(at, 0x12345678, 251, stream)); });
    pitched(100, kD8,
            [=](CUdeviceptr at) { OK(cuMemsetD2D8Async(at, kPitch, 0xa5, 100, kRows, stream)); });
    pitched(100, kD16,
            [=](CUdeviceptr at) { OK(cuMemsetD2D16Async(at, kPitch, 0x1234, 50, kRows, stream)); });
    pitched(100, kD32, [=](CUdeviceptr at) {
        OK(cuMemsetD2D32Async(at, kPitch, 0x12345678, 25, kRows, stream));
    });
    OK(cuStreamDestroy_v2(stream));
}

void perThreadFillsOfPinnedMemory() {
    linear(1001, kD8,
           [](CUdeviceptr at) { OK(cuMemsetD8Async(at, 0xa5, 1001, CU_STREAM_PER_THREAD)); });
    pitched(100, kD32, [](CUdeviceptr at) {
        OK(cuMemsetD2D32Async(at, kPitch, 0x12345678, 25, kRows, CU_STREAM_PER_THREAD));
    });
}

/// By an event that is waited for, one that is asked, and a stream that is asked.
void aFillIsThereWhenAnyAnswerSaysSo() {
    CUstream stream = nullptr;
    CUevent event = nullptr;
    OK(cuStreamCreate(&stream, 0));
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    auto* const memory = pinned<unsigned char>(kSize, 1);
    OK(cuMemsetD8Async(device(memory), 2, kSize, stream));
    OK(cuEventRecord(event, stream));
    OK(cuEventSynchronize(event));
    EXPECT(memory[0] == 2 && memory[kSize - 1] == 2);
    OK(cuMemsetD8Async(device(memory), 3, kSize, stream));
    OK(cuEventRecord(event, stream));
    while (cu.cuEventQuery(event) == CUDA_ERROR_NOT_READY) {
    }
    EXPECT(memory[0] == 3 && memory[kSize - 1] == 3);
    OK(cuMemsetD8Async(device(memory), 4, kSize, stream));
    while (cu.cuStreamQuery(stream) == CUDA_ERROR_NOT_READY) {
    }
    EXPECT(memory[0] == 4 && memory[kSize - 1] == 4);
    OK(cuEventDestroy_v2(event));
    OK(cuStreamDestroy_v2(stream));
    OK(cuMemFreeHost(memory));
}

/// What the CPU wrote before a fill is beneath it; what it writes after it, above it.
void fillsAndTheCpuTakeTurns() {
    auto* const memory = pinned<unsigned>(1024, 0);
    for (unsigned round = 1; round <= 20; ++round) {
        for (int i = 0; i < 1024; ++i) memory[i] = round;
        OK(cuMemsetD32_v2(device(memory + 256), round + 1000, 512));
        OK(cuCtxSynchronize());
        EXPECT(memory[0] == round && memory[255] == round && memory[256] == round + 1000 &&
               memory[767] == round + 1000 && memory[768] == round);
    }
    OK(cuMemFreeHost(memory));
}

void fillsOfRegisteredMemory() {
    static unsigned char memory[3 * 4096];
    std::memset(memory, 7, sizeof memory);
    // Neither end is on a page or even a word.
    OK(cuMemHostRegister_v2(memory + 13, 8001, 0));
    OK(cuMemsetD8_v2(device(memory + 13), 9, 8001));
    OK(cuCtxSynchronize());
    EXPECT(memory[12] == 7 && memory[13] == 9 && memory[8013] == 9 && memory[8014] == 7);
    OK(cuMemHostUnregister(memory + 13));
    EXPECT(memory[13] == 9 && memory[8013] == 9);
}

void largeFillsOfPinnedMemory() {
    constexpr size_t kCount = 3u << 20;
    auto* const memory = pinned<unsigned>(kCount, 5);
    OK(cuMemsetD32_v2(device(memory), 0xdeadbeef, kCount));
    OK(cuCtxSynchronize());
    size_t wrong = 0;
    for (size_t i = 0; i < kCount; ++i) wrong += memory[i] != 0xdeadbeef;
    EXPECT(wrong == 0);
    OK(cuMemFreeHost(memory));
}

void streamWritesToPinnedMemory() {
    CUstream stream = nullptr;
    OK(cuStreamCreate(&stream, 0));
    auto* const memory = pinned<uint64_t>(16, 1);
    OK(cuStreamWriteValue32_v2(stream, device(memory), 77, 0));
    OK(cuStreamWriteValue64_v2(stream, device(memory + 2), 0x1122334455667788, 0));
    OK(cuStreamSynchronize(stream));
    EXPECT(memory[0] == 77 && memory[1] == 1 && memory[2] == 0x1122334455667788 && memory[3] == 1);
    OK(cuStreamDestroy_v2(stream));
    OK(cuMemFreeHost(memory));
}

/// A copy out of memory that a fill is still on its way to reads what the fill will have left.
void copiesSeeEarlierFills() {
    CUdeviceptr there = 0;
    OK(cuMemAlloc_v2(&there, kSize));
    auto *const memory = pinned<unsigned char>(kSize, 1), *const back =
                                                              pinned<unsigned char>(kSize, 0);
    CUstream stream = nullptr;
    OK(cuStreamCreate(&stream, 0));
    OK(cuMemsetD8Async(device(memory + 100), 2, 1000, stream));
    OK(cuMemcpyHtoDAsync_v2(there, memory, kSize, stream));
    OK(cuMemcpyDtoHAsync_v2(back, there, kSize, stream));
    OK(cuStreamSynchronize(stream));
    EXPECT(back[99] == 1 && back[100] == 2 && back[1099] == 2 && back[1100] == 1);
    OK(cuStreamDestroy_v2(stream));
    OK(cuMemFreeHost(memory));
    OK(cuMemFreeHost(back));
    OK(cuMemFree_v2(there));
}

}  // namespace

const Check kFills[] = {
    {"fills", fillsOfPinnedMemory},
    {"fills_async", asynchronousFillsOfPinnedMemory},
    {"fills_per_thread", perThreadFillsOfPinnedMemory},
    {"fills_answers", aFillIsThereWhenAnyAnswerSaysSo},
    {"fills_turns", fillsAndTheCpuTakeTurns},
    {"fills_registered", fillsOfRegisteredMemory},
    {"fills_large", largeFillsOfPinnedMemory},
    {"stream_writes", streamWritesToPinnedMemory},
    {"fills_then_copy", copiesSeeEarlierFills},
    {nullptr, nullptr},
};

}  // namespace juice::coherence_test

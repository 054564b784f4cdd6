// Streams: order within, independence between, host functions, words in memory, events.
#include <atomic>
#include <vector>

#include "test/softgpu/driver_work.h"

namespace juice::truth {
namespace {

using Stream = WorkTest;

TEST_F(Stream, RunsItsWorkInOrder) {
    Buffer<uint32_t> words(std::vector<uint32_t>{7});
    volatile uint32_t* gate = pinnedWord();
    const CUstream on = stream();
    spin(gate, on);
    EXPECT_OK(cuMemsetD32Async(words.address(), 1, 1, on));
    add(words.address(), 5, on);
    EXPECT_EQ(cuStreamQuery(on), CUDA_ERROR_NOT_READY);
    *gate = 1;
    EXPECT_OK(cuStreamSynchronize(on));
    EXPECT_OK(cuStreamQuery(on));
    EXPECT_EQ(words.read(), std::vector<uint32_t>{6});
}

TEST_F(Stream, WaitsForTheEventsOfOthers) {
    Buffer<uint32_t> words(1);
    volatile uint32_t* gate = pinnedWord();
    const CUstream first = stream(), second = stream();
    const CUevent mark = event();
    EXPECT_OK(cuStreamWaitEvent(second, mark, 0)) << "never recorded: nothing to wait for";
    EXPECT_OK(cuStreamSynchronize(second));
    spin(gate, first);
    EXPECT_OK(cuMemsetD32Async(words.address(), 3, 1, first));
    EXPECT_OK(cuEventRecord(mark, first));
    EXPECT_OK(cuStreamWaitEvent(second, mark, 0));
    add(words.address(), 4, second);
    EXPECT_EQ(cuStreamQuery(second), CUDA_ERROR_NOT_READY);
    EXPECT_EQ(cuEventQuery(mark), CUDA_ERROR_NOT_READY);
    *gate = 1;
    EXPECT_OK(cuStreamSynchronize(second));
    EXPECT_OK(cuEventQuery(mark));
    EXPECT_EQ(words.read(), std::vector<uint32_t>{7});
}

TEST_F(Stream, CallsHostFunctionsInOrder) {
    static std::atomic<int> step;
    static CUresult inside;
    step = 0;
    volatile uint32_t* gate = pinnedWord();
    const CUstream on = stream();
    NEEDS_CALL(cuLaunchHostFunc(
        on, [](void*) {}, nullptr));
    EXPECT_OK(cuStreamSynchronize(on));
    spin(gate, on);
    EXPECT_OK(cuLaunchHostFunc(
        on,
        [](void*) {
            CUdeviceptr pointer = 0;
            inside = cuMemAlloc_v2(&pointer, 4);
            step = 1;
        },
        nullptr));
    EXPECT_OK(cuStreamAddCallback(
        on,
        [](CUstream, CUresult status, void*) {
            if (status == CUDA_SUCCESS && step == 1) step = 2;
        },
        nullptr, 0));
    EXPECT_EQ(step, 0);
    *gate = 1;
    EXPECT_OK(cuStreamSynchronize(on));
    EXPECT_EQ(step, 2);
    EXPECT_EQ(inside, CUDA_ERROR_NOT_PERMITTED);
}

TEST_F(Stream, WaitsForAndWritesWords) {
    Buffer<uint32_t> words({0, 0});
    volatile uint32_t* flag = pinnedWord();
    const CUstream on = stream();
    NEEDS_CALL(cuStreamWaitValue32_v2(on, reinterpret_cast<CUdeviceptr>(flag), 3,
                                      CU_STREAM_WAIT_VALUE_GEQ));
    EXPECT_OK(
        cuStreamWriteValue64_v2(on, words.address(), 0x100000002, CU_STREAM_WRITE_VALUE_DEFAULT));
    EXPECT_EQ(cuStreamQuery(on), CUDA_ERROR_NOT_READY);
    *flag = 4;
    EXPECT_OK(cuStreamSynchronize(on));
    EXPECT_EQ(words.read(), (std::vector<uint32_t>{2, 1}));
}

TEST_F(Stream, OfTheBlockingKindIsOrderedWithTheLegacyOne) {
    Buffer<uint32_t> words(1);
    volatile uint32_t* gate = pinnedWord();
    const CUstream blocking = stream(CU_STREAM_DEFAULT), apart = stream();
    spin(gate, blocking);
    EXPECT_OK(cuMemsetD32Async(words.address(), 5, 1, blocking));
    add(words.address(), 1, nullptr);
    EXPECT_EQ(cuStreamQuery(nullptr), CUDA_ERROR_NOT_READY);
    EXPECT_OK(cuStreamQuery(apart)) << "this one is on its own";
    *gate = 1;
    EXPECT_OK(cuStreamSynchronize(nullptr));
    EXPECT_EQ(words.read(), std::vector<uint32_t>{6});
}

TEST_F(Stream, TellsItsPriority) {
    int least = 0, greatest = 0, priority = 1;
    EXPECT_OK(cuCtxGetStreamPriorityRange(&least, &greatest));
    EXPECT_LE(greatest, least);
    CUstream made = nullptr;
    EXPECT_OK(cuStreamCreateWithPriority(&made, CU_STREAM_NON_BLOCKING, greatest - 10));
    EXPECT_OK(cuStreamGetPriority(made, &priority));
    EXPECT_EQ(priority, greatest) << "clamped";
    EXPECT_OK(cuStreamDestroy_v2(made));
}

TEST_F(Stream, IsMeasuredByEvents) {
    volatile uint32_t* gate = pinnedWord();
    const CUstream on = stream();
    const CUevent start = event(CU_EVENT_DEFAULT), end = event(CU_EVENT_DEFAULT);
    float milliseconds = -1;
    EXPECT_EQ(cuEventElapsedTime_v2(&milliseconds, start, end), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_OK(cuEventRecord(start, on));
    spin(gate, on);
    EXPECT_OK(cuEventRecord(end, on));
    EXPECT_EQ(cuEventElapsedTime_v2(&milliseconds, start, end), CUDA_ERROR_NOT_READY);
    *gate = 1;
    EXPECT_OK(cuEventSynchronize(end));
    EXPECT_OK(cuEventElapsedTime_v2(&milliseconds, start, end));
    EXPECT_GE(milliseconds, 0.0F);
}

}  // namespace
}  // namespace juice::truth

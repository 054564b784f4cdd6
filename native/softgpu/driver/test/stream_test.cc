#include <atomic>

#include "native/softgpu/driver/test/driver_fixture.h"

namespace juice::softgpu {
namespace {

using Streams = DriverTest;

TEST_F(Streams, RunTheirWorkInOrderWhileTheProgramGoesOn) {
    volatile uint32_t* gate = pinnedWord();
    const CUdeviceptr word = allocate(4);
    CUdeviceptr target = word;
    uint32_t three = 3, four = 4;
    const CUstream busy = stream();
    spin(gate, busy);
    EXPECT_OK(launch("store", {&target, &three}, busy));
    EXPECT_OK(launch("add", {&target, &four}, busy));
    EXPECT_EQ(cuStreamQuery(busy), CUDA_ERROR_NOT_READY) << "the launches returned before the end";
    *gate = 1;
    EXPECT_OK(cuStreamSynchronize(busy));
    EXPECT_OK(cuStreamQuery(busy));
    EXPECT_EQ(read(word), 7U);
}

TEST_F(Streams, AreIndependentOfEachOther) {
    volatile uint32_t* gate = pinnedWord();
    CUdeviceptr word = allocate(4);
    uint32_t value = 5;
    const CUstream busy = stream(), free = stream();
    spin(gate, busy);
    EXPECT_OK(launch("store", {&word, &value}, free));
    EXPECT_OK(cuStreamSynchronize(free));
    EXPECT_EQ(cuStreamQuery(busy), CUDA_ERROR_NOT_READY);
    *gate = 1;
    EXPECT_OK(cuCtxSynchronize());
}

TEST_F(Streams, OfTheBlockingKindAreWaitedForByTheDefaultStream) {
    volatile uint32_t* gate = pinnedWord();
    CUdeviceptr word = allocate(4);
    uint32_t one = 1, two = 2;
    const CUstream busy = stream();
    EXPECT_OK(cuMemsetD32_v2(word, 0, 1));
    spin(gate, busy);
    EXPECT_OK(launch("store", {&word, &one}, busy));
    EXPECT_OK(launch("add", {&word, &two}));
    giveItTime();
    EXPECT_EQ(cuStreamQuery(nullptr), CUDA_ERROR_NOT_READY);
    *gate = 1;
    EXPECT_OK(cuStreamSynchronize(nullptr));
    EXPECT_EQ(read(word), 3U);
}

TEST_F(Streams, OfTheBlockingKindWaitForTheDefaultStream) {
    volatile uint32_t* gate = pinnedWord();
    CUdeviceptr word = allocate(4);
    uint32_t one = 1;
    spin(gate, nullptr);
    const CUstream after = stream();
    EXPECT_OK(launch("store", {&word, &one}, after));
    giveItTime();
    EXPECT_EQ(cuStreamQuery(after), CUDA_ERROR_NOT_READY);
    *gate = 1;
    EXPECT_OK(cuStreamSynchronize(after));
}

TEST_F(Streams, OfTheNonBlockingKindIgnoreTheDefaultStream) {
    volatile uint32_t* gate = pinnedWord();
    CUdeviceptr word = allocate(4);
    uint32_t one = 1;
    spin(gate, nullptr);
    const CUstream apart = stream(CU_STREAM_NON_BLOCKING);
    EXPECT_OK(launch("store", {&word, &one}, apart));
    EXPECT_OK(cuStreamSynchronize(apart));
    EXPECT_EQ(cuStreamQuery(CU_STREAM_LEGACY), CUDA_ERROR_NOT_READY);
    *gate = 1;
    EXPECT_OK(cuCtxSynchronize());

    *gate = 0;
    spin(gate, apart);
    EXPECT_OK(launch("store", {&word, &one}));
    EXPECT_OK(cuStreamSynchronize(nullptr)) << "and it ignores them";
    *gate = 1;
    EXPECT_OK(cuCtxSynchronize());
}

TEST_F(Streams, OfEachThreadsOwnAreSeparateBetweenThreads) {
    volatile uint32_t* gate = pinnedWord();
    spin(gate, CU_STREAM_PER_THREAD);
    EXPECT_EQ(cuStreamQuery_ptsz(nullptr), CUDA_ERROR_NOT_READY);
    std::thread([&] {
        EXPECT_OK(cuCtxSetCurrent(context));
        EXPECT_OK(cuStreamQuery(CU_STREAM_PER_THREAD));
        CUdeviceptr word = allocate(4);
        uint32_t one = 1;
        std::vector<void*> parameters = {&word, &one};
        EXPECT_OK(cuLaunchKernel_ptsz(function("store"), 1, 1, 1, 1, 1, 1, 0, nullptr,
                                      parameters.data(), nullptr));
        EXPECT_OK(cuStreamSynchronize_ptsz(nullptr));
    }).join();
    EXPECT_EQ(cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_NOT_READY);
    EXPECT_EQ(cuStreamQuery(CU_STREAM_LEGACY), CUDA_ERROR_NOT_READY) << "it is a blocking stream";
    *gate = 1;
    EXPECT_OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
}

TEST_F(Streams, FinishTheirWorkAfterTheyWereDestroyed) {
    volatile uint32_t* gate = pinnedWord();
    CUdeviceptr word = allocate(4);
    uint32_t nine = 9;
    const CUstream gone = stream();
    spin(gate, gone);
    EXPECT_OK(launch("store", {&word, &nine}, gone));
    EXPECT_OK(cuStreamDestroy_v2(gone));
    if (isSoftwareGpu()) {
        EXPECT_EQ(cuStreamQuery(gone), CUDA_ERROR_INVALID_HANDLE);
        EXPECT_EQ(cuStreamDestroy_v2(gone), CUDA_ERROR_INVALID_HANDLE);
    }
    *gate = 1;
    EXPECT_OK(cuCtxSynchronize());
    EXPECT_EQ(read(word), 9U);
}

TEST_F(Streams, CallHostFunctionsInOrderAndWithoutCuda) {
    static std::atomic<int> step;
    static CUresult inside;
    static int one = 1;
    step = 0;
    volatile uint32_t* gate = pinnedWord();
    const CUstream on = stream();
    spin(gate, on);
    EXPECT_OK(cuLaunchHostFunc(
        on,
        [](void* data) {
            int count = 0;
            inside = cuDeviceGetCount(&count);
            step = *static_cast<int*>(data);
        },
        &one));
    EXPECT_OK(cuStreamAddCallback(
        on,
        [](CUstream, CUresult status, void*) {
            if (status == CUDA_SUCCESS && step == 1) step = 2;
        },
        nullptr, 0));
    giveItTime();
    EXPECT_EQ(step, 0);
    *gate = 1;
    EXPECT_OK(cuStreamSynchronize(on));
    EXPECT_EQ(step, 2);
    EXPECT_EQ(inside, CUDA_ERROR_NOT_PERMITTED);
}

TEST_F(Streams, WaitForAndWriteValues) {
    volatile uint32_t* flag = pinnedWord();
    const CUdeviceptr word = allocate(8);
    const CUstream on = stream();
    EXPECT_OK(cuMemsetD32_v2(word, 0, 2));
    EXPECT_OK(cuStreamWaitValue32_v2(on, reinterpret_cast<CUdeviceptr>(flag), 3,
                                     CU_STREAM_WAIT_VALUE_GEQ));
    EXPECT_OK(cuStreamWriteValue64_v2(on, word, 0x100000002, CU_STREAM_WRITE_VALUE_DEFAULT));
    *flag = 2;
    giveItTime();
    EXPECT_EQ(cuStreamQuery(on), CUDA_ERROR_NOT_READY);
    *flag = 3;
    EXPECT_OK(cuStreamSynchronize(on));
    EXPECT_EQ(read(word), 2U);
    EXPECT_EQ(read(word + 4), 1U);
    EXPECT_EQ(cuStreamWaitValue32_v2(on, 0x1000, 3, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Streams, TellWhatTheyAre) {
    CUstream made = nullptr;
    EXPECT_OK(cuStreamCreateWithPriority(&made, CU_STREAM_NON_BLOCKING, -99));
    int priority = 0;
    EXPECT_OK(cuStreamGetPriority(made, &priority));
    EXPECT_EQ(priority, -5) << "clamped to the range";
    unsigned flags = 0;
    EXPECT_OK(cuStreamGetFlags(made, &flags));
    EXPECT_EQ(flags, static_cast<unsigned>(CU_STREAM_NON_BLOCKING));
    CUcontext owner = nullptr;
    EXPECT_OK(cuStreamGetCtx(made, &owner));
    EXPECT_EQ(owner, context);
    unsigned long long id = 0, other = 0;
    EXPECT_OK(cuStreamGetId(made, &id));
    EXPECT_OK(cuStreamGetId(nullptr, &other));
    EXPECT_NE(id, other);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    EXPECT_OK(cuStreamIsCapturing(made, &status));
    EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
    EXPECT_EQ(cuStreamCreate(&made, 8), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Streams, SurviveManyThreadsLaunchingAtOnce) {
    constexpr int kThreads = 8, kLaunches = 50;
    const CUdeviceptr words = allocate(4 * kThreads);
    EXPECT_OK(cuMemsetD32_v2(words, 0, kThreads));
    const CUfunction add = function("add");
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
            EXPECT_OK(cuCtxSetCurrent(context));
            CUdeviceptr word = words + 4 * static_cast<unsigned>(t);
            uint32_t one = 1;
            std::vector<void*> parameters = {&word, &one};
            for (int i = 0; i < kLaunches; ++i) {
                EXPECT_OK(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, CU_STREAM_PER_THREAD,
                                         parameters.data(), nullptr));
            }
            EXPECT_OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
            EXPECT_EQ(read(word), static_cast<uint32_t>(kLaunches));
        });
    }
    for (auto& thread : threads) thread.join();
}

using Events = DriverTest;

TEST_F(Events, AreDoneUntilRecordedAndThenFollowTheirStream) {
    volatile uint32_t* gate = pinnedWord();
    const CUevent mark = event();
    const CUstream on = stream();
    EXPECT_OK(cuEventQuery(mark));
    EXPECT_OK(cuEventSynchronize(mark));
    spin(gate, on);
    EXPECT_OK(cuEventRecord(mark, on));
    EXPECT_EQ(cuEventQuery(mark), CUDA_ERROR_NOT_READY);
    *gate = 1;
    EXPECT_OK(cuEventSynchronize(mark));
    EXPECT_OK(cuEventQuery(mark));
    EXPECT_OK(cuEventDestroy_v2(mark));
    if (isSoftwareGpu()) {
        EXPECT_EQ(cuEventQuery(mark), CUDA_ERROR_INVALID_HANDLE);
    }
}

TEST_F(Events, HoldBackTheStreamsThatWaitForThem) {
    volatile uint32_t* gate = pinnedWord();
    CUdeviceptr word = allocate(4);
    uint32_t one = 1, five = 5;
    const CUevent mark = event(CU_EVENT_DISABLE_TIMING);
    const CUstream first = stream(CU_STREAM_NON_BLOCKING), second = stream(CU_STREAM_NON_BLOCKING);
    spin(gate, first);
    EXPECT_OK(launch("store", {&word, &one}, first));
    EXPECT_OK(cuEventRecord(mark, first));
    EXPECT_OK(cuStreamWaitEvent(second, mark, 0));
    EXPECT_OK(launch("add", {&word, &five}, second));
    giveItTime();
    EXPECT_EQ(cuStreamQuery(second), CUDA_ERROR_NOT_READY);
    *gate = 1;
    EXPECT_OK(cuStreamSynchronize(second));
    EXPECT_EQ(read(word), 6U);
}

TEST_F(Events, KeepWhatWasRecordedWhenTheWaitWasSubmitted) {
    volatile uint32_t* gate = pinnedWord();
    const CUevent mark = event();
    const CUstream busy = stream(CU_STREAM_NON_BLOCKING), on = stream(CU_STREAM_NON_BLOCKING);
    EXPECT_OK(cuEventRecord(mark, on));
    EXPECT_OK(cuStreamWaitEvent(on, mark, 0));
    spin(gate, busy);
    EXPECT_OK(cuEventRecord(mark, busy));
    EXPECT_OK(cuStreamSynchronize(on)) << "it waits for the first recording";
    *gate = 1;
    EXPECT_OK(cuCtxSynchronize());
}

TEST_F(Events, MeasureTime) {
    const CUevent start = event(), end = event();
    const CUstream on = stream();
    float milliseconds = -1;
    EXPECT_EQ(cuEventElapsedTime_v2(&milliseconds, start, end), CUDA_ERROR_INVALID_HANDLE)
        << "never recorded";
    volatile uint32_t* gate = pinnedWord();
    EXPECT_OK(cuEventRecord(start, on));
    spin(gate, on);
    EXPECT_OK(cuEventRecord(end, on));
    EXPECT_EQ(cuEventElapsedTime_v2(&milliseconds, start, end), CUDA_ERROR_NOT_READY);
    giveItTime();
    *gate = 1;
    EXPECT_OK(cuEventSynchronize(end));
    EXPECT_OK(cuEventElapsedTime_v2(&milliseconds, start, end));
    EXPECT_GE(milliseconds, 40.0F);
    EXPECT_LT(milliseconds, 30000.0F);
    EXPECT_EQ(cuEventElapsedTime_v2(&milliseconds, start, event(CU_EVENT_DISABLE_TIMING)),
              CUDA_ERROR_INVALID_HANDLE);
}

}  // namespace
}  // namespace juice::softgpu

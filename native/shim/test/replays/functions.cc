// Functions that streams call.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "native/shim/test/replays/play.h"

namespace juice::replays {
namespace {

void addOne(void* data) {
    auto* const values = static_cast<unsigned*>(data);
    for (unsigned i = 0; i < kCount; ++i) values[i] += 1;
}

/// Holds up whoever waits until it is opened.
struct Gate {
    std::mutex mutex;
    std::condition_variable opened;
    bool open = false;
    void wait() {
        std::unique_lock lock(mutex);
        opened.wait(lock, [this] { return open; });
    }
    void let() {
        const std::lock_guard lock(mutex);
        open = true;
        opened.notify_all();
    }
    static void waitFor(void* gate) { static_cast<Gate*>(gate)->wait(); }
    static void letGo(void* gate) { static_cast<Gate*>(gate)->let(); }
};

struct Heard {
    std::atomic<int> calls{0}, status{-1}, alloc{-1}, current{-1}, query{-1};
    CUstream stream = nullptr;
    Gate done;
};

void listen(CUstream stream, CUresult status, void* data) {
    auto* const heard = static_cast<Heard*>(data);
    CUdeviceptr memory = 0;
    heard->alloc = cu.cuMemAlloc_v2(&memory, 16);
    heard->query = cu.cuStreamQuery(stream);
    heard->stream = stream;
    heard->status = status;
    ++heard->calls;
    heard->done.let();
}

}  // namespace

/// All posted at once: each function changes what the copy before it brought and the copy behind it
/// takes.
void functionsInOrder() {
    const Stage stage;
    const CUstream stream = stage.stream();
    unsigned* const values = stage.pinned(5);
    const CUdeviceptr device = stage.device();
    std::vector<unsigned> wanted(values, values + kCount);
    for (unsigned round = 0; round < 8; ++round) {
        PLAY(cuMemcpyHtoDAsync_v2(device, values, kBytes, stream));
        stage.launchStep(device, round, stream);
        PLAY(cuMemcpyDtoHAsync_v2(values, device, kBytes, stream));
        PLAY(cuLaunchHostFunc(stream, addOne, values));
        stepHere(wanted.data(), round);
        addOne(wanted.data());
    }
    PLAY(cuStreamSynchronize(stream));
    compare("functions_in_order", values, wanted.data());

    // In the default streams, and into a range that is only part of an allocation.
    PLAY(cuMemcpyDtoHAsync_v2(values, device, kBytes / 2, nullptr));
    PLAY(cuLaunchHostFunc(nullptr, addOne, values));
    PLAY(cuMemcpyHtoDAsync_v2(device, values, kBytes, nullptr));
    PLAY(cuLaunchHostFunc(CU_STREAM_PER_THREAD, addOne, values));
    PLAY(cuMemcpyDtoHAsync_v2(values, device, kBytes, CU_STREAM_PER_THREAD));
    PLAY(cuCtxSynchronize());
    for (unsigned i = 0; i < kCount / 2; ++i) wanted[i] -= 1;
    addOne(wanted.data());
    compare("functions_in_default_streams", values, wanted.data());

    // Rows of a matrix that a function writes.
    CUDA_MEMCPY2D rows{};
    rows.srcMemoryType = CU_MEMORYTYPE_HOST;
    rows.srcHost = values;
    rows.srcPitch = 128;
    rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    rows.dstDevice = device;
    rows.dstPitch = 128;
    rows.WidthInBytes = 64;
    rows.Height = kBytes / 128;
    PLAY(cuMemsetD32Async(device, 7, kCount, stream));
    PLAY(cuLaunchHostFunc(stream, addOne, values));
    PLAY(cuMemcpy2DAsync_v2(&rows, stream));
    PLAY(cuStreamSynchronize(stream));
    addOne(wanted.data());
    for (unsigned i = 0; i < kCount; ++i)
        if (i % 32 >= 16) wanted[i] = 7;
    PLAY(cuMemcpyDtoH_v2(values, device, kBytes));
    compare("functions_before_rows", values, wanted.data());
}

/// The program fills the memory while its function holds the stream up.
void functionAsGate() {
    const Stage stage;
    const CUstream stream = stage.stream();
    unsigned* const values = stage.pinned(0);
    const CUdeviceptr device = stage.device();
    Gate gate;
    PLAY(cuLaunchHostFunc(stream, Gate::waitFor, &gate));
    PLAY(cuMemcpyHtoDAsync_v2(device, values, kBytes, stream));
    stage.launchStep(device, 9, stream);
    say("gate_closed", cu.cuStreamQuery(stream));
    for (unsigned i = 0; i < kCount; ++i) values[i] = 1000 - i;
    std::vector<unsigned> wanted(values, values + kCount);
    stepHere(wanted.data(), 9);
    gate.let();
    PLAY(cuMemcpyDtoHAsync_v2(values, device, kBytes, stream));
    PLAY(cuStreamSynchronize(stream));
    compare("function_as_gate", values, wanted.data());
}

void functionsSayStatus() {
    const Stage stage;
    const CUstream stream = stage.stream();
    Heard heard;
    PLAY(cuStreamAddCallback(stream, listen, &heard, 0));
    heard.done.wait();
    PLAY(cuStreamSynchronize(stream));
    say("callback_status", heard.status);
    say("callback_stream", heard.stream == stream);
    say("callback_alloc", heard.alloc);
    say("callback_query", heard.query);
    say("callback_flags", cu.cuStreamAddCallback(stream, listen, &heard, 1));
    say("callback_null", cu.cuStreamAddCallback(stream, nullptr, &heard, 0));
    say("function_null", cu.cuLaunchHostFunc(stream, nullptr, nullptr));
    say("callback_calls", heard.calls);
}

/// What one stream's function writes another stream's copy reads, behind an event.
void functionsAcrossStreams() {
    const Stage stage;
    const CUstream first = stage.stream(), second = stage.stream();
    const CUevent written = stage.event(), read = stage.event();
    unsigned* const values = stage.pinned(3);
    const CUdeviceptr device = stage.device(), other = stage.device();
    std::vector<unsigned> wanted(values, values + kCount);
    for (unsigned round = 0; round < 5; ++round) {
        PLAY(cuLaunchHostFunc(first, addOne, values));
        PLAY(cuEventRecord(written, first));
        PLAY(cuStreamWaitEvent(second, written, 0));
        PLAY(cuMemcpyHtoDAsync_v2(device, values, kBytes, second));
        stage.launchStep(device, round, second);
        PLAY(cuMemcpyDtoDAsync_v2(other, device, kBytes, second));
        PLAY(cuMemcpyDtoHAsync_v2(values, other, kBytes, second));
        PLAY(cuEventRecord(read, second));
        PLAY(cuStreamWaitEvent(first, read, 0));
        addOne(wanted.data());
        stepHere(wanted.data(), round);
    }
    PLAY(cuEventSynchronize(read));
    compare("functions_across_streams", values, wanted.data());
    // Memory is freed, and all of it, only when the function that is due has returned.
    std::atomic<int> slow{0};
    PLAY(cuLaunchHostFunc(
        first,
        [](void* data) {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            *static_cast<std::atomic<int>*>(data) = 1;
        },
        &slow));
    PLAY(cuCtxSynchronize());
    say("synchronised_behind_a_function", slow);
    PLAY(cuMemFreeHost(values));
}

void functionsAfterFault() {
    const Stage stage;
    const CUstream stream = stage.stream();
    Heard heard;
    bool called = false;
    PLAY(cuLaunchKernel(stage.fault, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr));
    // Whether these are still taken depends on how fast the fault is; if so, both know of it.
    const CUresult plain = cu.cuLaunchHostFunc(
        stream, [](void* data) { *static_cast<bool*>(data) = true; }, &called);
    const CUresult taken = cu.cuStreamAddCallback(stream, listen, &heard, 0);
    say("fault_seen", cu.cuStreamSynchronize(stream));
    if (taken == CUDA_SUCCESS) heard.done.wait();
    say("fault_told", taken != CUDA_SUCCESS ? static_cast<int>(taken) : heard.status.load());
    say("function_after_fault", plain == CUDA_SUCCESS && called);
}

/// A function is due while its context, and the program, come to their end.
void functionsAtTheEnd() {
    const Stage stage;
    CUcontext context = nullptr;
    PLAY(cuCtxCreate_v2(&context, 0, 0));
    const CUstream stream = stage.stream();
    static std::atomic<int> calls{0};
    const auto count = [](void*) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        ++calls;
    };
    PLAY(cuLaunchHostFunc(stream, count, nullptr));
    PLAY(cuCtxDestroy_v2(context));
    PLAY(cuCtxSetCurrent(stage.context));
    PLAY(cuCtxSynchronize());
    say("functions_of_an_ended_context", calls);
    PLAY(cuLaunchHostFunc(stage.stream(), count, nullptr));
    say("leaving", 0);
}

}  // namespace juice::replays

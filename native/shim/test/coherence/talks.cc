// Kernels and the CPU that wait for each other by host memory.
#include <thread>

#include "native/shim/test/coherence/checks.h"

namespace juice::coherence_test {
namespace {

constexpr unsigned kRounds = 20;

/// The CPU makes no call while it talks.
void converse(volatile unsigned* request, const volatile unsigned* answer) {
    for (unsigned round = 1; round <= kRounds; ++round) {
        *request = round;
        const bool answered = comesTrue([&] { return *answer == round * 3; });
        EXPECT(answered);
        if (answered) continue;
        std::printf("  round %u: request %u, answer %u\n", round, *request, *answer);
        std::fflush(stdout);
        std::_Exit(1);  // the kernel would keep us for ever
    }
}

void aKernelAndTheCpuTalk() {
    auto* const memory = pinned<unsigned>(1024, 0);
    CUstream stream = nullptr;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    // Two words of one cache line, then of different pages.
    for (const unsigned apart : {1u, 1000u}) {
        memory[0] = memory[apart] = 0;
        launch("echo", 1, stream, memory, memory + apart, kRounds);
        converse(memory, memory + apart);
        OK(cuStreamSynchronize(stream));
        EXPECT(memory[apart] == kRounds * 3);
    }
    OK(cuStreamDestroy_v2(stream));
    OK(cuMemFreeHost(memory));
}

/// One thread waits for the kernel, which waits for another.
void anotherThreadAnswers() {
    auto* const memory = pinned<unsigned>(16, 0);
    launch("echo", 1, nullptr, memory, memory + 8, kRounds);
    std::thread speaker([&] { converse(memory, memory + 8); });
    OK(cuCtxSynchronize());
    speaker.join();
    EXPECT(memory[8] == kRounds * 3);
    OK(cuMemFreeHost(memory));
}

/// A stream that waits for a value which the CPU writes.
void aStreamWaitsForTheCpu() {
    auto* const memory = pinned<unsigned>(16, 0);
    CUstream stream = nullptr;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuStreamWaitValue32_v2(stream, device(memory), 5, CU_STREAM_WAIT_VALUE_GEQ));
    OK(cuStreamWriteValue32_v2(stream, device(memory + 1), 6, 0));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT(memory[1] == 0);
    *static_cast<volatile unsigned*>(memory) = 5;
    EXPECT(comesTrue([&] { return *static_cast<volatile unsigned*>(memory + 1) == 6; }));
    OK(cuStreamSynchronize(stream));
    OK(cuStreamDestroy_v2(stream));
    OK(cuMemFreeHost(memory));
}

}  // namespace

const Check kTalks[] = {
    {"talk", aKernelAndTheCpuTalk},
    {"talk_while_waiting", anotherThreadAnswers},
    {"stream_waits", aStreamWaitsForTheCpu},
    {nullptr, nullptr},
};

}  // namespace juice::coherence_test

// Eight threads at once, each launching on the default stream; built with --default-stream
// per-thread this is a stream of its own for every thread. One thread's stream is held back by a
// kernel that waits for the others: it can end only if their streams do not wait for it.
#include <atomic>
#include <thread>

#include "arrays.h"

constexpr int kThreads = 8, kRounds = 20;

__global__ void waitFor(const volatile int* arrived, int count) {
    while (*arrived < count) {
    }
}

__global__ void step(unsigned* values, int n, unsigned add) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] = 3 * values[i] + add + i;
}

__global__ void arrive(int* arrived) {
    atomicAdd(arrived, 1);
}

int main(int argc, char** argv) {
    const int n = argument(argc, argv, 1, 500);
    int* arrived = onDevice<int>(1);
    unsigned* memory = onDevice<unsigned>(kThreads * n);
    // Every kernel once before: to load one may have to wait for those that run.
    waitFor<<<1, 1>>>(arrived, -1);
    step<<<1, 1>>>(memory, 1, 0);
    arrive<<<1, 1>>>(arrived);
    CHECK(cudaMemset(arrived, 0, sizeof *arrived));
    CHECK(cudaDeviceSynchronize());
    std::atomic<int> wrong{0}, held{0};
    const auto work = [&](unsigned self) {
        if (self == 0) {
            waitFor<<<1, 1>>>(arrived, kThreads - 1);
            CHECK(cudaGetLastError());
            held = 1;
        }
        while (held == 0) std::this_thread::yield();
        std::vector<unsigned> values(n, self), expected(n, self);
        unsigned* const mine = memory + self * n;
        CHECK(cudaMemcpyAsync(mine, values.data(), n * sizeof(unsigned), cudaMemcpyHostToDevice));
        for (unsigned round = 0; round < kRounds; ++round) {
            step<<<(n + 127) / 128, 128>>>(mine, n, self * round);
            CHECK(cudaGetLastError());
            for (int i = 0; i < n; ++i) expected[i] = 3 * expected[i] + self * round + i;
        }
        arrive<<<1, 1>>>(arrived);
        CHECK(cudaMemcpyAsync(values.data(), mine, n * sizeof(unsigned), cudaMemcpyDeviceToHost));
        CHECK(cudaStreamSynchronize(cudaStreamPerThread));
        for (int i = 0; i < n; ++i) wrong += values[i] != expected[i];
    };
    std::vector<std::thread> threads;
    for (unsigned self = 0; self < kThreads; ++self) threads.emplace_back(work, self);
    for (std::thread& thread : threads) thread.join();
    std::printf("per_thread_streams: %s, %d threads x %d rounds, %d values differ from the CPU\n",
                wrong == 0 ? "ok" : "WRONG", kThreads, kRounds, wrong.load());
    return wrong == 0 ? 0 : 1;
}

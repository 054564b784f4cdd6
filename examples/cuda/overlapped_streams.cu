// Four streams, each copying in from pinned memory, computing and copying out, with events that
// chain one stream's result into the next and time the whole.
#include <vector>

#include "check.h"

constexpr int kStreams = 4;

__global__ void scaleAndAdd(const float* in, const float* previous, float* out, int n,
                            float factor) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = factor * in[i] + (previous != nullptr ? previous[i] : 0.0f);
}

int main(int argc, char** argv) {
    const int n = argument(argc, argv, 1, 1 << 15), rounds = 3;
    const size_t bytes = n * sizeof(float);
    float *in[kStreams], *out[kStreams], *din[kStreams], *dout[kStreams];
    cudaStream_t stream[kStreams];
    cudaEvent_t computed[kStreams], begin, end;
    for (int s = 0; s < kStreams; ++s) {
        CHECK(cudaHostAlloc(&in[s], bytes, cudaHostAllocDefault));
        CHECK(cudaMallocHost(&out[s], bytes));
        CHECK(cudaMalloc(&din[s], bytes));
        CHECK(cudaMalloc(&dout[s], bytes));
        CHECK(cudaStreamCreateWithFlags(&stream[s], cudaStreamNonBlocking));
        CHECK(cudaEventCreateWithFlags(&computed[s], cudaEventDisableTiming));
    }
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    CHECK(cudaEventRecord(begin, stream[0]));

    int wrong = 0;
    for (int round = 0; round < rounds; ++round) {
        for (int s = 0; s < kStreams; ++s) {
            for (int i = 0; i < n; ++i) in[s][i] = static_cast<float>((i + 7 * s + round) % 1000);
            CHECK(cudaMemcpyAsync(din[s], in[s], bytes, cudaMemcpyHostToDevice, stream[s]));
            if (s > 0) CHECK(cudaStreamWaitEvent(stream[s], computed[s - 1], 0));
            scaleAndAdd<<<(n + 127) / 128, 128, 0, stream[s]>>>(
                din[s], s > 0 ? dout[s - 1] : nullptr, dout[s], n, 2.0f);
            CHECK(cudaGetLastError());
            CHECK(cudaEventRecord(computed[s], stream[s]));
            CHECK(cudaMemcpyAsync(out[s], dout[s], bytes, cudaMemcpyDeviceToHost, stream[s]));
        }
        for (int s = 0; s < kStreams; ++s) CHECK(cudaStreamSynchronize(stream[s]));
        for (int i = 0; i < n; ++i) {
            float expected = 0;
            for (int s = 0; s < kStreams; ++s) {
                expected += 2.0f * static_cast<float>((i + 7 * s + round) % 1000);
                wrong += out[s][i] != expected;
            }
        }
    }
    CHECK(cudaEventRecord(end, stream[0]));
    CHECK(cudaEventSynchronize(end));
    float milliseconds = -1;
    CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
    const bool ok = wrong == 0 && milliseconds > 0;
    std::printf(
        "overlapped_streams: %s, %d streams x %d rounds of %d elements, %d differ from the CPU\n",
        ok ? "ok" : "WRONG", kStreams, rounds, n, wrong);
    for (int s = 0; s < kStreams; ++s) {
        CHECK(cudaStreamDestroy(stream[s]));
        CHECK(cudaEventDestroy(computed[s]));
        CHECK(cudaFreeHost(in[s]));
        CHECK(cudaFreeHost(out[s]));
        CHECK(cudaFree(din[s]));
        CHECK(cudaFree(dout[s]));
    }
    return ok ? 0 : 1;
}

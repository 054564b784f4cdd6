// A chain across device and host: a kernel, a copy to pinned memory, a function of the host that
// works on it, a copy back, and so on. Each link needs what the one before has made.
#include "arrays.h"

constexpr int kRounds = 12;

__global__ void triple(int* values, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] *= 3;
}

struct Link {
    int* values;
    int n, round;
    int* order;  // counts the links that have been worked on
    int outOfOrder;
};

void CUDART_CB subtract(void* data) {
    Link& link = *static_cast<Link*>(data);
    link.outOfOrder = *link.order != link.round;
    ++*link.order;
    for (int i = 0; i < link.n; ++i) link.values[i] -= i + link.round;
}

int main(int argc, char** argv) {
    const int n = argument(argc, argv, 1, 1'000);
    const size_t bytes = n * sizeof(int);
    int *pinned, *memory = onDevice<int>(n), order = 0;
    CHECK(cudaMallocHost(&pinned, bytes));
    std::vector<int> expected(n);
    for (int i = 0; i < n; ++i) pinned[i] = expected[i] = i;
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    std::vector<Link> links(kRounds);
    CHECK(cudaMemcpyAsync(memory, pinned, bytes, cudaMemcpyHostToDevice, stream));
    for (int round = 0; round < kRounds; ++round) {
        links[round] = {pinned, n, round, &order, 0};
        triple<<<(n + 127) / 128, 128, 0, stream>>>(memory, n);
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpyAsync(pinned, memory, bytes, cudaMemcpyDeviceToHost, stream));
        CHECK(cudaLaunchHostFunc(stream, subtract, &links[round]));
        CHECK(cudaMemcpyAsync(memory, pinned, bytes, cudaMemcpyHostToDevice, stream));
        for (int i = 0; i < n; ++i) {
            expected[i] = static_cast<int>(3u * static_cast<unsigned>(expected[i])) - i - round;
        }
    }
    CHECK(cudaStreamSynchronize(stream));
    const std::vector<int> values = fromDevice(memory, n);
    int wrong = 0, outOfOrder = 0;
    for (int i = 0; i < n; ++i) wrong += values[i] != expected[i];
    for (const Link& link : links) outOfOrder += link.outOfOrder;
    const bool ok = wrong == 0 && outOfOrder == 0 && order == kRounds;
    std::printf("host_callbacks: %s, %d functions called, %d out of order, %d values differ\n",
                ok ? "ok" : "WRONG", order, outOfOrder, wrong);
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaFreeHost(pinned));
    return ok ? 0 : 1;
}

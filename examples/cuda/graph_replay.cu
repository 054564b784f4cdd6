// A copy, two kernels on streams that part and join again, and a copy back, captured once as a
// graph and replayed with other inputs each time: they lie in pinned memory, which the graph reads
// anew.
#include "arrays.h"

__global__ void square(const int* in, int* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] * in[i];
}

__global__ void twice(const int* in, int* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2 * in[i];
}

__global__ void add(const int* a, const int* b, int* total, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) total[i] += a[i] + b[i];
}

int main(int argc, char** argv) {
    const int n = argument(argc, argv, 1, 1'000), replays = 10, blocks = (n + 127) / 128;
    const size_t bytes = n * sizeof(int);
    int *in, *out;
    CHECK(cudaMallocHost(&in, bytes));
    CHECK(cudaMallocHost(&out, bytes));
    int *din = onDevice<int>(n), *squares = onDevice<int>(n), *doubles = onDevice<int>(n);
    int* totals = onDevice<int>(n);
    CHECK(cudaMemset(totals, 0, bytes));
    CHECK(cudaDeviceSynchronize());  // the streams below do not wait for the legacy one
    cudaStream_t main, side;
    cudaEvent_t parted, joined;
    CHECK(cudaStreamCreateWithFlags(&main, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&parted, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&joined, cudaEventDisableTiming));

    CHECK(cudaStreamBeginCapture(main, cudaStreamCaptureModeThreadLocal));
    CHECK(cudaMemcpyAsync(din, in, bytes, cudaMemcpyHostToDevice, main));
    CHECK(cudaEventRecord(parted, main));
    CHECK(cudaStreamWaitEvent(side, parted, 0));
    square<<<blocks, 128, 0, main>>>(din, squares, n);
    twice<<<blocks, 128, 0, side>>>(din, doubles, n);
    CHECK(cudaEventRecord(joined, side));
    CHECK(cudaStreamWaitEvent(main, joined, 0));
    add<<<blocks, 128, 0, main>>>(squares, doubles, totals, n);
    CHECK(cudaMemcpyAsync(out, totals, bytes, cudaMemcpyDeviceToHost, main));
    cudaGraph_t graph;
    CHECK(cudaStreamEndCapture(main, &graph));
    size_t nodes = 0;
    CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
    cudaGraphExec_t executable;
    CHECK(cudaGraphInstantiate(&executable, graph, 0));

    int wrong = 0;
    std::vector<int> expected(n);
    for (int replay = 0; replay < replays; ++replay) {
        for (int i = 0; i < n; ++i) {
            in[i] = (i + 31 * replay) % 100;
            expected[i] += in[i] * in[i] + 2 * in[i];
        }
        CHECK(cudaGraphLaunch(executable, main));
        CHECK(cudaStreamSynchronize(main));
        for (int i = 0; i < n; ++i) wrong += out[i] != expected[i];
    }
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));
    const bool ok = wrong == 0 && nodes == 5;
    std::printf("graph_replay: %s, %zu nodes, %d replays of %d elements, %d differ from the CPU\n",
                ok ? "ok" : "WRONG", nodes, replays, n, wrong);
    return ok ? 0 : 1;
}

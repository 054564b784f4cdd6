// Graphs and captures as programs of the CUDA runtime use them. Says what is wrong and ends with 1.
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                      \
    do {                                                                                 \
        const cudaError_t result = (call);                                               \
        if (result != cudaSuccess) {                                                     \
            std::printf("line %d: %s: %s\n", __LINE__, #call, cudaGetErrorName(result)); \
            std::exit(1);                                                                \
        }                                                                                \
    } while (false)

#define EXPECT(condition)                                             \
    do {                                                              \
        if (!(condition)) {                                           \
            std::printf("line %d: not so: %s\n", __LINE__, #condition); \
            std::exit(1);                                             \
        }                                                             \
    } while (false)

__global__ void scale(float* values, float by, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) values[i] *= by;
}

__global__ void sum(const float* a, const float* b, float* out, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = a[i] + b[i];
}

__global__ void countDown(cudaGraphConditionalHandle handle, int* left, int* rounds) {
    ++*rounds;
    cudaGraphSetConditional(handle, --*left > 0);
}

constexpr int kCount = 1000;
constexpr int kThreads = 128;
constexpr int kBlocks = (kCount + kThreads - 1) / kThreads;

std::vector<float> fetch(const float* from) {
    std::vector<float> values(kCount);
    CHECK(cudaMemcpy(values.data(), from, sizeof(float) * kCount, cudaMemcpyDeviceToHost));
    return values;
}

float* filled(float value) {
    float* made = nullptr;
    CHECK(cudaMalloc(&made, sizeof(float) * kCount));
    const std::vector<float> values(kCount, value);
    CHECK(cudaMemcpy(made, values.data(), sizeof(float) * kCount, cudaMemcpyHostToDevice));
    return made;
}

bool all(const std::vector<float>& values, float expected) {
    for (const float value : values) {
        if (value != expected) return false;
    }
    return true;
}

/// Two streams that fork and join, captured, updated and launched many times.
void captured() {
    float* a = filled(1);
    float* b = filled(1);
    float* out = filled(0);
    cudaStream_t first, second;
    cudaEvent_t fork, join;
    CHECK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    CHECK(cudaStreamCreate(&second));
    CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    static int calls = 0;
    const auto capture = [&](float by) {
        CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
        CHECK(cudaEventRecord(fork, first));
        CHECK(cudaStreamWaitEvent(second, fork, 0));
        scale<<<kBlocks, kThreads, 0, first>>>(a, by, kCount);
        scale<<<kBlocks, kThreads, 0, second>>>(b, 3, kCount);
        CHECK(cudaEventRecord(join, second));
        CHECK(cudaStreamWaitEvent(first, join, 0));
        sum<<<kBlocks, kThreads, 0, first>>>(a, b, out, kCount);
        CHECK(cudaLaunchHostFunc(first, [](void* data) { ++*static_cast<int*>(data); }, &calls));
        cudaStreamCaptureStatus status;
        CHECK(cudaStreamIsCapturing(second, &status));
        EXPECT(status == cudaStreamCaptureStatusActive);
        cudaGraph_t graph = nullptr;
        CHECK(cudaStreamEndCapture(first, &graph));
        CHECK(cudaGetLastError());
        return graph;
    };
    cudaGraph_t graph = capture(2);
    size_t nodes = 0;
    CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
    EXPECT(nodes == 4);
    cudaGraphExec_t exec = nullptr;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 3; ++i) CHECK(cudaGraphLaunch(exec, first));
    CHECK(cudaStreamSynchronize(first));
    EXPECT(calls == 3);
    EXPECT(all(fetch(out), 8 + 27));
    cudaGraph_t other = capture(0.5F);
    cudaGraphExecUpdateResultInfo info;
    CHECK(cudaGraphExecUpdate(exec, other, &info));
    EXPECT(info.result == cudaGraphExecUpdateSuccess);
    CHECK(cudaGraphLaunch(exec, first));
    CHECK(cudaStreamSynchronize(first));
    EXPECT(all(fetch(out), 4 + 81));

    CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
    void* refused = nullptr;
    EXPECT(cudaMalloc(&refused, 4) == cudaErrorStreamCaptureUnsupported);
    cudaGraph_t none = nullptr;
    EXPECT(cudaStreamEndCapture(first, &none) == cudaErrorStreamCaptureInvalidated);
    EXPECT(none == nullptr);
    cudaGetLastError();
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaGraphDestroy(other));
}

/// The same work built by hand, with its parameters changed afterwards.
void built() {
    float* a = filled(2);
    std::vector<float> host(kCount);
    cudaGraph_t graph = nullptr;
    CHECK(cudaGraphCreate(&graph, 0));
    float by = 5;
    int count = kCount;
    void* arguments[] = {&a, &by, &count};
    cudaKernelNodeParams kernel = {};
    kernel.func = reinterpret_cast<void*>(scale);
    kernel.gridDim = dim3(kBlocks);
    kernel.blockDim = dim3(kThreads);
    kernel.kernelParams = arguments;
    cudaGraphNode_t scaling = nullptr, copying = nullptr, clearing = nullptr;
    CHECK(cudaGraphAddKernelNode(&scaling, graph, nullptr, 0, &kernel));
    CHECK(cudaGraphAddMemcpyNode1D(&copying, graph, &scaling, 1, host.data(), a,
                                   sizeof(float) * kCount, cudaMemcpyDeviceToHost));
    cudaMemsetParams clear = {};
    clear.dst = a;
    clear.elementSize = 4;
    clear.width = kCount;
    clear.height = 1;
    CHECK(cudaGraphAddMemsetNode(&clearing, graph, &copying, 1, &clear));
    cudaKernelNodeParams told = {};
    CHECK(cudaGraphKernelNodeGetParams(scaling, &told));
    EXPECT(told.func == kernel.func);
    EXPECT(*static_cast<float*>(told.kernelParams[1]) == 5);
    cudaGraphNodeType type;
    CHECK(cudaGraphNodeGetType(copying, &type));
    EXPECT(type == cudaGraphNodeTypeMemcpy);

    cudaGraphExec_t exec = nullptr;
    CHECK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    CHECK(cudaGraphUpload(exec, nullptr));
    CHECK(cudaGraphLaunch(exec, nullptr));
    CHECK(cudaDeviceSynchronize());
    EXPECT(all(host, 10));
    EXPECT(all(fetch(a), 0));

    float* b = filled(3);
    void* others[] = {&b, &by, &count};
    kernel.kernelParams = others;
    CHECK(cudaGraphExecKernelNodeSetParams(exec, scaling, &kernel));
    CHECK(cudaGraphExecMemcpyNodeSetParams1D(exec, copying, host.data(), b, sizeof(float) * kCount,
                                             cudaMemcpyDeviceToHost));
    CHECK(cudaGraphNodeSetEnabled(exec, clearing, 0));
    CHECK(cudaGraphLaunch(exec, nullptr));
    CHECK(cudaDeviceSynchronize());
    EXPECT(all(host, 15));

    cudaGraph_t clone = nullptr;
    CHECK(cudaGraphClone(&clone, graph));
    cudaGraphNode_t twin = nullptr;
    CHECK(cudaGraphNodeFindInClone(&twin, scaling, clone));
    EXPECT(twin != scaling);
    CHECK(cudaGraphDestroy(clone));
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
}

/// Memory that a graph allocates for itself.
void allocated() {
    float* out = filled(0);
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    float* inside = nullptr;
    CHECK(cudaMallocAsync(&inside, sizeof(float) * kCount, stream));
    CHECK(cudaMemsetAsync(inside, 0, sizeof(float) * kCount, stream));
    sum<<<kBlocks, kThreads, 0, stream>>>(inside, out, out, kCount);
    CHECK(cudaFreeAsync(inside, stream));
    cudaGraph_t graph = nullptr;
    CHECK(cudaStreamEndCapture(stream, &graph));
    cudaGraphExec_t exec = nullptr;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    EXPECT(all(fetch(out), 0));
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaDeviceGraphMemTrim(0));
}

/// A loop that the device decides about.
void conditional() {
    int* numbers = nullptr;
    CHECK(cudaMalloc(&numbers, 2 * sizeof(int)));
    const int initial[2] = {7, 0};
    CHECK(cudaMemcpy(numbers, initial, sizeof(initial), cudaMemcpyHostToDevice));
    cudaGraph_t graph = nullptr;
    CHECK(cudaGraphCreate(&graph, 0));
    cudaGraphConditionalHandle handle;
    CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
    cudaGraphNodeParams parameters = {};
    parameters.type = cudaGraphNodeTypeConditional;
    parameters.conditional.handle = handle;
    parameters.conditional.type = cudaGraphCondTypeWhile;
    parameters.conditional.size = 1;
    cudaGraphNode_t node = nullptr;
    CHECK(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &parameters));
    cudaGraph_t body = parameters.conditional.phGraph_out[0];
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaStreamBeginCaptureToGraph(stream, body, nullptr, nullptr, 0,
                                        cudaStreamCaptureModeRelaxed));
    countDown<<<1, 1, 0, stream>>>(handle, numbers, numbers + 1);
    CHECK(cudaStreamEndCapture(stream, nullptr));
    cudaGraphExec_t exec = nullptr;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    int left[2];
    CHECK(cudaMemcpy(left, numbers, sizeof(left), cudaMemcpyDeviceToHost));
    EXPECT(left[0] == 0 && left[1] == 7);
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
}

int main() {
    captured();
    built();
    allocated();
    conditional();
    std::printf("graphs: all as it should be\n");
    return 0;
}

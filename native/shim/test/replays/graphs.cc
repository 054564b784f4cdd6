// Graphs: captured and built, launched again and again with other values.
#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>

#include "native/shim/test/replays/play.h"

namespace juice::replays {
namespace {

void addOne(void* data) {
    auto* const values = static_cast<unsigned*>(data);
    for (unsigned i = 0; i < kCount; ++i) values[i] += 1;
}

void refill(unsigned* values, unsigned first) {
    for (unsigned i = 0; i < kCount; ++i) values[i] = first + 7 * i;
}

CUgraph finish(CUstream stream) {
    CUgraph graph = nullptr;
    PLAY(cuStreamEndCapture(stream, &graph));
    return graph;
}

CUgraphExec instantiated(CUgraph graph) {
    CUgraphExec exec = nullptr;
    PLAY(cuGraphInstantiateWithFlags(&exec, graph, 0));
    return exec;
}

size_t nodesOf(CUgraph graph) {
    size_t count = 0;
    PLAY(cuGraphGetNodes(graph, nullptr, &count));
    return count;
}

CUDA_MEMCPY3D copyOf(CUdeviceptr to, const void* toHost, CUdeviceptr from, const void* fromHost) {
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = fromHost != nullptr ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    copy.srcHost = fromHost;
    copy.srcDevice = from;
    copy.dstMemoryType = toHost != nullptr ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    copy.dstHost = const_cast<void*>(toHost);
    copy.dstDevice = to;
    copy.srcPitch = copy.dstPitch = copy.WidthInBytes = kBytes;
    copy.Height = copy.Depth = 1;
    return copy;
}

}  // namespace

/// What the graph reads is what the memory holds at each launch, not what it held at the capture.
void capturedAndReplayed() {
    const Stage stage;
    const CUstream stream = stage.stream();
    unsigned *const in = stage.pinned(1), *const out = stage.pinned(0);
    const CUdeviceptr device = stage.device(), sum = stage.device();
    CUstreamCaptureStatus status{};
    unsigned long long id = 0;
    PLAY(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    PLAY(cuStreamGetCaptureInfo_v2(stream, &status, &id, nullptr, nullptr, nullptr));
    say("capture_status", status);
    say("capture_has_id", id != 0);
    PLAY(cuMemcpyHtoDAsync_v2(device, in, kBytes, stream));
    stage.launchStep(device, 3, stream);
    PLAY(cuMemsetD32Async(sum, 5, kCount, stream));
    stage.launchStep(sum, 1, stream);
    PLAY(cuMemcpyDtoHAsync_v2(out, device, kBytes, stream));
    const CUgraph graph = finish(stream);
    PLAY(cuStreamIsCapturing(stream, &status));
    say("captured_status", status);
    say("captured_nodes", static_cast<int>(nodesOf(graph)));
    const CUgraphExec exec = instantiated(graph);
    PLAY(cuGraphDestroy(graph));
    std::vector<unsigned> wanted(kCount), five(kCount, 5);
    stepHere(five.data(), 1);
    bool all = true;
    for (unsigned round = 0; round < 6; ++round) {
        refill(in, 100 * round);
        PLAY(cuGraphLaunch(exec, stream));
        PLAY(cuStreamSynchronize(stream));
        refill(wanted.data(), 100 * round);
        stepHere(wanted.data(), 3);
        all = all && std::memcmp(out, wanted.data(), kBytes) == 0;
    }
    compare("captured_and_replayed", out, wanted.data());
    say("every_replay", all);
    std::vector<unsigned> got(kCount);
    PLAY(cuMemcpyDtoH_v2(got.data(), sum, kBytes));
    compare("captured_fill", got.data(), five.data());
    // Launches behind each other, and behind work in the stream that writes what they read.
    PLAY(cuMemcpyDtoHAsync_v2(in, sum, kBytes, stream));
    PLAY(cuGraphLaunch(exec, stream));
    PLAY(cuGraphLaunch(exec, stream));
    PLAY(cuStreamSynchronize(stream));
    stepHere(five.data(), 3);
    compare("replayed_behind_a_copy", out, five.data());
    PLAY(cuGraphExecDestroy(exec));
}

/// Two streams that fork from one and join it again.
void forkedAndJoined() {
    const Stage stage;
    const CUstream origin = stage.stream(), side = stage.stream();
    const CUevent fork = stage.event(), join = stage.event();
    const CUdeviceptr left = stage.device(), right = stage.device();
    PLAY(cuStreamBeginCapture_v2(origin, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    stage.launchStep(left, 1, origin);
    PLAY(cuEventRecord(fork, origin));
    PLAY(cuStreamWaitEvent(side, fork, 0));
    CUstreamCaptureStatus status{};
    PLAY(cuStreamIsCapturing(side, &status));
    say("forked_status", status);
    PLAY(cuMemcpyDtoDAsync_v2(right, left, kBytes, side));
    stage.launchStep(right, 2, side);
    stage.launchStep(left, 4, origin);
    PLAY(cuEventRecord(join, side));
    PLAY(cuStreamWaitEvent(origin, join, 0));
    stage.launchStep(right, 5, origin);
    const CUgraph graph = finish(origin);
    say("captured_event", cu.cuEventQuery(fork));
    say("forked_nodes", static_cast<int>(nodesOf(graph)));
    size_t edges = 0;
    PLAY(cuGraphGetEdges(graph, nullptr, nullptr, &edges));
    say("forked_edges", static_cast<int>(edges));
    const CUgraphExec exec = instantiated(graph);
    std::vector<unsigned> l(kCount), r(kCount), got(kCount);
    for (int round = 0; round < 3; ++round) {
        PLAY(cuGraphLaunch(exec, origin));
        stepHere(l.data(), 1);
        r = l;
        stepHere(r.data(), 2);
        stepHere(l.data(), 4);
        stepHere(r.data(), 5);
    }
    PLAY(cuStreamSynchronize(origin));
    PLAY(cuMemcpyDtoH_v2(got.data(), left, kBytes));
    compare("forked_left", got.data(), l.data());
    PLAY(cuMemcpyDtoH_v2(got.data(), right, kBytes));
    compare("forked_right", got.data(), r.data());
}

/// Each launch calls the functions again in their place, with what the copies before them brought,
/// and what they write is what the copies behind them take.
void functionsInGraphs() {
    const Stage stage;
    const CUstream stream = stage.stream();
    unsigned* const values = stage.pinned(2);
    const CUdeviceptr device = stage.device();
    PLAY(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    for (unsigned i = 0; i < 2; ++i) {
        PLAY(cuMemcpyHtoDAsync_v2(device, values, kBytes, stream));
        stage.launchStep(device, i, stream);
        PLAY(cuMemcpyDtoHAsync_v2(values, device, kBytes, stream));
        PLAY(cuLaunchHostFunc(stream, addOne, values));
    }
    const CUgraph graph = finish(stream);
    say("function_nodes", static_cast<int>(nodesOf(graph)));
    const CUgraphExec exec = instantiated(graph);
    std::vector<unsigned> wanted(values, values + kCount);
    for (int round = 0; round < 4; ++round) {
        PLAY(cuGraphLaunch(exec, stream));
        for (unsigned i = 0; i < 2; ++i) {
            stepHere(wanted.data(), i);
            addOne(wanted.data());
        }
    }
    PLAY(cuStreamSynchronize(stream));
    compare("functions_in_graphs", values, wanted.data());
    // What the last function wrote is what a copy behind the launch takes.
    PLAY(cuGraphLaunch(exec, stream));
    PLAY(cuMemcpyHtoDAsync_v2(device, values, kBytes, stream));
    PLAY(cuStreamSynchronize(stream));
    for (unsigned i = 0; i < 2; ++i) {
        stepHere(wanted.data(), i);
        addOne(wanted.data());
    }
    std::vector<unsigned> got(kCount);
    PLAY(cuMemcpyDtoH_v2(got.data(), device, kBytes));
    compare("copied_behind_a_function_of_a_graph", got.data(), wanted.data());
    PLAY(cuGraphExecDestroy(exec));
    PLAY(cuGraphDestroy(graph));
}

void builtByHand() {
    const Stage stage;
    const CUstream stream = stage.stream();
    unsigned *const in = stage.pinned(9), *const out = stage.pinned(0);
    const CUdeviceptr device = stage.device(), other = stage.device();
    CUgraph graph = nullptr;
    PLAY(cuGraphCreate(&graph, 0));
    CUgraphNode copyIn = nullptr, kernel = nullptr, empty = nullptr, copyOut = nullptr,
                call = nullptr, fill = nullptr;
    const CUDA_MEMCPY3D incoming = copyOf(device, nullptr, 0, in);
    const CUDA_MEMCPY3D outgoing = copyOf(0, out, device, nullptr);
    PLAY(cuGraphAddMemcpyNode(&copyIn, graph, nullptr, 0, &incoming, stage.context));
    unsigned n = kCount, add = 6;
    CUdeviceptr p = device;
    void* parameters[] = {&p, &n, &add};
    CUDA_KERNEL_NODE_PARAMS step{};
    step.func = stage.step;
    step.gridDimX = kCount / 256;
    step.gridDimY = step.gridDimZ = step.blockDimY = step.blockDimZ = 1;
    step.blockDimX = 256;
    step.kernelParams = parameters;
    PLAY(cuGraphAddKernelNode_v2(&kernel, graph, &copyIn, 1, &step));
    PLAY(cuGraphAddEmptyNode(&empty, graph, &kernel, 1));
    PLAY(cuGraphAddMemcpyNode(&copyOut, graph, &empty, 1, &outgoing, stage.context));
    const CUDA_HOST_NODE_PARAMS function{addOne, out};
    PLAY(cuGraphAddHostNode(&call, graph, &copyOut, 1, &function));
    CUDA_MEMSET_NODE_PARAMS seven{other, 0, 7, 4, kCount, 1};
    PLAY(cuGraphAddMemsetNode(&fill, graph, nullptr, 0, &seven, stage.context));
    PLAY(cuGraphAddDependencies(graph, &fill, &kernel, 1));
    size_t count = 0;
    PLAY(cuGraphNodeGetDependencies(kernel, nullptr, &count));
    say("built_dependencies", static_cast<int>(count));
    CUgraphNode found[2] = {};
    PLAY(cuGraphNodeGetDependencies(kernel, found, &count));
    say("built_same_nodes",
        (found[0] == copyIn && found[1] == fill) || (found[1] == copyIn && found[0] == fill));
    CUgraphNodeType type{};
    PLAY(cuGraphNodeGetType(call, &type));
    say("built_type", type);
    CUDA_HOST_NODE_PARAMS told{};
    PLAY(cuGraphHostNodeGetParams(call, &told));
    say("built_function", told.fn == addOne && told.userData == out);
    CUDA_KERNEL_NODE_PARAMS asked{};
    PLAY(cuGraphKernelNodeGetParams_v2(kernel, &asked));
    say("built_kernel", asked.gridDimX == kCount / 256 && asked.kernelParams != nullptr &&
                            *static_cast<unsigned*>(asked.kernelParams[2]) == 6 &&
                            *static_cast<CUdeviceptr*>(asked.kernelParams[0]) == device);

    const CUgraphExec exec = instantiated(graph);
    std::vector<unsigned> wanted(in, in + kCount);
    PLAY(cuGraphLaunch(exec, stream));
    PLAY(cuStreamSynchronize(stream));
    stepHere(wanted.data(), 6);
    addOne(wanted.data());
    compare("built_and_launched", out, wanted.data());

    // Other parameters for the executable graph alone.
    add = 11;
    PLAY(cuGraphExecKernelNodeSetParams_v2(exec, kernel, &step));
    seven.value = 8;
    PLAY(cuGraphExecMemsetNodeSetParams(exec, fill, &seven, stage.context));
    PLAY(cuGraphLaunch(exec, stream));
    PLAY(cuStreamSynchronize(stream));
    wanted.assign(in, in + kCount);
    stepHere(wanted.data(), 11);
    addOne(wanted.data());
    compare("launched_with_other_parameters", out, wanted.data());
    std::vector<unsigned> got(kCount);
    PLAY(cuMemcpyDtoH_v2(got.data(), other, kBytes));
    compare("filled_with_another_value", got.data(), std::vector<unsigned>(kCount, 8).data());

    // A clone is another graph of the same shape; a cycle is none.
    CUgraph clone = nullptr;
    CUgraphNode twin = nullptr;
    PLAY(cuGraphClone(&clone, graph));
    PLAY(cuGraphNodeFindInClone(&twin, kernel, clone));
    say("clone_nodes", static_cast<int>(nodesOf(clone)));
    say("clone_is_another", twin != kernel);
    say("node_of_another_graph", cu.cuGraphAddEmptyNode(&empty, clone, &kernel, 1));
    PLAY(cuGraphDestroy(clone));
    say("destroyed_graph", cu.cuGraphDestroy(clone));
    PLAY(cuGraphDebugDotPrint(graph, "/tmp/juice-replays.dot", 0));
    std::ifstream dot("/tmp/juice-replays.dot");
    const std::string text(std::istreambuf_iterator<char>(dot), {});
    say("dot", text.find("digraph") != std::string::npos);
    std::remove("/tmp/juice-replays.dot");
    PLAY(cuGraphExecDestroy(exec));
    PLAY(cuGraphDestroy(graph));
}

/// An executable graph takes over the parameters of another graph of its shape, and of no other.
void updated() {
    const Stage stage;
    const CUstream stream = stage.stream();
    const CUdeviceptr device = stage.device(), other = stage.device();
    const auto captured = [&](CUdeviceptr p, unsigned add, int launches) {
        PLAY(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
        for (int i = 0; i < launches; ++i) stage.launchStep(p, add, stream);
        return finish(stream);
    };
    const CUgraph first = captured(device, 2, 2), second = captured(other, 9, 2),
                  third = captured(other, 9, 3);
    const CUgraphExec exec = instantiated(first);
    PLAY(cuGraphLaunch(exec, stream));
    CUgraphExecUpdateResultInfo info{};
    PLAY(cuGraphExecUpdate_v2(exec, second, &info));
    say("update_result", info.result);
    PLAY(cuGraphLaunch(exec, stream));
    PLAY(cuStreamSynchronize(stream));
    std::vector<unsigned> wanted(kCount), got(kCount);
    stepHere(wanted.data(), 2);
    stepHere(wanted.data(), 2);
    PLAY(cuMemcpyDtoH_v2(got.data(), device, kBytes));
    compare("before_the_update", got.data(), wanted.data());
    wanted.assign(kCount, 0);
    stepHere(wanted.data(), 9);
    stepHere(wanted.data(), 9);
    PLAY(cuMemcpyDtoH_v2(got.data(), other, kBytes));
    compare("after_the_update", got.data(), wanted.data());
    say("update_of_another_shape", cu.cuGraphExecUpdate_v2(exec, third, &info));
    say("update_refused", info.result);
    PLAY(cuGraphExecDestroy(exec));
}

/// What a capture forbids, and to whom.
void capturesForbid() {
    const Stage stage;
    const CUstream stream = stage.stream(), blocking = stage.stream(0);
    const CUdeviceptr device = stage.device();
    CUdeviceptr memory = 0;
    CUgraph graph = nullptr;
    PLAY(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    const CUresult relaxed = cu.cuMemAlloc_v2(&memory, 64);
    say("relaxed_alloc", relaxed);
    say("begin_twice", cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    say("relaxed_end", cu.cuStreamEndCapture(stream, &graph));
    say("end_twice", cu.cuStreamEndCapture(stream, &graph));

    PLAY(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    say("global_synchronize", cu.cuStreamSynchronize(stream));
    CUstreamCaptureStatus status{};
    PLAY(cuStreamIsCapturing(stream, &status));
    say("global_status", status);
    say("global_end", cu.cuStreamEndCapture(stream, &graph));
    say("global_graph", graph == nullptr);

    PLAY(cuStreamBeginCapture_v2(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
    say("legacy_fill", cu.cuMemsetD32Async(device, 1, 4, nullptr));
    say("legacy_end", cu.cuStreamEndCapture(blocking, &graph));

    const CUevent outside = stage.event();
    PLAY(cuEventRecord(outside, blocking));
    PLAY(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    say("isolation", cu.cuStreamWaitEvent(stream, outside, 0));
    say("isolation_end", cu.cuStreamEndCapture(stream, &graph));

    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    PLAY(cuThreadExchangeStreamCaptureMode(&mode));
    say("mode_before", mode);
    PLAY(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    say("alloc_of_a_relaxed_thread", cu.cuMemAlloc_v2(&memory, 64));
    PLAY(cuThreadExchangeStreamCaptureMode(&mode));
    say("mode_then", mode);
    say("alloc_of_the_capturing_thread", cu.cuMemAlloc_v2(&memory, 64));
    say("forbidden_end", cu.cuStreamEndCapture(stream, &graph));
    // After all that the streams work as before.
    PLAY(cuMemsetD32Async(device, 3, kCount, stream));
    PLAY(cuStreamSynchronize(stream));
    say("works_again", cu.cuCtxSynchronize());
}

/// The destructor runs in the program, once nothing refers to the object.
void userObjects() {
    const Stage stage;
    static std::atomic<int> destroyed{0};
    CUuserObject object = nullptr;
    PLAY(cuUserObjectCreate(
        &object, &destroyed, [](void* count) { ++*static_cast<std::atomic<int>*>(count); }, 1,
        CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    CUgraph graph = nullptr;
    PLAY(cuGraphCreate(&graph, 0));
    PLAY(cuGraphRetainUserObject(graph, object, 1, 0));
    PLAY(cuUserObjectRelease(object, 1));
    say("object_kept", destroyed == 0);
    PLAY(cuGraphDestroy(graph));
    for (int i = 0; i < 2000 && destroyed == 0; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    say("object_destroyed", destroyed);
}

/// Child graphs, events of graphs, and memory that a graph allocates.
void partsOfGraphs() {
    const Stage stage;
    const CUstream stream = stage.stream();
    const CUdeviceptr device = stage.device();
    unsigned* const out = stage.pinned(0);
    CUgraph inner = nullptr, outer = nullptr;
    PLAY(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    stage.launchStep(device, 4, stream);
    PLAY(cuMemcpyDtoHAsync_v2(out, device, kBytes, stream));
    PLAY(cuLaunchHostFunc(stream, addOne, out));
    inner = finish(stream);
    PLAY(cuGraphCreate(&outer, 0));
    CUgraphNode first = nullptr, second = nullptr, mark = nullptr;
    const CUevent event = stage.event();
    PLAY(cuGraphAddChildGraphNode(&first, outer, nullptr, 0, inner));
    PLAY(cuGraphAddChildGraphNode(&second, outer, &first, 1, inner));
    PLAY(cuGraphAddEventRecordNode(&mark, outer, &second, 1, event));
    CUgraph child = nullptr;
    PLAY(cuGraphChildGraphNodeGetGraph(first, &child));
    say("child_nodes", static_cast<int>(nodesOf(child)));
    CUevent told = nullptr;
    PLAY(cuGraphEventRecordNodeGetEvent(mark, &told));
    say("child_event", told == event);
    const CUgraphExec exec = instantiated(outer);
    PLAY(cuGraphLaunch(exec, stream));
    PLAY(cuEventSynchronize(event));
    PLAY(cuStreamSynchronize(stream));
    std::vector<unsigned> wanted(kCount);
    stepHere(wanted.data(), 4);
    stepHere(wanted.data(), 4);
    addOne(wanted.data());
    compare("child_graphs", out, wanted.data());

    CUgraph graph = nullptr;
    PLAY(cuGraphCreate(&graph, 0));
    CUDA_MEM_ALLOC_NODE_PARAMS alloc{};
    alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    alloc.bytesize = kBytes;
    CUgraphNode allocation = nullptr, fill = nullptr, copy = nullptr, release = nullptr;
    PLAY(cuGraphAddMemAllocNode(&allocation, graph, nullptr, 0, &alloc));
    say("graph_memory", alloc.dptr != 0);
    const CUDA_MEMSET_NODE_PARAMS value{alloc.dptr, 0, 77, 4, kCount, 1};
    PLAY(cuGraphAddMemsetNode(&fill, graph, &allocation, 1, &value, stage.context));
    const CUDA_MEMCPY3D outgoing = copyOf(0, out, alloc.dptr, nullptr);
    PLAY(cuGraphAddMemcpyNode(&copy, graph, &fill, 1, &outgoing, stage.context));
    PLAY(cuGraphAddMemFreeNode(&release, graph, &copy, 1, alloc.dptr));
    const CUgraphExec allocating = instantiated(graph);
    PLAY(cuGraphLaunch(allocating, stream));
    PLAY(cuStreamSynchronize(stream));
    compare("graph_memory_filled", out, std::vector<unsigned>(kCount, 77).data());
    PLAY(cuGraphExecDestroy(allocating));
    PLAY(cuGraphDestroy(graph));
}

}  // namespace juice::replays

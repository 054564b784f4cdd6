// Stream capture: what becomes a node, how streams fork and join, and what is refused meanwhile.
#include <thread>
#include <vector>

#include "test/softgpu/driver_work.h"

namespace juice::truth {
namespace {

class Capture : public GraphWorkTest {
  protected:
    CUstream begin(CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED) {
        const CUstream on = stream();
        EXPECT_OK(cuStreamBeginCapture_v2(on, mode));
        return on;
    }

    static CUgraph end(CUstream on) {
        CUgraph graph = nullptr;
        EXPECT_OK(cuStreamEndCapture(on, &graph));
        EXPECT_NE(graph, nullptr);
        return graph;
    }

    static CUstreamCaptureStatus statusOf(CUstream on) {
        CUstreamCaptureStatus status = -1;
        EXPECT_OK(cuStreamIsCapturing(on, &status));
        return status;
    }

    /// Ends a capture that broke.
    static void endBroken(CUstream on) {
        EXPECT_EQ(statusOf(on), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
        CUgraph graph = reinterpret_cast<CUgraph>(1);
        EXPECT_EQ(cuStreamEndCapture(on, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        EXPECT_EQ(graph, nullptr);
        EXPECT_EQ(statusOf(on), CU_STREAM_CAPTURE_STATUS_NONE);
    }
};

TEST_F(Capture, MakesNodesOfWork) {
    Buffer<uint32_t> words({1, 0, 0, 0});
    const CUstream on = begin();
    EXPECT_EQ(statusOf(on), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    add(words.address(), 5, on);
    EXPECT_OK(cuMemcpyDtoDAsync_v2(words.address() + 4, words.address(), 4, on));
    EXPECT_OK(cuMemsetD32Async(words.address() + 8, 9, 1, on));
    const CUgraph graph = end(on);
    EXPECT_EQ(statusOf(on), CU_STREAM_CAPTURE_STATUS_NONE);
    EXPECT_EQ(words.read(), (std::vector<uint32_t>{1, 0, 0, 0})) << "nothing ran";
    const auto made = nodes(graph);
    ASSERT_EQ(made.size(), 3U);
    EXPECT_EQ(typeOf(made[0]), CU_GRAPH_NODE_TYPE_KERNEL);
    EXPECT_EQ(typeOf(made[1]), CU_GRAPH_NODE_TYPE_MEMCPY);
    EXPECT_EQ(typeOf(made[2]), CU_GRAPH_NODE_TYPE_MEMSET);
    const CUgraphExec exec = instantiate(graph);
    for (int i = 0; i < 3; ++i) EXPECT_OK(cuGraphLaunch(exec, on));
    EXPECT_OK(cuStreamSynchronize(on));
    EXPECT_EQ(words.read(), (std::vector<uint32_t>{16, 16, 9, 0}));
    EXPECT_OK(cuGraphExecDestroy(exec));
    EXPECT_OK(cuGraphDestroy(graph));
}

TEST_F(Capture, TakesHostFunctions) {
    static int calls;
    calls = 0;
    const CUstream on = begin();
    EXPECT_OK(cuLaunchHostFunc(
        on, [](void* data) { *static_cast<int*>(data) += 2; }, &calls));
    const CUgraph graph = end(on);
    EXPECT_EQ(calls, 0);
    const CUgraphExec exec = instantiate(graph);
    EXPECT_OK(cuGraphLaunch(exec, on));
    EXPECT_OK(cuGraphLaunch(exec, on));
    EXPECT_OK(cuStreamSynchronize(on));
    EXPECT_EQ(calls, 4);
}

TEST_F(Capture, ForksAndJoinsThroughEvents) {
    Buffer<uint32_t> words({0, 0});
    const CUstream on = begin(), side = stream();
    const CUevent fork = event(), join = event();
    EXPECT_OK(cuEventRecord(fork, on));
    EXPECT_OK(cuStreamWaitEvent(side, fork, 0));
    EXPECT_EQ(statusOf(side), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    add(words.address(), 1, on);
    add(words.address() + 4, 2, side);
    EXPECT_OK(cuEventRecord(join, side));
    EXPECT_OK(cuStreamWaitEvent(on, join, 0));
    EXPECT_OK(cuMemcpyDtoDAsync_v2(words.address(), words.address() + 4, 4, on));
    const CUgraph graph = end(on);
    EXPECT_EQ(statusOf(side), CU_STREAM_CAPTURE_STATUS_NONE);
    const auto made = nodes(graph);
    ASSERT_EQ(made.size(), 3U);
    EXPECT_EQ(dependencies(made[0]).size(), 0U);
    EXPECT_EQ(dependencies(made[1]).size(), 0U);
    EXPECT_EQ(dependencies(made[2]).size(), 2U);
    launchAndWait(instantiate(graph));
    EXPECT_EQ(words.read(), (std::vector<uint32_t>{2, 2}));
}

TEST_F(Capture, IsRefusedWhenAForkIsNotJoined) {
    Buffer<uint32_t> words(1);
    const CUstream on = begin(), side = stream();
    const CUevent fork = event();
    EXPECT_OK(cuEventRecord(fork, on));
    EXPECT_OK(cuStreamWaitEvent(side, fork, 0));
    add(words.address(), 1, side);
    CUgraph graph = reinterpret_cast<CUgraph>(1);
    EXPECT_EQ(cuStreamEndCapture(on, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    EXPECT_EQ(graph, nullptr);
    EXPECT_EQ(statusOf(side), CU_STREAM_CAPTURE_STATUS_NONE);
}

TEST_F(Capture, IsNotMergedWithAnother) {
    const CUstream one = begin(), other = begin();
    const CUevent mark = event();
    EXPECT_OK(cuEventRecord(mark, one));
    EXPECT_EQ(cuStreamWaitEvent(other, mark, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
    CUgraph graph = nullptr;
    cuStreamEndCapture(one, &graph);
    cuStreamEndCapture(other, &graph);
}

TEST_F(Capture, IsIsolatedFromWorkOutside) {
    Buffer<uint32_t> words(1);
    const CUstream outside = stream(), on = begin();
    const CUevent mark = event();
    add(words.address(), 1, outside);
    EXPECT_OK(cuEventRecord(mark, outside));
    EXPECT_EQ(cuStreamWaitEvent(on, mark, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    endBroken(on);
}

TEST_F(Capture, BreaksWhenItsStreamIsWaitedFor) {
    const CUstream on = begin();
    EXPECT_EQ(cuStreamSynchronize(on), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    endBroken(on);
}

TEST_F(Capture, BreaksWhenTheContextIsWaitedFor) {
    const CUstream on = begin();
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    endBroken(on);
}

TEST_F(Capture, LeavesEventsThatCannotBeAsked) {
    const CUstream on = begin();
    const CUevent mark = event();
    EXPECT_OK(cuEventRecord(mark, on));
    EXPECT_EQ(cuEventQuery(mark), CUDA_ERROR_CAPTURED_EVENT);
    CUgraph graph = nullptr;
    cuStreamEndCapture(on, &graph);
    EXPECT_OK(cuEventRecord(mark, on));
    EXPECT_OK(cuEventSynchronize(mark)) << "until they are recorded again";
}

TEST_F(Capture, OfAGlobalModeForbidsAllocation) {
    const CUstream on = begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    CUdeviceptr pointer = 0;
    EXPECT_EQ(cuMemAlloc_v2(&pointer, 4), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    endBroken(on);
}

TEST_F(Capture, AllowsAllocationToARelaxedThread) {
    const CUstream on = begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    EXPECT_OK(cuThreadExchangeStreamCaptureMode(&mode));
    CUdeviceptr pointer = 0;
    EXPECT_OK(cuMemAlloc_v2(&pointer, 4));
    EXPECT_OK(cuThreadExchangeStreamCaptureMode(&mode));
    EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_RELAXED);
    end(on);
    EXPECT_OK(cuMemFree_v2(pointer));
}

TEST_F(Capture, EndsOnlyOnItsThread) {
    const CUstream on = begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    std::thread([&] {
        EXPECT_OK(cuCtxSetCurrent(context));
        CUgraph graph = nullptr;
        EXPECT_EQ(cuStreamEndCapture(on, &graph), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    }).join();
    CUgraph graph = nullptr;
    cuStreamEndCapture(on, &graph);
}

TEST_F(Capture, OfABlockingStreamForbidsTheLegacyOne) {
    Buffer<uint32_t> words(1);
    CUstream on = nullptr;
    EXPECT_OK(cuStreamCreate(&on, CU_STREAM_DEFAULT));
    EXPECT_OK(cuStreamBeginCapture_v2(on, CU_STREAM_CAPTURE_MODE_RELAXED));
    CUstreamCaptureStatus status = -1;
    EXPECT_EQ(cuStreamIsCapturing(CU_STREAM_LEGACY, &status), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    EXPECT_EQ(statusOf(on), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT_EQ(cuMemsetD32Async(words.address(), 1, 1, nullptr), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    CUgraph graph = nullptr;
    cuStreamEndCapture(on, &graph);
    EXPECT_OK(cuStreamDestroy_v2(on));
}

TEST_F(Capture, TellsWhatTheNextNodeWillDependOn) {
    Buffer<uint32_t> words(1);
    const CUstream on = begin();
    add(words.address(), 1, on);
    CUstreamCaptureStatus status = -1;
    unsigned long long id = 0;
    CUgraph graph = nullptr;
    const CUgraphNode* next = nullptr;
    size_t count = 0;
    EXPECT_OK(cuStreamGetCaptureInfo_v2(on, &status, &id, &graph, &next, &count));
    EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT_NE(id, 0U);
    ASSERT_EQ(count, 1U);
    const CUgraphNode first = next[0];
    EXPECT_OK(
        cuStreamUpdateCaptureDependencies(on, nullptr, 0, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    add(words.address(), 2, on);
    EXPECT_EQ(end(on), graph);
    const auto made = nodes(graph);
    ASSERT_EQ(made.size(), 2U);
    EXPECT_EQ(made[0], first);
    EXPECT_EQ(dependencies(made[1]).size(), 0U);
    EXPECT_EQ(cuStreamUpdateCaptureDependencies(on, nullptr, 0, 0), CUDA_ERROR_ILLEGAL_STATE);
}

TEST_F(Capture, AddsToAGraphThatExists) {
    Buffer<uint32_t> words(std::vector<uint32_t>{1});
    CUgraph graph = nullptr;
    EXPECT_OK(cuGraphCreate(&graph, 0));
    CUgraphNode first = nullptr;
    EXPECT_OK(cuGraphAddEmptyNode(&first, graph, nullptr, 0));
    const CUstream on = stream();
    EXPECT_OK(
        cuStreamBeginCaptureToGraph(on, graph, &first, nullptr, 1, CU_STREAM_CAPTURE_MODE_RELAXED));
    add(words.address(), 2, on);
    EXPECT_EQ(end(on), graph);
    ASSERT_EQ(nodes(graph).size(), 2U);
    launchAndWait(instantiate(graph));
    EXPECT_EQ(words.read(), std::vector<uint32_t>{3});
}

TEST_F(Capture, TakesNoLaunchesOfGraphs) {
    Buffer<uint32_t> words(std::vector<uint32_t>{1});
    CUstream on = begin();
    add(words.address(), 2, on);
    const CUgraphExec inner = instantiate(end(on));
    EXPECT_OK(cuStreamBeginCapture_v2(on, CU_STREAM_CAPTURE_MODE_RELAXED));
    const CUresult launched = cuGraphLaunch(inner, on);
    CUgraph outer = nullptr;
    const CUresult ended = cuStreamEndCapture(on, &outer);
    // Where launches are not waited for, the end tells.
    EXPECT_EQ(launched == CUDA_SUCCESS ? ended : launched, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT_NE(ended, CUDA_SUCCESS);
    EXPECT_EQ(outer, nullptr);
    EXPECT_OK(cuStreamSynchronize(on));
    EXPECT_EQ(words.read(), std::vector<uint32_t>{1});
}

TEST_F(Capture, TakesAllocations) {
    Buffer<uint32_t> words(std::vector<uint32_t>{1});
    const CUstream on = begin();
    CUdeviceptr inside = 0;
    EXPECT_OK(cuMemAllocAsync(&inside, 64, on));
    EXPECT_OK(cuMemsetD32Async(inside, 21, 16, on));
    EXPECT_OK(cuMemcpyDtoDAsync_v2(words.address(), inside + 60, 4, on));
    EXPECT_OK(cuMemFreeAsync(inside, on));
    const CUgraph graph = end(on);
    const auto made = nodes(graph);
    ASSERT_EQ(made.size(), 4U);
    EXPECT_EQ(typeOf(made[0]), CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    EXPECT_EQ(typeOf(made[3]), CU_GRAPH_NODE_TYPE_MEM_FREE);
    const CUgraphExec exec = instantiate(graph);
    launchAndWait(exec);
    launchAndWait(exec);
    EXPECT_EQ(words.read(), std::vector<uint32_t>{21});
    EXPECT_OK(cuGraphExecDestroy(exec));
}

}  // namespace
}  // namespace juice::truth

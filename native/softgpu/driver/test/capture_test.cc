#include <cstring>

#include "native/softgpu/driver/test/graph_fixture.h"

namespace juice::softgpu {
namespace {

class Captures : public GraphTest {
  protected:
    CUstream capturing(CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED,
                       unsigned flags = CU_STREAM_NON_BLOCKING) {
        const CUstream made = stream(flags);
        EXPECT_OK(cuStreamBeginCapture_v2(made, mode));
        return made;
    }

    static CUgraph end(CUstream stream) {
        CUgraph graph = nullptr;
        EXPECT_OK(cuStreamEndCapture(stream, &graph));
        EXPECT_NE(graph, nullptr);
        return graph;
    }

    /// Ends a capture that has come to this.
    static void endsWith(CUstream stream, CUresult expected) {
        CUgraph graph = reinterpret_cast<CUgraph>(1);
        EXPECT_EQ(cuStreamEndCapture(stream, &graph), expected);
        EXPECT_EQ(graph, nullptr);
        EXPECT_EQ(statusOf(stream), CU_STREAM_CAPTURE_STATUS_NONE);
    }

    void store(CUdeviceptr address, uint32_t value, CUstream on) {
        EXPECT_OK(launch("store", {&address, &value}, on));
    }
    void add(CUdeviceptr address, uint32_t value, CUstream on) {
        EXPECT_OK(launch("add", {&address, &value}, on));
    }
};

TEST_F(Captures, TakeWorkInsteadOfRunningIt) {
    const CUdeviceptr target = word(1);
    const CUstream on = capturing();
    add(target, 2, on);
    EXPECT_EQ(statusOf(on), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    const CUgraph graph = end(on);
    EXPECT_EQ(statusOf(on), CU_STREAM_CAPTURE_STATUS_NONE);
    EXPECT_EQ(read(target), 1U) << "nothing ran";
    const CUgraphExec exec = instantiate(graph);
    for (int i = 0; i < 3; ++i) run(exec);
    EXPECT_EQ(read(target), 7U) << "each launch runs it once";
    EXPECT_OK(cuGraphExecDestroy(exec));
    EXPECT_OK(cuGraphDestroy(graph));
}

TEST_F(Captures, TakeEveryKindOfWorkInItsOrder) {
    const CUdeviceptr a = allocate(16), b = allocate(16);
    auto* host = static_cast<uint32_t*>(const_cast<uint32_t*>(pinnedWord()));
    static int called;
    called = 0;
    const CUevent outside = event();
    const CUstream on = capturing();
    EXPECT_OK(cuMemsetD32Async(a, 5, 4, on));
    EXPECT_OK(cuMemsetD2D8Async(a, 8, 7, 2, 2, on));
    EXPECT_OK(cuMemcpyDtoDAsync_v2(b, a, 16, on));
    EXPECT_OK(cuMemcpyDtoHAsync_v2(host, b + 4, 4, on));
    EXPECT_OK(cuLaunchHostFunc(
        on, [](void* data) { called += *static_cast<int*>(data); }, host));
    EXPECT_OK(cuMemcpyHtoDAsync_v2(a + 12, host, 4, on));
    EXPECT_OK(cuEventRecordWithFlags(outside, on, CU_EVENT_RECORD_EXTERNAL));
    EXPECT_OK(cuStreamWaitEvent(on, outside, CU_EVENT_WAIT_EXTERNAL));
    EXPECT_OK(cuStreamWriteValue32_v2(on, a + 8, 9, 0));
    const CUgraph graph = end(on);
    const std::vector<CUgraphNodeType> expected = {
        CU_GRAPH_NODE_TYPE_MEMSET,       CU_GRAPH_NODE_TYPE_MEMSET,
        CU_GRAPH_NODE_TYPE_MEMCPY,       CU_GRAPH_NODE_TYPE_MEMCPY,
        CU_GRAPH_NODE_TYPE_HOST,         CU_GRAPH_NODE_TYPE_MEMCPY,
        CU_GRAPH_NODE_TYPE_EVENT_RECORD, CU_GRAPH_NODE_TYPE_WAIT_EVENT,
        CU_GRAPH_NODE_TYPE_BATCH_MEM_OP};
    const auto made = nodes(graph);
    ASSERT_EQ(made.size(), expected.size());
    for (size_t i = 0; i < made.size(); ++i) {
        EXPECT_EQ(typeOf(made[i]), expected[i]);
        const auto before = dependencies(made[i]);
        ASSERT_EQ(before.size(), i == 0 ? 0U : 1U);
        if (i > 0) {
            EXPECT_EQ(before[0], made[i - 1]);
        }
    }
    run(instantiate(graph));
    EXPECT_OK(cuEventQuery(outside));
    EXPECT_EQ(called, 5);
    EXPECT_EQ(read(a), 0x00000707U | (5U & 0xffff0000U));
    EXPECT_EQ(read(a + 8), 9U);
    EXPECT_EQ(read(a + 12), 5U);
}

TEST_F(Captures, TellWhatTheyAreAt) {
    const CUdeviceptr target = word();
    const CUstream on = capturing();
    CUstreamCaptureStatus status = -1;
    unsigned long long id = 0, again = 0;
    CUgraph graph = nullptr;
    const CUgraphNode* nodes = nullptr;
    const CUgraphEdgeData* edges = nullptr;
    size_t count = 7;
    EXPECT_OK(cuStreamGetCaptureInfo_v3(on, &status, &id, &graph, &nodes, &edges, &count));
    EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT_NE(id, 0U);
    EXPECT_NE(graph, nullptr);
    EXPECT_EQ(count, 0U);
    store(target, 3, on);
    EXPECT_OK(cuStreamGetCaptureInfo_v2(on, &status, &again, nullptr, &nodes, &count));
    EXPECT_EQ(again, id);
    ASSERT_EQ(count, 1U);
    EXPECT_EQ(typeOf(nodes[0]), CU_GRAPH_NODE_TYPE_KERNEL);
    EXPECT_EQ(end(on), graph);
    EXPECT_OK(cuStreamBeginCapture_v2(on, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT_OK(cuStreamGetCaptureInfo(on, &status, &again));
    EXPECT_NE(again, id) << "each capture has its own";
    end(on);
    id = 42;
    EXPECT_OK(cuStreamGetCaptureInfo(on, &status, &id));
    EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
    EXPECT_EQ(id, 42U) << "nothing is told of a stream that is not captured";
}

TEST_F(Captures, ForkAndJoinThroughEvents) {
    const CUdeviceptr first = word(), second = word();
    const CUstream on = capturing(), side = stream(CU_STREAM_NON_BLOCKING);
    const CUevent fork = event(), join = event();
    store(first, 1, on);
    EXPECT_OK(cuEventRecord(fork, on));
    EXPECT_OK(cuStreamWaitEvent(side, fork, 0));
    EXPECT_EQ(statusOf(side), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    store(second, 2, side);
    add(first, 10, on);
    EXPECT_OK(cuEventRecord(join, side));
    EXPECT_OK(cuStreamWaitEvent(on, join, 0));
    std::vector<void*> parameters = {const_cast<CUdeviceptr*>(&first),
                                     const_cast<CUdeviceptr*>(&second)};
    EXPECT_OK(
        cuLaunchKernel(function("copyFirst"), 1, 1, 1, 1, 1, 1, 0, on, parameters.data(), nullptr));
    const CUgraph graph = end(on);
    EXPECT_EQ(statusOf(side), CU_STREAM_CAPTURE_STATUS_NONE);
    const auto made = nodes(graph);
    ASSERT_EQ(made.size(), 4U);
    EXPECT_EQ(dependencies(made[1]), std::vector{made[0]});
    EXPECT_EQ(dependencies(made[2]), std::vector{made[0]});
    EXPECT_EQ(dependencies(made[3]).size(), 2U);
    run(instantiate(graph));
    EXPECT_EQ(read(first), 2U);
}

TEST_F(Captures, MustBeJoinedAgain) {
    const CUdeviceptr target = word();
    const CUstream on = capturing(), side = stream(CU_STREAM_NON_BLOCKING);
    const CUevent fork = event();
    store(target, 1, on);
    EXPECT_OK(cuEventRecord(fork, on));
    EXPECT_OK(cuStreamWaitEvent(side, fork, 0));
    store(target, 2, side);
    CUgraph graph = nullptr;
    EXPECT_EQ(cuStreamEndCapture(side, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    endsWith(on, isSoftwareGpu() ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                                 : CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    EXPECT_OK(cuStreamBeginCapture_v2(on, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT_OK(cuEventRecord(fork, on));
    EXPECT_OK(cuStreamWaitEvent(side, fork, 0));
    store(target, 2, side);
    endsWith(on, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    EXPECT_EQ(statusOf(side), CU_STREAM_CAPTURE_STATUS_NONE);
}

TEST_F(Captures, AreNotMerged) {
    const CUstream one = capturing(), other = capturing();
    const CUevent mark = event();
    EXPECT_OK(cuEventRecord(mark, one));
    EXPECT_EQ(cuStreamWaitEvent(other, mark, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
    EXPECT_EQ(statusOf(one), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    EXPECT_EQ(statusOf(other), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    endsWith(one, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    endsWith(other, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(Captures, AreIsolatedFromWorkOutside) {
    const CUstream outside = stream(CU_STREAM_NON_BLOCKING), on = capturing();
    const CUevent mark = event();
    EXPECT_OK(cuEventRecord(mark, outside));
    EXPECT_EQ(cuStreamWaitEvent(on, mark, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    endsWith(on, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(Captures, HaveNoStateThatCouldBeAskedFor) {
    const CUevent mark = event();
    for (const auto question : {+[](CUstream on, CUevent) { return cuStreamQuery(on); },
                                +[](CUstream on, CUevent) { return cuStreamSynchronize(on); },
                                +[](CUstream, CUevent) { return cuCtxSynchronize(); },
                                +[](CUstream on, CUevent) {
                                    return cuStreamAddCallback(
                                        on, [](CUstream, CUresult, void*) {}, nullptr, 0);
                                }}) {
        const CUstream on = capturing();
        EXPECT_EQ(question(on, mark), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        EXPECT_EQ(statusOf(on), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
        CUdeviceptr target = 0;
        EXPECT_EQ(cuMemsetD32Async(target, 0, 1, on), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        endsWith(on, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    }
    const CUstream on = capturing();
    EXPECT_OK(cuEventRecord(mark, on));
    EXPECT_EQ(cuEventQuery(mark), CUDA_ERROR_CAPTURED_EVENT);
    endsWith(on, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(cuEventSynchronize(mark), CUDA_ERROR_CAPTURED_EVENT) << "also when it is over";
    EXPECT_OK(cuEventRecord(mark, on));
    EXPECT_OK(cuEventSynchronize(mark));
}

TEST_F(Captures, OfBlockingStreamsForbidTheLegacyStream) {
    const CUdeviceptr target = word();
    const CUstream on = capturing(CU_STREAM_CAPTURE_MODE_RELAXED, CU_STREAM_DEFAULT);
    CUstreamCaptureStatus status = -1;
    EXPECT_EQ(cuStreamIsCapturing(CU_STREAM_LEGACY, &status), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    EXPECT_EQ(statusOf(on), CU_STREAM_CAPTURE_STATUS_ACTIVE) << "asking does no harm";
    EXPECT_EQ(cuMemsetD32Async(target, 1, 1, nullptr), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    endsWith(on, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

    const CUstream apart = capturing();
    EXPECT_OK(cuMemsetD32Async(target, 1, 1, nullptr)) << "a non-blocking one does not";
    end(apart);
}

TEST_F(Captures, ForbidUnsafeCallsByTheirModeAndTheThreads) {
    constexpr auto kGlobal = CU_STREAM_CAPTURE_MODE_GLOBAL;
    constexpr auto kThread = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    constexpr auto kRelaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
    struct Case {
        CUstreamCaptureMode capture, thread;
        bool sameThread;
        CUresult expected;
    };
    const CUresult refused = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    for (const Case& c : {Case{kGlobal, kGlobal, true, refused},
                          {kThread, kGlobal, true, refused},
                          {kRelaxed, kGlobal, true, CUDA_SUCCESS},
                          {kGlobal, kThread, true, refused},
                          {kGlobal, kRelaxed, true, CUDA_SUCCESS},
                          {kGlobal, kGlobal, false, refused},
                          {kThread, kGlobal, false, CUDA_SUCCESS},
                          {kGlobal, kThread, false, CUDA_SUCCESS}}) {
        const CUstream on = capturing(c.capture);
        const auto call = [&] {
            EXPECT_OK(cuCtxSetCurrent(context));
            CUstreamCaptureMode mode = c.thread;
            EXPECT_OK(cuThreadExchangeStreamCaptureMode(&mode));
            CUdeviceptr pointer = 0;
            EXPECT_EQ(cuMemAlloc_v2(&pointer, 4), c.expected)
                << c.capture << " " << c.thread << " " << c.sameThread;
            EXPECT_OK(cuThreadExchangeStreamCaptureMode(&mode));
        };
        if (c.sameThread) {
            call();
        } else {
            std::thread(call).join();
        }
        if (c.expected == CUDA_SUCCESS) {
            end(on);
        } else {
            endsWith(on, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        }
    }
}

TEST_F(Captures, EndWhereTheyBegan) {
    const CUstream on = capturing(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    CUgraph graph = nullptr;
    std::thread([&] {
        EXPECT_OK(cuCtxSetCurrent(context));
        EXPECT_EQ(cuStreamEndCapture(on, &graph), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    }).join();
    end(on);
    EXPECT_OK(cuStreamBeginCapture_v2(on, CU_STREAM_CAPTURE_MODE_RELAXED));
    std::thread([&] {
        EXPECT_OK(cuCtxSetCurrent(context));
        EXPECT_OK(cuStreamEndCapture(on, &graph));
    }).join();
    EXPECT_EQ(cuStreamEndCapture(on, &graph), CUDA_ERROR_ILLEGAL_STATE);
    EXPECT_EQ(cuStreamBeginCapture_v2(nullptr, CU_STREAM_CAPTURE_MODE_RELAXED),
              CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT_EQ(cuStreamBeginCapture_v2(on, 9), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Captures, AddToGraphsThatExist) {
    const CUdeviceptr target = word();
    const CUgraph graph = this->graph();
    const CUgraphNode first = kernelNode(graph, "store", target, 4);
    const CUstream on = stream(CU_STREAM_NON_BLOCKING);
    EXPECT_OK(
        cuStreamBeginCaptureToGraph(on, graph, &first, nullptr, 1, CU_STREAM_CAPTURE_MODE_RELAXED));
    add(target, 3, on);
    CUgraphExec exec = nullptr;
    EXPECT_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_ERROR_INVALID_VALUE)
        << "not before the end";
    EXPECT_EQ(end(on), graph);
    ASSERT_EQ(nodes(graph).size(), 2U);
    EXPECT_EQ(dependencies(nodes(graph)[1]), std::vector{first});
    run(instantiate(graph));
    EXPECT_EQ(read(target), 7U);
}

TEST_F(Captures, TakeOtherDependenciesWhenTold) {
    const CUdeviceptr target = word();
    const CUstream on = capturing();
    EXPECT_EQ(cuStreamUpdateCaptureDependencies(stream(), nullptr, 0, 0), CUDA_ERROR_ILLEGAL_STATE);
    store(target, 1, on);
    CUstreamCaptureStatus status = -1;
    CUgraph graph = nullptr;
    EXPECT_OK(cuStreamGetCaptureInfo_v2(on, &status, nullptr, &graph, nullptr, nullptr));
    CUgraphNode apart = emptyNode(graph);
    EXPECT_OK(cuStreamUpdateCaptureDependencies(on, &apart, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
    add(target, 2, on);
    EXPECT_OK(cuStreamUpdateCaptureDependencies_v2(on, nullptr, nullptr, 0,
                                                   CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    EXPECT_OK(cuMemsetD32Async(allocate(4), 0, 1, on));
    EXPECT_EQ(end(on), graph);
    const auto made = nodes(graph);
    ASSERT_EQ(made.size(), 4U);
    EXPECT_EQ(dependencies(made[2]).size(), 2U);
    EXPECT_EQ(dependencies(made[3]).size(), 0U);
}

TEST_F(Captures, TakeNoGraphLaunches) {
    const CUdeviceptr target = word();
    const CUgraph inner = graph();
    kernelNode(inner, "add", target, 5);
    const CUgraphExec exec = instantiate(inner);
    const CUstream on = capturing();
    EXPECT_EQ(cuGraphLaunch(exec, on), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CUgraph outer = nullptr;
    EXPECT_EQ(cuStreamEndCapture(on, &outer), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(Captures, MarkKernelsThatMayStartEarly) {
    const CUdeviceptr target = word();
    CUdeviceptr address = target;
    uint32_t value = 1;
    std::vector<void*> parameters = {&address, &value};
    const CUstream on = capturing();
    store(target, 1, on);
    CUlaunchAttribute early{};
    early.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    early.value.programmaticStreamSerializationAllowed = 1;
    const CUlaunchConfig config{1, 1, 1, 1, 1, 1, 0, on, &early, 1};
    EXPECT_OK(cuLaunchKernelEx(&config, function("add"), parameters.data(), nullptr));
    const CUgraph graph = end(on);
    const CUgraphNode second = nodes(graph)[1];
    CUgraphNode first = nullptr;
    CUgraphEdgeData data{};
    size_t count = 1;
    EXPECT_EQ(cuGraphNodeGetDependencies(second, &first, &count), CUDA_ERROR_LOSSY_QUERY);
    count = 1;
    EXPECT_OK(cuGraphNodeGetDependencies_v2(second, &first, &data, &count));
    EXPECT_EQ(data.type, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
    EXPECT_EQ(data.from_port, 1);
    run(instantiate(graph));
    EXPECT_EQ(read(target), 2U);
}

TEST_F(Captures, OfDestroyedStreamsAreForgotten) {
    SOFTWARE_GPU_ONLY();
    const CUstream gone = capturing(CU_STREAM_CAPTURE_MODE_GLOBAL);
    EXPECT_OK(cuStreamDestroy_v2(gone));
    CUdeviceptr pointer = 0;
    EXPECT_OK(cuMemAlloc_v2(&pointer, 4));
    EXPECT_OK(cuCtxSynchronize());
}

}  // namespace
}  // namespace juice::softgpu

#include <unistd.h>

#include <atomic>
#include <fstream>
#include <sstream>

#include "native/softgpu/driver/test/graph_fixture.h"

namespace juice::softgpu {
namespace {

using Graphs = GraphTest;

TEST_F(Graphs, AreMadeOfNodesAndEdges) {
    const CUgraph graph = this->graph();
    const CUgraphNode a = emptyNode(graph), b = emptyNode(graph), c = emptyNode(graph, {a});
    EXPECT_EQ(nodes(graph), (std::vector{a, b, c}));
    CUgraphNode roots[4] = {};
    size_t count = 4;
    EXPECT_OK(cuGraphGetRootNodes(graph, roots, &count));
    EXPECT_EQ(count, 2U);
    EXPECT_EQ(roots[0], a);
    EXPECT_EQ(roots[2], nullptr) << "the rest is cleared";
    EXPECT_OK(cuGraphAddDependencies(graph, &b, &c, 1));
    EXPECT_EQ(cuGraphAddDependencies(graph, &b, &c, 1), CUDA_ERROR_INVALID_VALUE) << "there it is";
    EXPECT_EQ(dependencies(c), (std::vector{a, b}));
    CUgraphNode from[2], to[2];
    count = 2;
    EXPECT_OK(cuGraphGetEdges(graph, from, to, &count));
    EXPECT_EQ(count, 2U);
    EXPECT_EQ(to[0], c);
    count = 0;
    EXPECT_OK(cuGraphNodeGetDependentNodes(a, nullptr, &count));
    EXPECT_EQ(count, 1U);
    EXPECT_OK(cuGraphRemoveDependencies(graph, &a, &c, 1));
    EXPECT_EQ(cuGraphRemoveDependencies(graph, &a, &c, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(dependencies(c), std::vector{b});
    EXPECT_OK(cuGraphDestroyNode(b));
    EXPECT_TRUE(dependencies(c).empty());
    EXPECT_EQ(nodes(graph), (std::vector{a, c}));
    EXPECT_OK(cuGraphDestroy(graph));
}

TEST_F(Graphs, RefuseWhatIsNotTheirs) {
    const CUgraph graph = this->graph(), other = this->graph();
    const CUgraphNode mine = emptyNode(graph), foreign = emptyNode(other);
    CUgraphNode node = nullptr;
    EXPECT_EQ(cuGraphAddEmptyNode(&node, graph, &foreign, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuGraphAddDependencies(graph, &mine, &foreign, 1), CUDA_ERROR_INVALID_VALUE);
    const CUgraphNode twice[2] = {mine, mine};
    EXPECT_EQ(cuGraphAddEmptyNode(&node, graph, twice, 2), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuGraphCreate(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
    CUgraph made = nullptr;
    EXPECT_EQ(cuGraphCreate(&made, 1), CUDA_ERROR_INVALID_VALUE);
    if (!isSoftwareGpu()) return;
    EXPECT_OK(cuGraphDestroy(other));
    EXPECT_EQ(cuGraphDestroy(other), CUDA_ERROR_INVALID_VALUE);
    CUgraphNodeType type = 0;
    EXPECT_EQ(cuGraphNodeGetType(foreign, &type), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Graphs, RunEachNodeAfterItsDependencies) {
    const CUdeviceptr a = word(), b = word();
    const CUgraph graph = this->graph();
    // Made in the wrong order on purpose.
    const CUgraphNode last = kernelNode(graph, "add", a, 100);
    const CUgraphNode first = kernelNode(graph, "store", a, 1);
    const CUgraphNode side = kernelNode(graph, "store", b, 9);
    const CUgraphNode middle = kernelNode(graph, "add", a, 10, {first, side});
    EXPECT_OK(cuGraphAddDependencies(graph, &middle, &last, 1));
    const CUgraphExec exec = instantiate(graph);
    for (int i = 0; i < 5; ++i) run(exec);
    EXPECT_EQ(read(a), 111U);
    EXPECT_EQ(read(b), 9U);
}

TEST_F(Graphs, WithCyclesAreNotInstantiated) {
    const CUgraph graph = this->graph();
    const CUgraphNode a = emptyNode(graph), b = emptyNode(graph, {a});
    EXPECT_OK(cuGraphAddDependencies(graph, &b, &a, 1));
    CUDA_GRAPH_INSTANTIATE_PARAMS parameters{};
    CUgraphExec exec = nullptr;
    EXPECT_EQ(cuGraphInstantiateWithParams(&exec, graph, &parameters), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(parameters.result_out, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
    EXPECT_TRUE(parameters.hErrNode_out == a || parameters.hErrNode_out == b);
}

TEST_F(Graphs, GiveTheParametersOfTheirNodesBack) {
    const CUdeviceptr target = word();
    const CUgraph graph = this->graph();
    const CUgraphNode kernel = kernelNode(graph, "store", target, 77);
    CUDA_KERNEL_NODE_PARAMS launch{};
    EXPECT_OK(cuGraphKernelNodeGetParams_v2(kernel, &launch));
    EXPECT_EQ(launch.func, function("store"));
    EXPECT_EQ(launch.blockDimX, 1U);
    ASSERT_NE(launch.kernelParams, nullptr);
    EXPECT_EQ(*static_cast<CUdeviceptr*>(launch.kernelParams[0]), target);
    EXPECT_EQ(*static_cast<uint32_t*>(launch.kernelParams[1]), 77U);
    uint32_t other = 78;
    CUdeviceptr address = target;
    std::vector<void*> parameters = {&address, &other};
    launch = one("store", parameters);
    EXPECT_OK(cuGraphKernelNodeSetParams_v2(kernel, &launch));

    const CUDA_MEMSET_NODE_PARAMS fill{target, 0, 5, 4, 1, 1};
    CUgraphNode node = nullptr;
    EXPECT_OK(cuGraphAddMemsetNode(&node, graph, nullptr, 0, &fill, context));
    CUDA_MEMSET_NODE_PARAMS told{};
    EXPECT_OK(cuGraphMemsetNodeGetParams(node, &told));
    EXPECT_EQ(told.dst, target);
    EXPECT_EQ(told.value, 5U);
    EXPECT_OK(cuGraphAddDependencies(graph, &node, &kernel, 1));
    EXPECT_EQ(cuGraphKernelNodeGetParams_v2(node, &launch), CUDA_ERROR_INVALID_VALUE)
        << "another type";

    run(instantiate(graph));
    EXPECT_EQ(read(target), 78U);
    uint32_t value = 0;
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = target;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = &value;
    copy.WidthInBytes = 4;
    copy.Height = copy.Depth = 1;
    EXPECT_OK(cuGraphAddMemcpyNode(&node, graph, &kernel, 1, &copy, context));
    CUDA_MEMCPY3D back{};
    EXPECT_OK(cuGraphMemcpyNodeGetParams(node, &back));
    EXPECT_EQ(back.srcDevice, target);
    EXPECT_EQ(back.dstHost, &value);
    run(instantiate(graph));
    EXPECT_EQ(value, 78U);
}

TEST_F(Graphs, CallHostFunctionsAndEvents) {
    static int calls;
    calls = 0;
    const CUgraph graph = this->graph();
    const CUDA_HOST_NODE_PARAMS host{[](void* data) { *static_cast<int*>(data) += 1; }, &calls};
    CUgraphNode call = nullptr, record = nullptr;
    const CUevent mark = event();
    EXPECT_OK(cuGraphAddHostNode(&call, graph, nullptr, 0, &host));
    EXPECT_OK(cuGraphAddEventRecordNode(&record, graph, &call, 1, mark));
    CUevent told = nullptr;
    EXPECT_OK(cuGraphEventRecordNodeGetEvent(record, &told));
    EXPECT_EQ(told, mark);
    volatile uint32_t* gate = pinnedWord();
    const CUstream on = stream(CU_STREAM_NON_BLOCKING), after = stream(CU_STREAM_NON_BLOCKING);
    spin(gate, on);
    EXPECT_OK(cuGraphLaunch(instantiate(graph), on));
    EXPECT_EQ(cuEventQuery(mark), CUDA_ERROR_NOT_READY) << "from the launch on";
    EXPECT_OK(cuStreamWaitEvent(after, mark, 0));
    giveItTime();
    EXPECT_EQ(cuStreamQuery(after), CUDA_ERROR_NOT_READY);
    EXPECT_EQ(calls, 0);
    *gate = 1;
    EXPECT_OK(cuStreamSynchronize(after));
    EXPECT_EQ(calls, 1);
}

TEST_F(Graphs, WaitForEventsWithoutHoldingBackWhatIsIndependent) {
    const CUgraph graph = this->graph();
    const CUdeviceptr target = word();
    volatile uint32_t* gate = pinnedWord();
    volatile uint32_t* seen = pinnedWord();
    const CUevent mark = event();
    const CUstream busy = stream(CU_STREAM_NON_BLOCKING), on = stream(CU_STREAM_NON_BLOCKING);
    spin(gate, busy);
    EXPECT_OK(cuEventRecord(mark, busy));
    CUgraphNode wait = nullptr;
    EXPECT_OK(cuGraphAddEventWaitNode(&wait, graph, nullptr, 0, mark));
    kernelNode(graph, "store", target, 5, {wait});
    kernelNode(graph, "store", reinterpret_cast<CUdeviceptr>(seen), 1);
    EXPECT_OK(cuGraphLaunch(instantiate(graph), on));
    EXPECT_TRUE(eventually([&] { return *seen == 1; }));
    EXPECT_EQ(cuStreamQuery(on), CUDA_ERROR_NOT_READY);
    *gate = 1;
    EXPECT_OK(cuStreamSynchronize(on));
    EXPECT_EQ(read(target), 5U);
}

TEST_F(Graphs, WaitForAndWriteValues) {
    const CUgraph graph = this->graph();
    const CUdeviceptr target = word();
    volatile uint32_t* flag = pinnedWord();
    CUstreamBatchMemOpParams ops[2] = {};
    ops[0].waitValue = {CU_STREAM_MEM_OP_WAIT_VALUE_32,
                        reinterpret_cast<CUdeviceptr>(flag),
                        {3},
                        CU_STREAM_WAIT_VALUE_EQ,
                        0};
    ops[1].writeValue = {CU_STREAM_MEM_OP_WRITE_VALUE_32, target, {8}, 0, 0};
    const CUDA_BATCH_MEM_OP_NODE_PARAMS memops{context, 2, ops, 0};
    CUgraphNode node = nullptr;
    EXPECT_OK(cuGraphAddBatchMemOpNode(&node, graph, nullptr, 0, &memops));
    CUDA_BATCH_MEM_OP_NODE_PARAMS told{};
    EXPECT_OK(cuGraphBatchMemOpNodeGetParams(node, &told));
    EXPECT_EQ(told.count, 2U);
    EXPECT_EQ(told.paramArray[1].writeValue.value, 8U);
    const CUstream on = stream(CU_STREAM_NON_BLOCKING);
    EXPECT_OK(cuGraphLaunch(instantiate(graph), on));
    giveItTime();
    EXPECT_EQ(cuStreamQuery(on), CUDA_ERROR_NOT_READY);
    *flag = 3;
    EXPECT_OK(cuStreamSynchronize(on));
    EXPECT_EQ(read(target), 8U);
}

TEST_F(Graphs, AreCopiedWithAllInThem) {
    const CUdeviceptr target = word();
    const CUgraph inner = graph(), original = graph();
    kernelNode(inner, "add", target, 5);
    CUgraphNode child = nullptr;
    EXPECT_OK(cuGraphAddChildGraphNode(&child, original, nullptr, 0, inner));
    const CUgraphNode last = kernelNode(original, "add", target, 1, {child});
    CUgraph clone = nullptr;
    EXPECT_OK(cuGraphClone(&clone, original));
    CUgraphNode found = nullptr;
    EXPECT_OK(cuGraphNodeFindInClone(&found, last, clone));
    EXPECT_NE(found, last);
    EXPECT_EQ(typeOf(found), CU_GRAPH_NODE_TYPE_KERNEL);
    EXPECT_OK(cuGraphDestroyNode(found));
    EXPECT_EQ(cuGraphNodeFindInClone(&found, last, clone), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(nodes(original).size(), 2U) << "the original stays";
    EXPECT_OK(cuGraphDestroy(original));
    EXPECT_OK(cuGraphDestroy(inner));
    run(instantiate(clone));
    EXPECT_EQ(read(target), 5U);
}

TEST_F(Graphs, InsideOthersCanBeChangedThere) {
    const CUdeviceptr target = word();
    const CUgraph inner = graph(), outer = graph();
    kernelNode(inner, "add", target, 5);
    CUgraphNode child = nullptr;
    EXPECT_OK(cuGraphAddChildGraphNode(&child, outer, nullptr, 0, inner));
    CUgraph embedded = nullptr;
    EXPECT_OK(cuGraphChildGraphNodeGetGraph(child, &embedded));
    EXPECT_NE(embedded, inner) << "it was copied";
    EXPECT_EQ(nodes(embedded).size(), 1U);
    kernelNode(embedded, "add", target, 20, {nodes(embedded)[0]});
    run(instantiate(outer));
    EXPECT_EQ(read(target), 25U);
    if (isSoftwareGpu()) {
        EXPECT_EQ(cuGraphDestroy(embedded), CUDA_ERROR_INVALID_VALUE) << "it belongs to its node";
    }
}

TEST_F(Graphs, TakeNodesOfAnyTypeInOneWay) {
    const CUdeviceptr target = word();
    const CUgraph graph = this->graph();
    CUdeviceptr address = target;
    uint32_t value = 6;
    std::vector<void*> arguments = {&address, &value};
    CUgraphNodeParams parameters{};
    parameters.type = CU_GRAPH_NODE_TYPE_KERNEL;
    parameters.kernel.func = function("add");
    parameters.kernel.gridDimX = parameters.kernel.gridDimY = parameters.kernel.gridDimZ = 1;
    parameters.kernel.blockDimX = parameters.kernel.blockDimY = parameters.kernel.blockDimZ = 1;
    parameters.kernel.kernelParams = arguments.data();
    CUgraphNode kernel = nullptr, fill = nullptr;
    EXPECT_OK(cuGraphAddNode_v2(&kernel, graph, nullptr, nullptr, 0, &parameters));
    CUgraphNodeParams memset{};
    memset.type = CU_GRAPH_NODE_TYPE_MEMSET;
    memset.memset = {target, 0, 2, 4, 1, 1, context};
    EXPECT_OK(cuGraphAddNode(&fill, graph, nullptr, 0, &memset));
    EXPECT_OK(cuGraphAddDependencies(graph, &fill, &kernel, 1));
    value = 7;
    EXPECT_OK(cuGraphNodeSetParams(kernel, &parameters));
    EXPECT_EQ(cuGraphNodeSetParams(kernel, &memset), CUDA_ERROR_INVALID_VALUE) << "another type";
    run(instantiate(graph));
    EXPECT_EQ(read(target), 9U);
}

TEST_F(Graphs, KeepTheAttributesOfTheirKernels) {
    const CUdeviceptr target = word();
    const CUgraph graph = this->graph();
    const CUgraphNode a = kernelNode(graph, "store", target, 1),
                      b = kernelNode(graph, "add", target, 1);
    CUkernelNodeAttrValue value{};
    EXPECT_OK(cuGraphKernelNodeGetAttribute(a, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
    EXPECT_EQ(value.cooperative, 0);
    value.cooperative = 1;
    EXPECT_OK(cuGraphKernelNodeSetAttribute(a, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
    EXPECT_OK(cuGraphKernelNodeCopyAttributes(b, a));
    value = {};
    EXPECT_OK(cuGraphKernelNodeGetAttribute(b, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
    EXPECT_EQ(value.cooperative, 1);
}

TEST_F(Graphs, CanBePrinted) {
    const CUgraph graph = this->graph();
    const CUgraphNode first = kernelNode(graph, "store", word(), 1);
    emptyNode(graph, {first});
    const std::string path = "graph_" + std::to_string(getpid()) + ".dot";
    EXPECT_OK(cuGraphDebugDotPrint(graph, path.c_str(), CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE));
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    unlink(path.c_str());
    EXPECT_EQ(text.str().rfind("digraph", 0), 0U);
    EXPECT_NE(text.str().find("store"), std::string::npos);
    EXPECT_NE(text.str().find("->"), std::string::npos);
    EXPECT_EQ(cuGraphDebugDotPrint(graph, "/no/such/place", 0), CUDA_ERROR_OPERATING_SYSTEM);
}

TEST_F(Graphs, KeepUserObjectsAlive) {
    static std::atomic<int> gone;
    gone = 0;
    const auto destroy = [](void* data) { gone = *static_cast<int*>(data); };
    static int mark = 3;
    CUuserObject object = nullptr;
    EXPECT_EQ(cuUserObjectCreate(&object, &mark, destroy, 1, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_OK(cuUserObjectCreate(&object, &mark, destroy, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    const CUgraph graph = this->graph();
    EXPECT_OK(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
    const CUgraphExec exec = instantiate(graph);
    EXPECT_OK(cuGraphDestroy(graph));
    giveItTime();
    EXPECT_EQ(gone, 0) << "the executable graph holds it";
    EXPECT_OK(cuGraphExecDestroy(exec));
    EXPECT_TRUE(eventually([] { return gone == 3; }));
}

}  // namespace
}  // namespace juice::softgpu

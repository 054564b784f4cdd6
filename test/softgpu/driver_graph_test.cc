// Graphs that are built node by node, and executable graphs that change.
#include <vector>

#include "test/softgpu/driver_work.h"

namespace juice::truth {
namespace {

class Graph : public GraphWorkTest {
  protected:
    static CUgraph graph() {
        CUgraph made = nullptr;
        EXPECT_OK(cuGraphCreate(&made, 0));
        return made;
    }

    CUgraphNode adding(CUgraph graph, CUdeviceptr address, uint32_t value,
                       const std::vector<CUgraphNode>& after = {}) const {
        void* arguments[] = {&address, &value};
        const CUDA_KERNEL_NODE_PARAMS kernel = one(arguments);
        CUgraphNode node = nullptr;
        EXPECT_OK(cuGraphAddKernelNode_v2(&node, graph, after.data(), after.size(), &kernel));
        return node;
    }

    CUDA_KERNEL_NODE_PARAMS one(void** arguments) const {
        return {adder(), 1, 1, 1, 1, 1, 1, 0, arguments, nullptr, nullptr, nullptr};
    }

    CUgraphNode setting(CUgraph graph, CUdeviceptr address, uint32_t value,
                        const std::vector<CUgraphNode>& after = {}) const {
        const CUDA_MEMSET_NODE_PARAMS fill{address, 0, value, 4, 1, 1};
        CUgraphNode node = nullptr;
        EXPECT_OK(cuGraphAddMemsetNode(&node, graph, after.data(), after.size(), &fill, context));
        return node;
    }
};

TEST_F(Graph, RunsEachNodeAfterItsDependencies) {
    Buffer<uint32_t> words(1);
    const CUgraph graph = this->graph();
    // Made in the wrong order on purpose.
    const CUgraphNode last = adding(graph, words.address(), 100);
    const CUgraphNode first = setting(graph, words.address(), 1);
    const CUgraphNode middle = adding(graph, words.address(), 10, {first});
    EXPECT_OK(cuGraphAddDependencies(graph, &middle, &last, 1));
    const CUgraphExec exec = instantiate(graph);
    for (int i = 0; i < 3; ++i) launchAndWait(exec);
    EXPECT_EQ(words.read(), std::vector<uint32_t>{111});
    EXPECT_OK(cuGraphExecDestroy(exec));
    EXPECT_OK(cuGraphDestroy(graph));
}

TEST_F(Graph, TellsItsNodesAndEdges) {
    Buffer<uint32_t> words(1);
    const CUgraph graph = this->graph();
    const CUgraphNode a = setting(graph, words.address(), 1);
    const CUgraphNode b = adding(graph, words.address(), 1, {a});
    size_t count = 0;
    EXPECT_OK(cuGraphGetEdges(graph, nullptr, nullptr, &count));
    ASSERT_EQ(count, 1U);
    CUgraphNode from = nullptr, to = nullptr;
    EXPECT_OK(cuGraphGetEdges(graph, &from, &to, &count));
    EXPECT_EQ(from, a);
    EXPECT_EQ(to, b);
    CUgraphNode roots[2] = {};
    count = 2;
    EXPECT_OK(cuGraphGetRootNodes(graph, roots, &count));
    EXPECT_EQ(count, 1U);
    EXPECT_EQ(roots[0], a);
    EXPECT_EQ(roots[1], nullptr);
    EXPECT_OK(cuGraphRemoveDependencies(graph, &a, &b, 1));
    EXPECT_TRUE(dependencies(b).empty());
    EXPECT_OK(cuGraphDestroyNode(a));
    EXPECT_EQ(nodes(graph), std::vector{b});
}

TEST_F(Graph, GivesTheParametersOfNodesBack) {
    Buffer<uint32_t> words(1);
    const CUgraph graph = this->graph();
    const CUgraphNode kernel = adding(graph, words.address(), 77);
    CUDA_KERNEL_NODE_PARAMS launch{};
    EXPECT_OK(cuGraphKernelNodeGetParams_v2(kernel, &launch));
    EXPECT_EQ(launch.func, adder());
    ASSERT_NE(launch.kernelParams, nullptr);
    EXPECT_EQ(*static_cast<uint32_t*>(launch.kernelParams[1]), 77U);
    const CUgraphNode fill = setting(graph, words.address(), 5);
    CUDA_MEMSET_NODE_PARAMS told{};
    EXPECT_OK(cuGraphMemsetNodeGetParams(fill, &told));
    EXPECT_EQ(told.dst, words.address());
    EXPECT_EQ(told.value, 5U);
    EXPECT_EQ(told.elementSize, 4U);
}

TEST_F(Graph, IsNotInstantiatedWithACycle) {
    Buffer<uint32_t> words(1);
    const CUgraph graph = this->graph();
    const CUgraphNode a = setting(graph, words.address(), 1);
    const CUgraphNode b = adding(graph, words.address(), 1, {a});
    // A driver may refuse the edge already.
    if (cuGraphAddDependencies(graph, &b, &a, 1) != CUDA_SUCCESS) return;
    CUgraphExec exec = nullptr;
    EXPECT_NE(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
}

TEST_F(Graph, IsCopiedWithItsNodes) {
    Buffer<uint32_t> words(1);
    const CUgraph graph = this->graph();
    const CUgraphNode first = setting(graph, words.address(), 3);
    const CUgraphNode second = adding(graph, words.address(), 4, {first});
    CUgraph clone = nullptr;
    EXPECT_OK(cuGraphClone(&clone, graph));
    CUgraphNode found = nullptr;
    EXPECT_OK(cuGraphNodeFindInClone(&found, second, clone));
    EXPECT_NE(found, second);
    EXPECT_EQ(typeOf(found), CU_GRAPH_NODE_TYPE_KERNEL);
    EXPECT_OK(cuGraphDestroy(graph));
    launchAndWait(instantiate(clone));
    EXPECT_EQ(words.read(), std::vector<uint32_t>{7});
}

TEST_F(Graph, RunsAnotherInside) {
    Buffer<uint32_t> words(1);
    const CUgraph inner = graph(), outer = graph();
    adding(inner, words.address(), 5);
    CUgraphNode child = nullptr;
    const CUgraphNode first = setting(outer, words.address(), 1);
    EXPECT_OK(cuGraphAddChildGraphNode(&child, outer, &first, 1, inner));
    EXPECT_OK(cuGraphDestroy(inner));
    CUgraph embedded = nullptr;
    EXPECT_OK(cuGraphChildGraphNodeGetGraph(child, &embedded));
    EXPECT_EQ(nodes(embedded).size(), 1U);
    launchAndWait(instantiate(outer));
    EXPECT_EQ(words.read(), std::vector<uint32_t>{6});
}

TEST_F(Graph, RecordsEvents) {
    Buffer<uint32_t> words(1);
    const CUgraph graph = this->graph();
    const CUevent mark = event();
    const CUgraphNode first = setting(graph, words.address(), 1);
    CUgraphNode record = nullptr;
    EXPECT_OK(cuGraphAddEventRecordNode(&record, graph, &first, 1, mark));
    CUevent told = nullptr;
    EXPECT_OK(cuGraphEventRecordNodeGetEvent(record, &told));
    EXPECT_EQ(told, mark);
    volatile uint32_t* gate = pinnedWord();
    const CUstream on = stream();
    const CUgraphExec exec = instantiate(graph);
    EXPECT_OK(cuGraphUpload(exec, on));
    EXPECT_OK(cuStreamSynchronize(on));
    spin(gate, on);
    EXPECT_OK(cuGraphLaunch(exec, on));
    EXPECT_EQ(cuEventQuery(mark), CUDA_ERROR_NOT_READY);
    *gate = 1;
    EXPECT_OK(cuEventSynchronize(mark));
    EXPECT_EQ(words.read(), std::vector<uint32_t>{1});
}

TEST_F(Graph, IsNotChangedByWhatComesAfterItsInstantiation) {
    Buffer<uint32_t> words(1);
    const CUgraph graph = this->graph();
    const CUgraphNode node = adding(graph, words.address(), 1);
    const CUgraphExec exec = instantiate(graph);
    adding(graph, words.address(), 10, {node});
    launchAndWait(exec);
    EXPECT_EQ(words.read(), std::vector<uint32_t>{1});
}

TEST_F(Graph, TakesNewParametersOfKernels) {
    Buffer<uint32_t> words({0, 0});
    const CUgraph graph = this->graph();
    const CUgraphNode node = adding(graph, words.address(), 1);
    const CUgraphExec exec = instantiate(graph);
    CUdeviceptr address = words.address() + 4;
    uint32_t value = 50;
    void* arguments[] = {&address, &value};
    const CUDA_KERNEL_NODE_PARAMS kernel = one(arguments);
    EXPECT_OK(cuGraphExecKernelNodeSetParams_v2(exec, node, &kernel));
    launchAndWait(exec);
    EXPECT_EQ(words.read(), (std::vector<uint32_t>{0, 50}));
}

TEST_F(Graph, SwitchesNodesOffAndOn) {
    Buffer<uint32_t> words(1);
    const CUgraph graph = this->graph();
    const CUgraphNode node = adding(graph, words.address(), 1);
    adding(graph, words.address(), 10, {node});
    const CUgraphExec exec = instantiate(graph);
    EXPECT_OK(cuGraphNodeSetEnabled(exec, node, 0));
    unsigned enabled = 1;
    EXPECT_OK(cuGraphNodeGetEnabled(exec, node, &enabled));
    EXPECT_EQ(enabled, 0U);
    launchAndWait(exec);
    EXPECT_EQ(words.read(), std::vector<uint32_t>{10});
    EXPECT_OK(cuGraphNodeSetEnabled(exec, node, 1));
    launchAndWait(exec);
    EXPECT_EQ(words.read(), std::vector<uint32_t>{21});
}

TEST_F(Graph, IsUpdatedFromOneOfTheSameShape) {
    Buffer<uint32_t> words(1);
    const auto make = [&](uint32_t first, uint32_t second) {
        const CUgraph graph = this->graph();
        adding(graph, words.address(), second, {setting(graph, words.address(), first)});
        return graph;
    };
    const CUgraphExec exec = instantiate(make(1, 2));
    CUgraphExecUpdateResultInfo info{};
    EXPECT_OK(cuGraphExecUpdate_v2(exec, make(30, 40), &info));
    EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
    launchAndWait(exec);
    EXPECT_EQ(words.read(), std::vector<uint32_t>{70});
    const CUgraph other = make(1, 2);
    setting(other, words.address(), 9);
    EXPECT_EQ(cuGraphExecUpdate_v2(exec, other, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
}

TEST_F(Graph, OwnsMemoryThatTheProgramMayFree) {
    Buffer<uint32_t> words(1);
    const CUgraph graph = this->graph();
    CUDA_MEM_ALLOC_NODE_PARAMS alloc{};
    alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    alloc.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    alloc.bytesize = 4096;
    CUgraphNode node = nullptr;
    EXPECT_OK(cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &alloc));
    ASSERT_NE(alloc.dptr, 0U);
    setting(graph, alloc.dptr, 12, {node});
    const CUgraphExec exec = instantiate(graph);
    const CUstream on = stream();
    EXPECT_OK(cuGraphLaunch(exec, on));
    EXPECT_OK(cuMemcpyDtoDAsync_v2(words.address(), alloc.dptr, 4, on));
    // Where launches are not waited for, the next call that waits tells.
    CUresult again = cuGraphLaunch(exec, on);
    if (again == CUDA_SUCCESS) again = cuStreamSynchronize(on);
    EXPECT_EQ(again, CUDA_ERROR_INVALID_VALUE) << "its memory is still in use";
    EXPECT_OK(cuMemFreeAsync(alloc.dptr, on));
    EXPECT_OK(cuGraphLaunch(exec, on));
    EXPECT_OK(cuMemFreeAsync(alloc.dptr, on));
    EXPECT_OK(cuStreamSynchronize(on));
    EXPECT_EQ(words.read(), std::vector<uint32_t>{12});
    CUgraph clone = nullptr;
    EXPECT_NE(cuGraphClone(&clone, graph), CUDA_SUCCESS);
    EXPECT_OK(cuGraphExecDestroy(exec));
    EXPECT_OK(cuGraphDestroy(graph));
}

}  // namespace
}  // namespace juice::truth

#include "native/softgpu/driver/test/graph_fixture.h"

namespace juice::softgpu {
namespace {

class GraphMemory : public GraphTest {
  protected:
    CUgraphNode alloc(CUgraph graph, size_t size, CUdeviceptr& address,
                      const std::vector<CUgraphNode>& after = {}) const {
        CUDA_MEM_ALLOC_NODE_PARAMS parameters{};
        parameters.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        parameters.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
        parameters.bytesize = size;
        CUgraphNode node = nullptr;
        EXPECT_OK(cuGraphAddMemAllocNode(&node, graph, after.data(), after.size(), &parameters));
        address = parameters.dptr;
        EXPECT_NE(address, 0U);
        return node;
    }

    static CUgraphNode free(CUgraph graph, CUdeviceptr address,
                            const std::vector<CUgraphNode>& after) {
        CUgraphNode node = nullptr;
        EXPECT_OK(cuGraphAddMemFreeNode(&node, graph, after.data(), after.size(), address));
        return node;
    }

    uint64_t used() const {
        uint64_t bytes = 0;
        EXPECT_OK(cuDeviceGetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &bytes));
        return bytes;
    }
};

TEST_F(GraphMemory, IsAllocatedAndFreedInOneGraph) {
    const CUdeviceptr out = word();
    const CUgraph graph = this->graph();
    CUdeviceptr inside = 0;
    const CUgraphNode made = alloc(graph, 4096, inside);
    const CUgraphNode stored = kernelNode(graph, "store", inside, 12, {made});
    CUdeviceptr to = out;
    std::vector<void*> arguments = {&to, &inside};
    CUDA_KERNEL_NODE_PARAMS copy = one("copyFirst", arguments);
    CUgraphNode copied = nullptr;
    EXPECT_OK(cuGraphAddKernelNode_v2(&copied, graph, &stored, 1, &copy));
    const CUgraphNode freed = free(graph, inside, {copied});
    CUdeviceptr told = 0;
    EXPECT_OK(cuGraphMemFreeNodeGetParams(freed, &told));
    EXPECT_EQ(told, inside);
    CUDA_MEM_ALLOC_NODE_PARAMS parameters{};
    EXPECT_OK(cuGraphMemAllocNodeGetParams(made, &parameters));
    EXPECT_EQ(parameters.dptr, inside);
    EXPECT_EQ(parameters.bytesize, 4096U);
    CUgraphNode again = nullptr;
    EXPECT_EQ(cuGraphAddMemFreeNode(&again, graph, &freed, 1, inside), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuGraphAddMemFreeNode(&again, graph, nullptr, 0, out), CUDA_ERROR_INVALID_VALUE);

    const CUgraphExec exec = instantiate(graph);
    CUgraphExec second = nullptr;
    EXPECT_EQ(cuGraphInstantiateWithFlags(&second, graph, 0), CUDA_ERROR_INVALID_VALUE)
        << "one at a time";
    run(exec);
    run(exec);
    EXPECT_EQ(read(out), 12U);
    EXPECT_OK(cuGraphExecDestroy(exec));
    instantiate(graph);

    CUgraph clone = nullptr;
    EXPECT_NE(cuGraphClone(&clone, graph), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphDestroyNode(stored), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuGraphRemoveDependencies(graph, &made, &stored, 1), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(GraphMemory, IsTheProgramsToFreeWhenTheGraphDoesNot) {
    const CUgraph graph = this->graph();
    CUdeviceptr inside = 0;
    const CUgraphNode made = alloc(graph, 4096, inside);
    kernelNode(graph, "store", inside, 12, {made});
    const CUgraphExec exec = instantiate(graph);
    const uint64_t before = used();
    const CUstream on = stream();
    EXPECT_OK(cuGraphLaunch(exec, on));
    EXPECT_OK(cuStreamSynchronize(on));
    EXPECT_GE(used(), before + 4096);
    EXPECT_EQ(read(inside), 12U) << "it can be used behind the graph";
    EXPECT_EQ(cuGraphLaunch(exec, on), CUDA_ERROR_INVALID_VALUE) << "it is still in use";
    EXPECT_OK(cuMemFreeAsync(inside, on));
    EXPECT_OK(cuStreamSynchronize(on));
    EXPECT_OK(cuGraphLaunch(exec, on));
    EXPECT_OK(cuMemFree_v2(inside));
    EXPECT_OK(cuGraphLaunch(exec, on));
    const CUgraph freeing = this->graph();
    free(freeing, inside, {});
    EXPECT_OK(cuGraphLaunch(instantiate(freeing), on));
    EXPECT_OK(cuGraphLaunch(exec, on));
    EXPECT_OK(cuMemFreeAsync(inside, on));
    EXPECT_OK(cuStreamSynchronize(on));
}

TEST_F(GraphMemory, IsFreedByTheNextLaunchWhereAsked) {
    const CUgraph graph = this->graph();
    CUdeviceptr inside = 0;
    const CUgraphNode made = alloc(graph, 4096, inside);
    kernelNode(graph, "store", inside, 9, {made});
    const CUgraphExec exec = instantiate(graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
    for (int i = 0; i < 3; ++i) run(exec);
    EXPECT_EQ(read(inside), 9U);
    EXPECT_OK(cuMemFree_v2(inside));
}

TEST_F(GraphMemory, ComesFromCapturedAllocations) {
    const CUdeviceptr out = word();
    const CUstream on = stream(CU_STREAM_NON_BLOCKING);
    EXPECT_OK(cuStreamBeginCapture_v2(on, CU_STREAM_CAPTURE_MODE_RELAXED));
    CUdeviceptr inside = 0;
    EXPECT_OK(cuMemAllocAsync(&inside, 64, on));
    EXPECT_OK(cuMemsetD32Async(inside, 21, 16, on));
    EXPECT_OK(cuMemcpyDtoDAsync_v2(out, inside + 60, 4, on));
    EXPECT_OK(cuMemFreeAsync(inside, on));
    CUgraph graph = nullptr;
    EXPECT_OK(cuStreamEndCapture(on, &graph));
    const auto made = nodes(graph);
    ASSERT_EQ(made.size(), 4U);
    EXPECT_EQ(typeOf(made[0]), CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    EXPECT_EQ(typeOf(made[3]), CU_GRAPH_NODE_TYPE_MEM_FREE);
    const CUgraphExec exec = instantiate(graph);
    run(exec);
    run(exec);
    EXPECT_EQ(read(out), 21U);
    EXPECT_EQ(cuMemFree_v2(inside), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(GraphMemory, CountsWhatItTakes) {
    uint64_t value = 1;
    EXPECT_EQ(cuDeviceSetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &value),
              CUDA_ERROR_INVALID_VALUE)
        << "a high-water mark can only be reset";
    value = 0;
    EXPECT_OK(cuDeviceSetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &value));
    EXPECT_EQ(cuDeviceSetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &value),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuDeviceGetGraphMemAttribute(device, 99, &value), CUDA_ERROR_INVALID_VALUE);
    EXPECT_OK(cuDeviceGraphMemTrim(device));
    EXPECT_EQ(cuDeviceGraphMemTrim(99), CUDA_ERROR_INVALID_DEVICE);
}

}  // namespace
}  // namespace juice::softgpu

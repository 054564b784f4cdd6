// What the tests of graphs and captures share.
#pragma once

#include "native/softgpu/driver/test/driver_fixture.h"

namespace juice::softgpu {

class GraphTest : public DriverTest {
  protected:
    static CUgraph graph() {
        CUgraph made = nullptr;
        EXPECT_OK(cuGraphCreate(&made, 0));
        return made;
    }

    /// A node of one thread with an address and a number.
    CUgraphNode kernelNode(CUgraph graph, const char* name, CUdeviceptr address, uint32_t value,
                           const std::vector<CUgraphNode>& after = {}) {
        std::vector<void*> parameters = {&address, &value};
        const CUDA_KERNEL_NODE_PARAMS kernel = one(name, parameters);
        CUgraphNode node = nullptr;
        EXPECT_OK(cuGraphAddKernelNode_v2(&node, graph, after.data(), after.size(), &kernel));
        return node;
    }

    CUDA_KERNEL_NODE_PARAMS one(const char* name, std::vector<void*>& parameters) const {
        CUDA_KERNEL_NODE_PARAMS kernel{};
        kernel.func = function(name);
        kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = 1;
        kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
        kernel.kernelParams = parameters.data();
        return kernel;
    }

    static CUgraphNode emptyNode(CUgraph graph, const std::vector<CUgraphNode>& after = {}) {
        CUgraphNode node = nullptr;
        EXPECT_OK(cuGraphAddEmptyNode(&node, graph, after.data(), after.size()));
        return node;
    }

    static CUgraphExec instantiate(CUgraph graph, unsigned long long flags = 0) {
        CUgraphExec exec = nullptr;
        EXPECT_OK(cuGraphInstantiateWithFlags(&exec, graph, flags));
        return exec;
    }

    /// Launches and waits.
    static void run(CUgraphExec exec) {
        EXPECT_OK(cuGraphLaunch(exec, nullptr));
        EXPECT_OK(cuStreamSynchronize(nullptr));
    }

    static std::vector<CUgraphNode> nodes(CUgraph graph) {
        size_t count = 0;
        EXPECT_OK(cuGraphGetNodes(graph, nullptr, &count));
        std::vector<CUgraphNode> all(count);
        EXPECT_OK(cuGraphGetNodes(graph, all.data(), &count));
        return all;
    }

    static std::vector<CUgraphNode> dependencies(CUgraphNode node) {
        size_t count = 0;
        EXPECT_OK(cuGraphNodeGetDependencies(node, nullptr, &count));
        std::vector<CUgraphNode> all(count);
        EXPECT_OK(cuGraphNodeGetDependencies(node, all.data(), &count));
        return all;
    }

    static CUgraphNodeType typeOf(CUgraphNode node) {
        CUgraphNodeType type = -1;
        EXPECT_OK(cuGraphNodeGetType(node, &type));
        return type;
    }

    /// A word of device memory.
    static CUdeviceptr word(uint32_t value = 0) {
        const CUdeviceptr address = allocate(4);
        EXPECT_OK(cuMemsetD32_v2(address, value, 1));
        EXPECT_OK(cuCtxSynchronize());
        return address;
    }

    static CUstreamCaptureStatus statusOf(CUstream stream) {
        CUstreamCaptureStatus status = -1;
        EXPECT_OK(cuStreamIsCapturing(stream, &status));
        return status;
    }
};

}  // namespace juice::softgpu

#include "native/softgpu/driver/test/graph_fixture.h"

namespace juice::softgpu {
namespace {

using GraphExecs = GraphTest;

TEST_F(GraphExecs, ArePartOfTheOrderOfTheirStream) {
    const CUdeviceptr target = word();
    const CUgraph graph = this->graph();
    kernelNode(graph, "add", target, 5);
    const CUgraphExec exec = instantiate(graph);
    volatile uint32_t* gate = pinnedWord();
    const CUstream on = stream();
    spin(gate, on);
    EXPECT_OK(cuGraphUpload(exec, on));
    EXPECT_OK(cuGraphLaunch(exec, on));
    CUdeviceptr address = target;
    uint32_t value = 100;
    EXPECT_OK(launch("store", {&address, &value}, on));
    EXPECT_OK(cuGraphLaunch(exec, on));
    giveItTime();
    EXPECT_EQ(cuStreamQuery(on), CUDA_ERROR_NOT_READY);
    *gate = 1;
    EXPECT_OK(cuStreamSynchronize(on));
    EXPECT_EQ(read(target), 105U);
}

TEST_F(GraphExecs, NeverRunTwiceAtOnce) {
    volatile uint32_t* gate = pinnedWord();
    const CUdeviceptr target = word();
    const CUgraph graph = this->graph();
    kernelNode(graph, "add", target, 1);
    const CUgraphExec exec = instantiate(graph);
    const CUstream first = stream(CU_STREAM_NON_BLOCKING), second = stream(CU_STREAM_NON_BLOCKING);
    spin(gate, first);
    EXPECT_OK(cuGraphLaunch(exec, first));
    EXPECT_OK(cuGraphLaunch(exec, second));
    giveItTime();
    EXPECT_EQ(cuStreamQuery(second), CUDA_ERROR_NOT_READY);
    EXPECT_OK(cuGraphExecDestroy(exec)) << "what is under way goes on";
    *gate = 1;
    EXPECT_OK(cuStreamSynchronize(second));
    EXPECT_EQ(read(target), 2U);
}

TEST_F(GraphExecs, DoNotChangeWithTheirGraph) {
    const CUdeviceptr target = word();
    const CUgraph graph = this->graph();
    const CUgraphNode node = kernelNode(graph, "add", target, 1);
    const CUgraphExec exec = instantiate(graph);
    kernelNode(graph, "add", target, 10, {node});
    run(exec);
    EXPECT_EQ(read(target), 1U);
    EXPECT_OK(cuGraphDestroy(graph));
    run(exec);
    EXPECT_EQ(read(target), 2U);
}

TEST_F(GraphExecs, TakeNewParametersForLaterLaunches) {
    const CUdeviceptr target = word(), elsewhere = word();
    volatile uint32_t* gate = pinnedWord();
    const CUgraph graph = this->graph();
    const CUDA_MEMSET_NODE_PARAMS fill{target, 0, 3, 4, 1, 1};
    CUgraphNode memset = nullptr;
    EXPECT_OK(cuGraphAddMemsetNode(&memset, graph, nullptr, 0, &fill, context));
    const CUgraphNode kernel = kernelNode(graph, "add", target, 1, {memset});
    const CUgraphExec exec = instantiate(graph);
    const CUstream on = stream(CU_STREAM_NON_BLOCKING);
    spin(gate, on);
    EXPECT_OK(cuGraphLaunch(exec, on));
    CUdeviceptr address = elsewhere;
    uint32_t value = 50;
    std::vector<void*> arguments = {&address, &value};
    const CUDA_KERNEL_NODE_PARAMS launch = one("store", arguments);
    EXPECT_OK(cuGraphExecKernelNodeSetParams_v2(exec, kernel, &launch));
    *gate = 1;
    EXPECT_OK(cuStreamSynchronize(on));
    EXPECT_EQ(read(target), 4U) << "what was launched stays as it was";
    EXPECT_EQ(read(elsewhere), 0U);
    run(exec);
    EXPECT_EQ(read(target), 3U);
    EXPECT_EQ(read(elsewhere), 50U);
    CUDA_KERNEL_NODE_PARAMS told{};
    EXPECT_OK(cuGraphKernelNodeGetParams_v2(kernel, &told));
    EXPECT_EQ(told.func, function("add")) << "the node of the graph stays as it was";
    const CUDA_MEMSET_NODE_PARAMS two{target, 8, 3, 4, 1, 2};
    EXPECT_EQ(cuGraphExecMemsetNodeSetParams(exec, memset, &two, context),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuGraphExecKernelNodeSetParams_v2(exec, memset, &launch), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(GraphExecs, SwitchNodesOffAndOn) {
    const CUdeviceptr target = word();
    const CUgraph graph = this->graph();
    const CUgraphNode node = kernelNode(graph, "add", target, 1);
    const CUgraphNode nothing = emptyNode(graph, {node});
    kernelNode(graph, "add", target, 10, {nothing});
    const CUgraphExec exec = instantiate(graph);
    EXPECT_OK(cuGraphNodeSetEnabled(exec, node, 0));
    unsigned enabled = 1;
    EXPECT_OK(cuGraphNodeGetEnabled(exec, node, &enabled));
    EXPECT_EQ(enabled, 0U);
    run(exec);
    EXPECT_EQ(read(target), 10U);
    EXPECT_OK(cuGraphNodeSetEnabled(exec, node, 1));
    run(exec);
    EXPECT_EQ(read(target), 21U);
    EXPECT_EQ(cuGraphNodeSetEnabled(exec, nothing, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(GraphExecs, AreUpdatedFromAGraphOfTheSameShape) {
    const CUdeviceptr target = word();
    const auto make = [&](uint32_t first, uint32_t second) {
        const CUgraph graph = this->graph();
        kernelNode(graph, "add", target, second, {kernelNode(graph, "store", target, first)});
        return graph;
    };
    const CUgraphExec exec = instantiate(make(1, 2));
    CUgraphExecUpdateResultInfo info{};
    EXPECT_OK(cuGraphExecUpdate_v2(exec, make(30, 40), &info));
    EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
    run(exec);
    EXPECT_EQ(read(target), 70U);

    const CUgraph longer = make(1, 2);
    emptyNode(longer);
    EXPECT_EQ(cuGraphExecUpdate_v2(exec, longer, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    EXPECT_EQ(info.errorNode, nullptr);

    const CUgraph apart = this->graph();
    kernelNode(apart, "store", target, 1);
    kernelNode(apart, "add", target, 1);
    EXPECT_EQ(cuGraphExecUpdate_v2(exec, apart, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);

    const CUgraph other = this->graph();
    const CUgraphNode first = kernelNode(other, "store", target, 1);
    const CUgraphNode wrong = emptyNode(other, {first});
    EXPECT_EQ(cuGraphExecUpdate_v2(exec, other, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
    EXPECT_EQ(info.errorNode, wrong);
    run(exec);
    EXPECT_EQ(read(target), 70U) << "what fails changes nothing";
}

TEST_F(GraphExecs, UpdateWhatIsInsideThem) {
    const CUdeviceptr target = word();
    const auto inner = [&](uint32_t value) {
        const CUgraph graph = this->graph();
        kernelNode(graph, "add", target, value);
        return graph;
    };
    const CUgraph outer = graph();
    CUgraphNode child = nullptr;
    EXPECT_OK(cuGraphAddChildGraphNode(&child, outer, nullptr, 0, inner(1)));
    const CUgraphExec exec = instantiate(outer);
    EXPECT_OK(cuGraphExecChildGraphNodeSetParams(exec, child, inner(100)));
    run(exec);
    EXPECT_EQ(read(target), 100U);
    const CUgraph two = inner(1);
    kernelNode(two, "add", target, 1);
    EXPECT_NE(cuGraphExecChildGraphNodeSetParams(exec, child, two), CUDA_SUCCESS);
}

TEST_F(GraphExecs, TellTheirFlags) {
    const CUgraph graph = this->graph();
    emptyNode(graph);
    const CUgraphExec exec = instantiate(graph, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
    unsigned long long flags = 0;
    EXPECT_OK(cuGraphExecGetFlags(exec, &flags));
    EXPECT_EQ(flags, static_cast<unsigned>(CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY));
    CUDA_GRAPH_INSTANTIATE_PARAMS parameters{};
    parameters.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
    parameters.hUploadStream = stream();
    CUgraphExec uploaded = nullptr;
    EXPECT_OK(cuGraphInstantiateWithParams(&uploaded, graph, &parameters));
    EXPECT_EQ(parameters.result_out, CUDA_GRAPH_INSTANTIATE_SUCCESS);
    EXPECT_OK(cuGraphExecGetFlags(uploaded, &flags));
    EXPECT_EQ(flags, 0U);
    EXPECT_EQ(cuGraphInstantiateWithFlags(&uploaded, graph, 1U << 20), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(GraphExecs, RunCooperativeKernels) {
    const CUdeviceptr out = allocate(8);
    const CUstream on = stream(CU_STREAM_NON_BLOCKING);
    EXPECT_OK(cuStreamBeginCapture_v2(on, CU_STREAM_CAPTURE_MODE_RELAXED));
    CUdeviceptr address = out;
    std::vector<void*> arguments = {&address};
    EXPECT_OK(cuLaunchCooperativeKernel(function("workspace"), 1, 1, 1, 1, 1, 1, 0, on,
                                        arguments.data()));
    CUgraph graph = nullptr;
    EXPECT_OK(cuStreamEndCapture(on, &graph));
    run(instantiate(graph));
    EXPECT_NE(read(out) | read(out + 4), 0U) << "it found memory for the grid's barrier";
}

/// countDown(handle, address): takes one from the word and sets the condition to what is left.
constexpr char kCountDown[] = R"(
.version 9.0
.target sm_75
.address_size 64
.extern .func cudaGraphSetConditional (.param .b64 p0, .param .b32 p1);
.visible .entry countDown(.param .u64 countDown_param_0, .param .u64 countDown_param_1)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [countDown_param_0];
    ld.param.u64 %rd2, [countDown_param_1];
    cvta.to.global.u64 %rd3, %rd2;
    ld.global.u32 %r1, [%rd3];
    add.s32 %r2, %r1, -1;
    st.global.u32 [%rd3], %r2;
    {
    .param .b64 a0;
    st.param.b64 [a0], %rd1;
    .param .b32 a1;
    st.param.b32 [a1], %r2;
    call.uni cudaGraphSetConditional, (a0, a1);
    }
    ret;
}
)";

class Conditions : public GraphTest {
  protected:
    CUgraphConditionalHandle condition(CUgraph graph, unsigned initial) {
        CUgraphConditionalHandle handle = 0;
        EXPECT_OK(cuGraphConditionalHandleCreate(&handle, graph, context, initial, 1));
        return handle;
    }

    CUgraphNode node(CUgraph graph, CUgraphConditionalHandle handle,
                     CUgraphConditionalNodeType type, unsigned size, std::vector<CUgraph>& bodies) {
        CUgraphNodeParams parameters{};
        parameters.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
        parameters.conditional.handle = handle;
        parameters.conditional.type = type;
        parameters.conditional.size = size;
        parameters.conditional.ctx = context;
        CUgraphNode made = nullptr;
        EXPECT_OK(cuGraphAddNode_v2(&made, graph, nullptr, nullptr, 0, &parameters));
        bodies.assign(parameters.conditional.phGraph_out,
                      parameters.conditional.phGraph_out + size);
        return made;
    }
};

TEST_F(Conditions, RepeatTheBodyOfAWhile) {
    CUmodule code = nullptr;
    CUfunction countDown = nullptr;
    ASSERT_OK(cuModuleLoadData(&code, kCountDown));
    ASSERT_OK(cuModuleGetFunction(&countDown, code, "countDown"));
    CUdeviceptr left = word(4);
    const CUdeviceptr rounds = word();
    const CUgraph graph = this->graph();
    CUgraphConditionalHandle handle = condition(graph, 1);
    std::vector<CUgraph> bodies;
    node(graph, handle, CU_GRAPH_COND_TYPE_WHILE, 1, bodies);
    std::vector<void*> arguments = {&handle, &left};
    CUDA_KERNEL_NODE_PARAMS kernel = one("store", arguments);
    kernel.func = countDown;
    CUgraphNode inside = nullptr;
    EXPECT_OK(cuGraphAddKernelNode_v2(&inside, bodies[0], nullptr, 0, &kernel));
    kernelNode(bodies[0], "add", rounds, 1, {inside});
    const CUgraphExec exec = instantiate(graph);
    run(exec);
    EXPECT_EQ(read(left), 0U);
    EXPECT_EQ(read(rounds), 4U);
    EXPECT_OK(cuMemsetD32_v2(left, 2, 1));
    run(exec);
    EXPECT_EQ(read(rounds), 6U) << "each launch begins with the default";
    CUgraphExec second = nullptr;
    EXPECT_NE(cuGraphInstantiateWithFlags(&second, graph, 0), CUDA_SUCCESS) << "one at a time";
    CUgraph clone = nullptr;
    EXPECT_NE(cuGraphClone(&clone, graph), CUDA_SUCCESS);
}

TEST_F(Conditions, ChooseBetweenBodies) {
    for (const unsigned value : {0U, 1U, 2U, 9U}) {
        const CUdeviceptr taken = word(50);
        const CUgraph graph = this->graph();
        std::vector<CUgraph> yesNo, cases;
        const CUgraphNode branch =
            node(graph, condition(graph, value), CU_GRAPH_COND_TYPE_IF, 2, yesNo);
        kernelNode(yesNo[0], "add", taken, 100);
        kernelNode(yesNo[1], "add", taken, 200);
        const CUgraphNode choice =
            node(graph, condition(graph, value), CU_GRAPH_COND_TYPE_SWITCH, 3, cases);
        EXPECT_OK(cuGraphAddDependencies(graph, &branch, &choice, 1));
        for (unsigned i = 0; i < 3; ++i) kernelNode(cases[i], "add", taken, i + 1);
        run(instantiate(graph));
        EXPECT_EQ(read(taken), 50 + (value != 0 ? 100 : 200) + (value < 3 ? value + 1 : 0));
    }
}

TEST_F(Conditions, NeedANodeForEachHandle) {
    const CUgraph graph = this->graph();
    emptyNode(graph);
    condition(graph, 0);
    CUDA_GRAPH_INSTANTIATE_PARAMS parameters{};
    CUgraphExec exec = nullptr;
    EXPECT_NE(cuGraphInstantiateWithParams(&exec, graph, &parameters), CUDA_SUCCESS);
    EXPECT_EQ(parameters.result_out, CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED);
}

}  // namespace
}  // namespace juice::softgpu

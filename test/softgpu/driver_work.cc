#include "test/softgpu/driver_work.h"

#include <cstdlib>

namespace juice::truth {
namespace {

constexpr char kKernels[] = R"(
.visible .entry add(.param .u64 add_param_0, .param .u32 add_param_1)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [add_param_0];
    ld.param.u32 %r1, [add_param_1];
    cvta.to.global.u64 %rd2, %rd1;
    ld.global.u32 %r2, [%rd2];
    add.s32 %r3, %r2, %r1;
    st.global.u32 [%rd2], %r3;
    ret;
}

.visible .entry spin(.param .u64 spin_param_0)
{
    .reg .pred %p<2>;
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [spin_param_0];
$L_again:
    ld.volatile.u32 %r1, [%rd1];
    setp.eq.s32 %p1, %r1, 0;
    @%p1 bra $L_again;
    ret;
}
)";

}  // namespace

void WorkTest::SetUp() {
    // Code that is loaded lazily would be loaded in the middle of a capture.
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_OK(cuModuleLoadData(&module_, (head() + kKernels).c_str()));
    ASSERT_OK(cuModuleGetFunction(&add_, module_, "add"));
    ASSERT_OK(cuModuleGetFunction(&spin_, module_, "spin"));
}

void WorkTest::TearDown() {
    for (const CUstream each : streams_) EXPECT_OK(cuStreamDestroy_v2(each));
    for (const CUevent each : events_) EXPECT_OK(cuEventDestroy_v2(each));
    if (module_ != nullptr) {
        EXPECT_OK(cuModuleUnload(module_));
    }
    for (void* each : pinned_) EXPECT_OK(cuMemFreeHost(each));
}

void WorkTest::add(CUdeviceptr address, uint32_t value, CUstream on) const {
    void* parameters[] = {&address, &value};
    EXPECT_OK(cuLaunchKernel(add_, 1, 1, 1, 1, 1, 1, 0, on, parameters, nullptr));
}

void WorkTest::spin(volatile uint32_t* word, CUstream on) const {
    auto address = reinterpret_cast<CUdeviceptr>(word);
    void* parameters[] = {&address};
    EXPECT_OK(cuLaunchKernel(spin_, 1, 1, 1, 1, 1, 1, 0, on, parameters, nullptr));
}

CUstream WorkTest::stream(unsigned flags) {
    CUstream made = nullptr;
    EXPECT_OK(cuStreamCreate(&made, flags));
    streams_.push_back(made);
    return made;
}

CUevent WorkTest::event(unsigned flags) {
    CUevent made = nullptr;
    EXPECT_OK(cuEventCreate(&made, flags));
    events_.push_back(made);
    return made;
}

volatile uint32_t* WorkTest::pinnedWord() {
    void* made = nullptr;
    EXPECT_OK(cuMemHostAlloc(&made, sizeof(uint32_t), 0));
    pinned_.push_back(made);
    auto* word = static_cast<volatile uint32_t*>(made);
    *word = 0;
    return word;
}

std::vector<CUgraphNode> WorkTest::nodes(CUgraph graph) {
    size_t count = 0;
    EXPECT_OK(cuGraphGetNodes(graph, nullptr, &count));
    std::vector<CUgraphNode> all(count);
    if (count > 0) {
        EXPECT_OK(cuGraphGetNodes(graph, all.data(), &count));
    }
    return all;
}

std::vector<CUgraphNode> WorkTest::dependencies(CUgraphNode node) {
    size_t count = 0;
    EXPECT_OK(cuGraphNodeGetDependencies(node, nullptr, &count));
    std::vector<CUgraphNode> all(count);
    if (count > 0) {
        EXPECT_OK(cuGraphNodeGetDependencies(node, all.data(), &count));
    }
    return all;
}

CUgraphNodeType WorkTest::typeOf(CUgraphNode node) {
    CUgraphNodeType type = -1;
    EXPECT_OK(cuGraphNodeGetType(node, &type));
    return type;
}

CUgraphExec WorkTest::instantiate(CUgraph graph) {
    CUgraphExec exec = nullptr;
    EXPECT_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    return exec;
}

void WorkTest::launchAndWait(CUgraphExec exec) {
    EXPECT_OK(cuGraphLaunch(exec, nullptr));
    EXPECT_OK(cuStreamSynchronize(nullptr));
}

void GraphWorkTest::SetUp() {
    WorkTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    CUgraph graph = nullptr;
    NEEDS_CALL(cuGraphCreate(&graph, 0));
    EXPECT_OK(cuGraphDestroy(graph));
}

}  // namespace juice::truth

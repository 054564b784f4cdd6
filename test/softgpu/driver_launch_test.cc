// Truths about the ways to launch a kernel.
#include "test/softgpu/device.h"

namespace juice::truth {
namespace {

class Launches : public DeviceTest {
  protected:
    /// A kernel `keep(out, value)`.
    std::string text() const {
        return head() + R"(
.visible .entry keep(.param .u64 out, .param .u32 value)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [value];
    cvta.to.global.u64 %rd2, %rd1;
    st.global.u32 [%rd2], %r1;
    ret;
}
)";
    }
};

TEST_F(Launches, TakeTheirParametersInABufferAlsoCooperatively) {
    Module module(text());
    Buffer<uint32_t> out(1);
    struct {
        uint64_t out;
        uint32_t value;
    } packed{out.address(), 0};
    size_t size = 12;
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    for (const bool cooperative : {false, true}) {
        packed.value = cooperative ? 7 : 5;
        CUlaunchAttribute attribute{};
        attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        attribute.value.cooperative = cooperative ? 1 : 0;
        CUlaunchConfig config{};
        config.gridDimX = config.gridDimY = config.gridDimZ = 1;
        config.blockDimX = config.blockDimY = config.blockDimZ = 1;
        config.attrs = &attribute;
        config.numAttrs = 1;
        EXPECT_OK(cuLaunchKernelEx(&config, module.function("keep"), nullptr, extra));
        EXPECT_OK(cuCtxSynchronize());
        EXPECT_EQ(out.read(), std::vector<uint32_t>{packed.value});
    }
}

}  // namespace
}  // namespace juice::truth

#include <cstring>
#include <initializer_list>
#include <string>

#include "native/softgpu/driver/test/driver_fixture.h"

namespace juice::softgpu {
namespace {

using Linker = DriverTest;

TEST_F(Linker, MakesOnePtxIntoAnImage) {
    CUlinkState state = nullptr;
    ASSERT_OK(cuLinkCreate_v2(0, nullptr, nullptr, &state));
    std::string ptx = kKernels;
    EXPECT_OK(cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, ptx.data(), ptx.size() + 1, "kernels", 0,
                               nullptr, nullptr));
    void* image = nullptr;
    size_t size = 0;
    EXPECT_OK(cuLinkComplete(state, &image, &size));
    CUmodule loaded = nullptr;
    EXPECT_OK(cuModuleLoadData(&loaded, image));
    EXPECT_OK(cuLinkDestroy(state));
    if (!isSoftwareGpu()) return;
    EXPECT_EQ(cuLinkDestroy(state), CUDA_ERROR_INVALID_HANDLE);
}

constexpr char kUses[] = R"(
.version 9.0
.target sm_75
.address_size 64
.extern .func (.param .b32 result) twice(.param .b32 value);
.extern .global .align 4 .u32 offset;
.global .align 4 .u32 own = 1;
.func (.param .b32 result) helper()
{
    .reg .b32 %r<2>;
    ld.global.u32 %r1, [own];
    st.param.b32 [result], %r1;
    ret;
}
.visible .entry compute(.param .u64 to)
{
    .reg .b32 %r<5>;
    .reg .b64 %rd<2>;
    .param .b32 given;
    .param .b32 got;
    .param .b32 mine;
    ld.param.u64 %rd1, [to];
    mov.u32 %r1, 20;
    st.param.b32 [given], %r1;
    call (got), twice, (given);
    ld.param.b32 %r2, [got];
    call (mine), helper, ();
    ld.param.b32 %r3, [mine];
    ld.global.u32 %r4, [offset];
    add.u32 %r2, %r2, %r3;
    add.u32 %r2, %r2, %r4;
    st.global.u32 [%rd1], %r2;
    ret;
}
)";

constexpr char kDefines[] = R"(
.version 8.0
.target sm_75
.address_size 64
.visible .global .align 4 .u32 offset = 1000;
.global .align 4 .u32 own = 50000;
.func (.param .b32 result) helper()
{
    .reg .b32 %r<2>;
    ld.global.u32 %r1, [own];
    st.param.b32 [result], %r1;
    ret;
}
.visible .func (.param .b32 result) twice(.param .b32 value)
{
    .reg .b32 %r<3>;
    .param .b32 mine;
    ld.param.b32 %r1, [value];
    add.u32 %r1, %r1, %r1;
    call (mine), helper, ();
    ld.param.b32 %r2, [mine];
    add.u32 %r1, %r1, %r2;
    st.param.b32 [result], %r1;
    ret;
}
)";

TEST_F(Linker, ResolvesNamesAcrossInputsAndKeepsEachOnesOwnApart) {
    for (const bool usesFirst : {true, false}) {
        CUlinkState state = nullptr;
        ASSERT_OK(cuLinkCreate_v2(0, nullptr, nullptr, &state));
        const auto add = [&](const char* ptx) {
            EXPECT_OK(cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, const_cast<char*>(ptx),
                                       std::strlen(ptx) + 1, "unit", 0, nullptr, nullptr));
        };
        add(usesFirst ? kUses : kDefines);
        add(usesFirst ? kDefines : kUses);
        void* image = nullptr;
        size_t size = 0;
        ASSERT_OK(cuLinkComplete(state, &image, &size));
        CUmodule loaded = nullptr;
        ASSERT_OK(cuModuleLoadData(&loaded, image));
        EXPECT_OK(cuLinkDestroy(state));
        CUfunction compute = nullptr;
        ASSERT_OK(cuModuleGetFunction(&compute, loaded, "compute"));
        CUdeviceptr word = allocate(4);
        void* parameters[] = {&word};
        EXPECT_OK(cuLaunchKernel(compute, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
        EXPECT_EQ(read(word), 51041U);
    }
}

TEST_F(Linker, RefusesWhatIsMissingTwiceThereOrMachineCode) {
    SOFTWARE_GPU_ONLY();
    const auto link = [](std::initializer_list<const char*> units) {
        CUlinkState state = nullptr;
        EXPECT_OK(cuLinkCreate_v2(0, nullptr, nullptr, &state));
        for (const char* const ptx : units) {
            EXPECT_OK(cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, const_cast<char*>(ptx),
                                       std::strlen(ptx) + 1, "unit", 0, nullptr, nullptr));
        }
        void* image = nullptr;
        const CUresult result = cuLinkComplete(state, &image, nullptr);
        EXPECT_OK(cuLinkDestroy(state));
        return result;
    };
    EXPECT_NE(link({kUses}), CUDA_SUCCESS);
    EXPECT_NE(link({kUses, kDefines, kDefines}), CUDA_SUCCESS);
    CUlinkState state = nullptr;
    ASSERT_OK(cuLinkCreate_v2(0, nullptr, nullptr, &state));
    char elf[] =
        "\x7f"
        "ELF";
    EXPECT_EQ(cuLinkAddData_v2(state, CU_JIT_INPUT_CUBIN, elf, sizeof(elf), "machine", 0, nullptr,
                               nullptr),
              CUDA_ERROR_NOT_SUPPORTED);
    EXPECT_OK(cuLinkDestroy(state));
}

}  // namespace
}  // namespace juice::softgpu

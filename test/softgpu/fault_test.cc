// What kernels may not do: the error that each fault gives, at the next wait and for ever after. A
// fault takes the whole process's context with it, so each runs in a process of its own.
#include <cstdio>
#include <cstdlib>

#include "test/softgpu/device.h"

namespace juice::truth {
namespace {

class Fault : public DeviceTest {
  protected:
    /// Runs the body, 64 threads in a block with %r1 = the thread and %q1 = a buffer of 512 bytes,
    /// and ends the process: with 0 if the launch ends as expected and the error stays.
    [[noreturn]] void run(const std::string& body, CUresult expected,
                          const std::string& before = "") const {
        Module module(head() + before +
                      ".visible .entry k(.param .u64 buffer)\n{\n"
                      ".reg .pred %p<8>; .reg .b32 %r<8>; .reg .b64 %q<16>;\n"
                      "ld.param.u64 %q1, [buffer]; mov.u32 %r1, %tid.x;\n" +
                      body + "\nret;\n}\n");
        if (!module.loaded()) end(1);
        CUdeviceptr buffer = 0, more = 0;
        if (cuMemAlloc_v2(&buffer, 512) != CUDA_SUCCESS) end(1);
        bool right =
            is("the launch", truth::run(module.function("k"), {2}, {64}, 0, buffer), expected);
        right &= is("another wait", cuCtxSynchronize(), expected);
        right &= is("an allocation", cuMemAlloc_v2(&more, 512), expected);
        right &= is("a copy", cuMemcpyDtoH_v2(&more, buffer, 8), expected);
        // What asks nothing of the device goes on.
        CUcontext current = nullptr;
        right &= is("the current context", cuCtxGetCurrent(&current), CUDA_SUCCESS);
        end(right ? 0 : 1);
    }

    void expectFault(const std::string& body, CUresult expected, const std::string& before = "") {
        EXPECT_EXIT(run(body, expected, before), testing::ExitedWithCode(0), "") << body;
    }

  private:
    static bool is(const char* what, CUresult got, CUresult expected) {
        if (got != expected) std::fprintf(stderr, "%s: %d, not %d\n", what, got, expected);
        return got == expected;
    }

    /// Without exit handlers: on a dead context they have nothing left to do.
    [[noreturn]] static void end(int code) {
        std::fflush(nullptr);
        std::_Exit(code);
    }
};

TEST_F(Fault, NoneGivesNone) {
    expectFault("mul.wide.u32 %q2, %r1, 8; add.s64 %q3, %q1, %q2; st.global.u64 [%q3], 1;",
                CUDA_SUCCESS);
}

TEST_F(Fault, NullPointersAreIllegalAddresses) {
    expectFault("mov.u64 %q2, 0; ld.global.u32 %r2, [%q2]; st.global.u32 [%q1], %r2;",
                CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(Fault, WritesThroughGenericAddressesToNothingAreIllegal) {
    expectFault("mov.u64 %q2, 16; st.u32 [%q2], %r1;", CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(Fault, AtomicsOnNothingAreIllegal) {
    expectFault("mov.u64 %q2, 64; atom.global.add.u32 %r2, [%q2], 1; st.global.u32 [%q1], %r2;",
                CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(Fault, OneThreadIsEnough) {
    expectFault("setp.ne.u32 %p1, %r1, 37; @%p1 exit; mov.u64 %q2, 0; st.global.u32 [%q2], %r1;",
                CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(Fault, AddressesInTheMiddleOfAWordAreMisaligned) {
    expectFault("ld.global.u32 %r2, [%q1+2]; st.global.u32 [%q1], %r2;",
                CUDA_ERROR_MISALIGNED_ADDRESS);
}

TEST_F(Fault, VectorsWantTheirWholeSizeAsAlignment) {
    expectFault("st.global.v2.u64 [%q1+8], {%q1, %q1};", CUDA_ERROR_MISALIGNED_ADDRESS);
}

TEST_F(Fault, SharedMemoryEndsWithTheBlocksOwn) {
    expectFault("mov.u32 %r2, s; add.u32 %r2, %r2, 1048576; st.shared.u32 [%r2], %r1;",
                CUDA_ERROR_ILLEGAL_ADDRESS, ".shared .align 4 .b8 s[256];\n");
}

TEST_F(Fault, SharedMemoryWantsAlignmentToo) {
    expectFault("mov.u32 %r2, s; st.shared.u32 [%r2+1], %r1;", CUDA_ERROR_MISALIGNED_ADDRESS,
                ".shared .align 4 .b8 s[256];\n");
}

TEST_F(Fault, TrapsAreFailures) {
    expectFault("setp.eq.u32 %p1, %r1, 5; @%p1 trap;", CUDA_ERROR_LAUNCH_FAILED);
}

TEST_F(Fault, AssertionsSayTheyAre) {
    expectFault(
        "mov.u64 %q2, message; cvta.global.u64 %q3, %q2;\n"
        "{ .param .b64 p0; .param .b64 p1; .param .b32 p2; .param .b64 p3; .param .b64 p4;\n"
        "st.param.b64 [p0], %q3; st.param.b64 [p1], %q3; st.param.b32 [p2], 42;\n"
        "st.param.b64 [p3], %q3; st.param.b64 [p4], 1;\n"
        "call.uni __assertfail, (p0, p1, p2, p3, p4); }",
        CUDA_ERROR_ASSERT,
        ".extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, "
        ".param .b64 c);\n"
        ".global .align 1 .b8 message[4] = {120, 62, 48, 0};\n");
}

TEST_F(Fault, DivisionByZeroIsNone) {
    expectFault("mov.u32 %r2, 0; div.u32 %r3, %r1, %r2; st.global.u32 [%q1], %r3;", CUDA_SUCCESS);
}

TEST_F(Fault, ABarrierDoesNotWaitForThreadsThatHaveEnded) {
    expectFault("setp.lt.u32 %p1, %r1, 40; @%p1 exit; bar.sync 0; st.global.u32 [%q1], %r1;",
                CUDA_SUCCESS);
}

}  // namespace
}  // namespace juice::truth

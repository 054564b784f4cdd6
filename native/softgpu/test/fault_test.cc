// Faults name their place; what the engine lacks is refused at load.
#include "native/softgpu/test/harness.h"

namespace juice::softgpu::test {
namespace {

LaunchResult outcome(const std::string& body, uint64_t address, const std::string& before = "") {
    auto program = load(wrap(body, before));
    TestMemory memory;
    auto* buffer = memory.allocate<uint64_t>(64);
    if (address == 0) address = reinterpret_cast<uint64_t>(buffer);
    return run(launchOf(*program, memory, {2}, {64}, buffer, address));
}

void expectFault(const LaunchResult& result, int code, const std::vector<std::string>& parts) {
    EXPECT_EQ(result.curesult, code);
    for (const std::string& part : parts) {
        EXPECT_NE(result.report.find(part), std::string::npos)
            << result.report << "\nlacks " << part;
    }
}

TEST(Faults, badAddressesGive700AndNameTheThread) {
    expectFault(
        outcome("setp.ne.u32 %p1, %r1, 37; @%p1 exit;\nld.global.u32 %r2, [%rd2];", 0x1000), 700,
        {"0x1128", "4 bytes", "kernel k", "thread (37,0,0)", "PTX line 12", "global access"});
    // Just beyond the end of an allocation.
    auto program = load(wrap("st.global.u64 [%rd1], %rd2;"));
    TestMemory memory;
    auto* buffer = memory.allocate<uint64_t>(64);
    expectFault(run(launchOf(*program, memory, {}, {65}, buffer, buffer)), 700,
                {"thread (64,0,0)", "block (0,0,0)"});
}

TEST(Faults, misalignedAddressesGive716) {
    expectFault(outcome("ld.global.u32 %r2, [%rd2+2];", 0), 716, {"misaligned access of 4 bytes"});
    expectFault(outcome("ld.global.v2.u64 {%rd4, %rd5}, [%rd1+8];", 0), 716, {"16 bytes"});
}

TEST(Faults, sharedAndLocalMemoryEnd) {
    expectFault(
        outcome(".shared .align 4 .b8 s[256]; shl.b32 %r2, %r1, 3; st.shared.u32 [%r2], 1;", 0),
        700, {"shared access of 4 bytes at 0x100", "256 bytes", "thread (32,0,0)"});
    expectFault(outcome(".local .align 4 .b8 l[16]; mov.u32 %r2, 16; st.local.u32 [%r2], 1;", 0),
                700, {"local access"});
}

TEST(Faults, trapsEndTheLaunch) {
    expectFault(outcome("setp.eq.u32 %p1, %r1, 5; @%p1 trap;", 0), 719, {"trap", "thread (5,0,0)"});
}

TEST(Faults, assertionsGive710WithTheirText) {
    const std::string kAssert =
        ".extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, "
        ".param .b64 c) .noreturn;\n"
        ".global .align 1 .b8 message[4] = {120, 62, 48, 0};\n"
        ".global .align 1 .b8 file[4] = {97, 46, 99, 0};\n";
    expectFault(
        outcome(
            "mov.u64 %rd4, message; mov.u64 %rd5, file;\n"
            "{ .param .b64 p0; .param .b64 p1; .param .b32 p2; .param .b64 p3; .param .b64 p4;\n"
            "st.param.b64 [p0], %rd4; st.param.b64 [p1], %rd5; st.param.b32 [p2], 42;\n"
            "st.param.b64 [p3], %rd5; st.param.b64 [p4], 1;\n"
            "call.uni __assertfail, (p0, p1, p2, p3, p4); }",
            0, kAssert),
        710, {"assertion `x>0` failed at a.c:42"});
}

TEST(Faults, doNotTouchWhatOtherLanesWroteBefore) {
    auto program = load(wrap("st.global.u32 [%rd1], 7; bar.sync 0; ld.global.u32 %r2, [%rd2];"));
    TestMemory memory;
    auto* buffer = memory.allocate<uint64_t>(32);
    EXPECT_EQ(run(launchOf(*program, memory, {}, {32}, buffer, uint64_t{16})).curesult, 700);
    for (int i = 0; i < 32; ++i) EXPECT_EQ(buffer[i], 7u);
}

TEST(Refusals, nameLineAndInstruction) {
    auto expect = [](const std::string& body, const std::vector<std::string>& parts) {
        std::string message = refusal(wrap(body));
        for (const std::string& part : parts) {
            EXPECT_NE(message.find(part), std::string::npos) << message << "\nlacks " << part;
        }
    };
    expect("wgmma.fence.sync.aligned;", {"line 11", "wgmma.fence.sync.aligned", "not supported"});
    expect("add.frob.s32 %r2, %r2, %r2;", {".frob"});
    expect("add.s32 %r2, %r2;", {"expected 3 operands, got 2"});
    expect("add.s32 %r2, %rd1, 1;", {".b64 register where .s32 is wanted"});
    expect("bra NOWHERE;", {"unknown label NOWHERE"});
    expect("add.s32 %r2, %r99, 1;", {"%r99"});
    expect("@%r1 bra X; X:", {"%r1 is not a predicate"});
    expect("ld.global.u32 %r2, [nothing];", {"unknown name nothing"});
    expect("tex.2d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [%rd1, {%r1, %r2}];", {"line 11"});
    expect("mov.f32 %f1, 1;", {"an integer where a float is wanted"});
    expect("add.rn.s32 %r2, %r2, 1;", {".rn"});
}

TEST(Refusals, giveTheDriversOwnCodes) {
    LoadError error;
    EXPECT_EQ(Program::load(".version 12.0\n.target sm_90\n", error), nullptr);
    EXPECT_EQ(error.curesult, 222);
    EXPECT_EQ(Program::load(".version 9.1\n.target sm_90\n", error), nullptr);
    EXPECT_EQ(error.curesult, 222);
    EXPECT_EQ(Program::load("\x7f"
                            "ELF",
                            error),
              nullptr);
    EXPECT_EQ(error.curesult, 200);
    EXPECT_EQ(Program::load("hello", error), nullptr);
    EXPECT_EQ(error.curesult, 200);
    EXPECT_EQ(Program::load(".version 9.0\n.target sm_100\n", error), nullptr);
    EXPECT_EQ(error.curesult, 218);
}

TEST(Refusals, rejectLaunchesThatCannotBe) {
    auto program = load(wrap(""));
    TestMemory memory;
    EXPECT_NE(run(launchOf(*program, memory, {}, {1025}, uint64_t{0}, uint64_t{0})).curesult, 0);
    EXPECT_NE(run(launchOf(*program, memory, {0}, {1}, uint64_t{0}, uint64_t{0})).curesult, 0);
}

}  // namespace
}  // namespace juice::softgpu::test

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
    expectFault(outcome("setp.ne.u32 %p1, %r1, 37; @%p1 exit;\nld.global.u32 %r2, [%rd2];", 0x1000),
                700,
                {"error 700 (illegal address): read of 4 bytes of global memory at 0x1128",
                 "null pointer", "kernel k, block (0,0,0), thread (37,0,0) and 1 other\n",
                 "PTX line 12: ld.global.u32 %r2, [%rd2]"});
}

TEST(Faults, nameTheNearestAllocation) {
    auto program = load(wrap("st.global.u64 [%rd1], %rd2;"));
    TestMemory memory;
    auto* buffer = memory.allocate<uint64_t>(64);
    LaunchResult result = run(launchOf(*program, memory, {}, {67}, buffer, buffer));
    char place[32];
    std::snprintf(place, sizeof place, "%p", static_cast<void*>(buffer));
    expectFault(result, 700,
                {"write of 8 bytes",
                 "just past the end of the 512-byte allocation at " + std::string(place),
                 "block (0,0,0), thread (64,0,0) and 2 others\n"});
    result = run(launchOf(*program, memory, {}, {1}, buffer + 66, buffer));
    expectFault(result, 700, {"16 bytes past the end of the 512-byte allocation"});
    // The last of its bytes are missing.
    result =
        run(launchOf(*program, memory, {}, {1}, reinterpret_cast<char*>(buffer) + 508, buffer));
    EXPECT_EQ(result.curesult, 716);
    program = load(wrap("ld.global.v2.u64 {%rd4, %rd5}, [%rd1];"));
    auto* odd = memory.allocate<uint8_t>(24);
    ASSERT_EQ(reinterpret_cast<uint64_t>(odd) % 16, 0u);
    result = run(launchOf(*program, memory, {}, {1}, odd + 16, buffer));
    expectFault(result, 700, {"read of 16 bytes", "16 bytes into the 24-byte allocation"});
}

TEST(Faults, areFoundInWholeWarpsThatRunAcrossAnEnd) {
    auto program = load(wrap("ld.global.u64 %rd4, [%rd2]; st.global.u64 [%rd1], %rd4;"));
    TestMemory memory;
    auto* out = memory.allocate<uint64_t>(96);
    auto* in = memory.allocate<uint64_t>(80);
    for (int i = 0; i < 80; ++i) in[i] = static_cast<uint64_t>(i) + 1;
    expectFault(run(launchOf(*program, memory, {}, {96}, out, in)), 700,
                {"read of 8 bytes", "thread (80,0,0) and 15 others"});
    for (int i = 0; i < 96; ++i) EXPECT_EQ(out[i], i < 80 ? static_cast<uint64_t>(i) + 1 : 0) << i;
    expectFault(run(launchOf(*program, memory, {}, {96}, in, out)), 700,
                {"write of 8 bytes", "thread (80,0,0) and 15 others"});
}

TEST(Faults, misalignedAddressesGive716) {
    expectFault(outcome("ld.global.u32 %r2, [%rd2+2];", 0), 716,
                {"misaligned address", "read of 4 bytes", "not a multiple of 4"});
    expectFault(outcome("ld.global.v2.u64 {%rd4, %rd5}, [%rd1+8];", 0), 716, {"16 bytes"});
    expectFault(
        outcome(".shared .align 4 .b8 s[256]; mov.u32 %r2, s; st.shared.u32 [%r2+1], 1;", 0), 716,
        {"write of 4 bytes of shared memory"});
}

TEST(Faults, sharedAndLocalMemoryEnd) {
    expectFault(
        outcome(".shared .align 4 .b8 s[256]; shl.b32 %r2, %r1, 3; st.shared.u32 [%r2], 1;", 0),
        700,
        {"write of 4 bytes of shared memory at 0x100, beyond the block's 256 bytes",
         "thread (32,0,0) and 63 others"});
    expectFault(outcome(".local .align 4 .b8 l[16]; mov.u32 %r2, 16; st.local.u32 [%r2], 1;", 0),
                700, {"local memory at 0x10, beyond the thread's 16 bytes"});
}

TEST(Faults, genericAddressesFindTheirWindowsEnds) {
    expectFault(
        outcome(".shared .align 8 .b8 s[64]; cvta.shared.u64 %rd4, 64; ld.u32 %r2, [%rd4];", 0),
        700, {"shared memory", "64 bytes"});
    expectFault(outcome("mov.u64 %rd4, 0; ld.u32 %r2, [%rd4+24];", 0), 700,
                {"at 0x18, a null pointer"});
}

TEST(Faults, atomicsOnLocalMemoryGive717) {
    const std::string kBody =
        ".local .align 4 .b8 l[16]; mov.u64 %rd4, l; cvta.local.u64 %rd5, %rd4;\n"
        "atom.add.u32 %r2, [%rd5], 1;";
    expectFault(outcome(kBody, 0), 717,
                {"invalid address space", "atomic operation of 4 bytes of local memory"});
}

TEST(Faults, trapsEndTheLaunch) {
    expectFault(outcome("setp.eq.u32 %p1, %r1, 5; @%p1 trap;", 0), 719,
                {"trap", "thread (5,0,0) and 1 other", "@%p1 trap"});
}

TEST(Faults, callsThroughBadPointersGive718) {
    expectFault(outcome("mov.u64 %rd4, 0; p: .callprototype _ (); call %rd4, (), p;", 0), 718,
                {"invalid program counter", "0x0"});
}

TEST(Faults, endlessRecursionOverflowsTheStack) {
    const std::string kDeep =
        ".func deep(.param .b32 n) { .reg .b32 %a<4>; .reg .pred %q; .local .align 4 .b8 l[64];\n"
        "ld.param.u32 %a1, [n]; add.s32 %a2, %a1, 1; { .param .b32 p0; st.param.b32 [p0], %a2;\n"
        "call.uni deep, (p0); } ret; }\n";
    expectFault(
        outcome("{ .param .b32 p0; st.param.b32 [p0], %r1; call.uni deep, (p0); }", 0, kDeep), 719,
        {"stack overflow", "kernel k in deep"});
}

TEST(Faults, assertionsGive710WithTheirText) {
    const std::string kAssert =
        ".extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, "
        ".param .b64 c) .noreturn;\n"
        ".global .align 1 .b8 message[4] = {120, 62, 48, 0};\n"
        ".global .align 1 .b8 file[4] = {97, 46, 99, 0};\n";
    LaunchResult result = outcome(
        "setp.lt.u32 %p1, %r1, 62; @%p1 exit;\n"
        "mov.u64 %rd4, message; mov.u64 %rd5, file;\n"
        "{ .param .b64 p0; .param .b64 p1; .param .b32 p2; .param .b64 p3; .param .b64 p4;\n"
        "st.param.b64 [p0], %rd4; st.param.b64 [p1], %rd5; st.param.b32 [p2], 42;\n"
        "st.param.b64 [p3], %rd5; st.param.b64 [p4], 1;\n"
        "call.uni __assertfail, (p0, p1, p2, p3, p4); }",
        0, kAssert);
    expectFault(result, 710, {"assertion `x>0` failed at a.c:42", "and 3 others"});
    // The words of CUDA's runtime, a line for each thread.
    for (const char* line :
         {"a.c:42: a.c: block: [0,0,0], thread: [62,0,0] Assertion `x>0` failed.\n",
          "a.c:42: a.c: block: [1,0,0], thread: [63,0,0] Assertion `x>0` failed.\n"}) {
        EXPECT_NE(result.assertions.find(line), std::string::npos) << result.assertions;
    }
}

TEST(Faults, nameTheSourceAndThoseItWasInlinedInto) {
    const std::string kBody =
        ".loc 1 8 3\n.loc 1 4 73, function_name $L__info_string0, inlined_at 1 8 3\n"
        "mov.u64 %rd4, 8;\nld.global.f32 \t%f2, \n [%rd4];\n.loc 1 9 1\n";
    expectFault(outcome(kBody, 0, ".file 1 \"dir/saxpy.cu\", 123, 456\n"), 700,
                {"\n  dir/saxpy.cu:4 in dir/saxpy.cu:8, PTX line ", ": ld.global.f32 %f2, [%rd4]"});
}

TEST(Faults, nameKernelsAsTheirSourceDoes) {
    auto program = load(std::string(kHead) +
                        ".visible .entry _Z5saxpyifPKfPf() { .reg .b64 %a; mov.u64 %a, 8;\n"
                        "st.global.u64 [%a], %a; ret; }");
    TestMemory memory;
    expectFault(run(launchOf(*program, memory, {}, {1})), 700,
                {"kernel saxpy(int, float, float const*, float*) (_Z5saxpyifPKfPf)"});
}

TEST(Faults, doNotWaitForThreadsThatSpin) {
    // One thread does wrong, and the others wait for what it would have written: first at a
    // barrier, then in a loop.
    const std::string kWrong = "setp.eq.u32 %p1, %r1, 3; @%p1 ld.global.u32 %r2, [%rd3];\n";
    expectFault(outcome(kWrong + "bar.sync 0;", 0), 700, {"thread (3,0,0) and 1 other"});
    expectFault(outcome(kWrong + "LOOP: ld.global.u32 %r3, [%rd1]; bra LOOP;", 0), 700,
                {"thread (3,0,0) and"});
}

TEST(Deadlocks, withinABlockNameWhoWaitsWhere) {
    expectFault(outcome("setp.lt.u32 %p1, %r1, 16;\n@%p1 bra HALF;\nbar.sync 1;\nbra END;\n"
                        "HALF:\nbar.sync 2;\nEND:",
                        0),
                719,
                {"deadlock: barrier 2 has 16 of 64", "16 threads wait at PTX line 16: bar.sync 2",
                 "48 threads wait at PTX line 13: bar.sync 1"});
    expectFault(outcome("setp.lt.u32 %p1, %r1, 16;\n@%p1 bra HALF;\nbar.warp.sync -1;\nbra END;\n"
                        "HALF:\nbar.sync 2;\nEND:",
                        0),
                719, {"deadlock"});
}

TEST(Deadlocks, doNotCountThreadsThatHaveEnded) {
    EXPECT_EQ(outcome("setp.lt.u32 %p1, %r1, 40; @%p1 exit; bar.sync 0;", 0).curesult, 0);
    EXPECT_EQ(outcome("setp.lt.u32 %p1, %r1, 40; @%p1 exit; bar.warp.sync -1;", 0).curesult, 0);
}

/// What cooperative groups make of a sync of the whole grid, by the first thread of each block.
const std::string kGridSync =
    "bar.sync 0; setp.ne.u32 %p2, %r1, 0; @%p2 bra MET;\n"
    "mov.u32 %r4, %envreg2; mov.u32 %r5, %envreg1; cvt.u64.u32 %rd5, %r4; cvt.u64.u32 %rd6, %r5;\n"
    "bfi.b64 %rd7, %rd6, %rd5, 32, 32; add.s64 %rd8, %rd7, 4;\n"
    "mov.u32 %r6, %nctaid.x; sub.s32 %r7, -2147483647, %r6;\n"
    "mov.u32 %r8, %ctaid.x; setp.eq.s32 %p3, %r8, 0; selp.b32 %r9, %r7, 1, %p3;\n"
    "atom.add.release.gpu.u32 %r10, [%rd8], %r9;\n"
    "WAIT:\nld.acquire.gpu.u32 %r11, [%rd8]; xor.b32 %r12, %r11, %r10; setp.gt.s32 %p4, %r12, -1;\n"
    "@%p4 bra WAIT;\nMET: bar.sync 0;\n";

LaunchResult cooperative(const std::string& body) {
    auto program = load(wrap(body));
    TestMemory memory;
    auto* workspace = memory.allocate<uint32_t>(2);
    auto* out = memory.allocate<uint64_t>(64);
    Launch launch = launchOf(*program, memory, {6}, {64}, out, out);
    launch.gridWorkspace = reinterpret_cast<uint64_t>(workspace);
    launch.watchdog = std::chrono::seconds(60);
    return run(launch);
}

TEST(Deadlocks, ofAGridAreFoundWhenABlockHasLeft) {
    LaunchResult result =
        cooperative("mov.u32 %r2, %ctaid.x; setp.eq.u32 %p1, %r2, 4; @%p1 exit;\n" + kGridSync);
    expectFault(result, 719,
                {"deadlock: 5 of 6 blocks wait for the whole grid", "1 of 6 blocks have ended",
                 "5 threads loop in PTX lines", "315 threads wait at", "bar.sync 0"});
    // Late ones are waited for.
    EXPECT_EQ(
        cooperative("mov.u32 %r2, %ctaid.x; setp.ne.u32 %p1, %r2, 4; @%p1 bra SYNC;\n"
                    "mov.u32 %r3, 0; LATE: add.u32 %r3, %r3, 1; setp.lt.u32 %p5, %r3, 300000;\n"
                    "@%p5 bra LATE;\nSYNC:\n" +
                    kGridSync)
            .curesult,
        0);
}

TEST(Watchdog, endsAKernelWithoutEndAndSaysWhereItIs) {
    auto program =
        load(wrap("setp.lt.u32 %p1, %r1, 8;\n@%p1 bra LOOP;\nbar.sync 0;\nLOOP:\n"
                  "ld.volatile.global.u32 %r2, [%rd1];\nsetp.eq.u32 %p1, %r2, 0;\n"
                  "@%p1 bra LOOP;"));
    TestMemory memory;
    auto* buffer = memory.allocate<uint64_t>(64);
    Launch launch = launchOf(*program, memory, {3}, {64}, buffer, buffer);
    launch.watchdog = std::chrono::milliseconds(50);
    expectFault(run(launch), 702,
                {"error 702 (launch timeout)", "50 ms", "kernel k", "0 of 3 blocks have ended",
                 "24 threads loop in PTX lines 15 to 17, from PTX line 15: ld.volatile.global.u32",
                 "168 threads wait at PTX line 13: bar.sync 0"});
    // One that ends in time is left alone.
    buffer[0] = ~0ull;
    for (int i = 1; i < 64; ++i) buffer[i] = ~0ull;
    launch.watchdog = std::chrono::hours(1);
    EXPECT_EQ(run(launch).curesult, 0);
}

TEST(Watchdog, seesRecursionWithoutLoops) {
    const std::string kTree =
        ".func tree(.param .b32 n) { .reg .b32 %a<4>; .reg .pred %q; ld.param.u32 %a1, [n];\n"
        "setp.eq.u32 %q, %a1, 0; @%q ret; sub.s32 %a2, %a1, 1;\n"
        "{ .param .b32 p0; st.param.b32 [p0], %a2; call.uni tree, (p0); }\n"
        "{ .param .b32 p0; st.param.b32 [p0], %a2; call.uni tree, (p0); } ret; }\n";
    auto program =
        load(wrap("{ .param .b32 p0; st.param.b32 [p0], 100; call.uni tree, (p0); }", kTree));
    TestMemory memory;
    Launch launch = launchOf(*program, memory, {1}, {32}, uint64_t{0}, uint64_t{0});
    launch.watchdog = std::chrono::milliseconds(50);
    expectFault(run(launch), 702, {"32 threads are at", "0 of 1 blocks"});
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
    expect("tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f1, %f2}];",
           {"line 11", "tex.2d.v4.f32.f32", "not supported"});
    expect("sust.b.2d.b32.trap [%rd1, {%r1, %r2}], {%r3};",
           {"line 11", "sust.b.2d.b32.trap", "not supported"});
    expect("ld.global.u32 %r2, [%rd1, {%r1}];", {"line 11", "ld.global.u32", "coordinates"});
    expect("add.frob.s32 %r2, %r2, %r2;", {".frob"});
    expect("add.s32 %r2, %r2;", {"expected 3 operands, got 2"});
    expect("add.s32 %r2, %rd1, 1;", {".b64 register where .s32 is wanted"});
    expect("bra NOWHERE;", {"unknown label NOWHERE"});
    expect("add.s32 %r2, %r99, 1;", {"%r99"});
    expect("@%r1 bra X; X:", {"%r1 is not a predicate"});
    expect("ld.global.u32 %r2, [nothing];", {"unknown name nothing"});
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

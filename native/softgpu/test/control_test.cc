// Divergence, barriers, exchange within a warp, calls.
#include <numeric>

#include "native/softgpu/test/harness.h"

namespace juice::softgpu::test {
namespace {

using W = uint64_t;

std::vector<W> counted(size_t count) {
    std::vector<W> values(count);
    std::iota(values.begin(), values.end(), 0);
    return values;
}

/// One u32 result per thread, left in %r4 by a body that finds its thread's number in %r1.
std::vector<W> perThread(const std::string& body, size_t threads, const std::string& before = "") {
    return evaluate(body + "\ncvt.u64.u32 %rd5, %r4; st.global.u64 [%rd1], %rd5;", counted(threads),
                    before);
}

TEST(Branches, divergeAndMeetAgain) {
    auto got = perThread(
        "and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0; @%p1 bra EVEN;\n"
        "mov.u32 %r4, 100; bra DONE;\nEVEN: mov.u32 %r4, 200;\nDONE: activemask.b32 %r5;\n"
        "popc.b32 %r5, %r5; add.s32 %r4, %r4, %r5;",
        32);
    for (W i = 0; i < 32; ++i) EXPECT_EQ(got[i], (i % 2 ? 100 : 200) + 32);
}

TEST(Branches, loopAsOftenAsEachLaneWants) {
    auto got = perThread(
        "mov.u32 %r4, 0; mov.u32 %r2, 0;\nLOOP: setp.ge.u32 %p1, %r2, %r1; @%p1 bra DONE;\n"
        "add.u32 %r2, %r2, 1; add.u32 %r4, %r4, %r2; bra.uni LOOP;\nDONE:",
        100);
    for (W i = 0; i < 100; ++i) EXPECT_EQ(got[i], i * (i + 1) / 2);
}

TEST(Branches, jumpThroughTables) {
    auto got = perThread(
        "and.b32 %r2, %r1, 3; TABLE: .branchtargets A, B, C, A;\nbrx.idx %r2, TABLE;\n"
        "A: mov.u32 %r4, 1; bra DONE;\nB: mov.u32 %r4, 2; bra DONE;\nC: mov.u32 %r4, 3;\nDONE:",
        64);
    const W kWant[4] = {1, 2, 3, 1};
    for (W i = 0; i < 64; ++i) EXPECT_EQ(got[i], kWant[i % 4]);
}

TEST(Branches, keepLabelsOfScopesApart) {
    auto got = perThread(
        "mov.u32 %r4, 0;\n{ .reg .b32 x; bra IN; IN: mov.u32 x, 5; add.u32 %r4, %r4, x; }\n"
        "{ .reg .b32 x; bra IN; IN: mov.u32 x, 6; add.u32 %r4, %r4, x; }",
        1);
    EXPECT_EQ(got[0], 11u);
}

TEST(Branches, letLanesEndEarly) {
    auto got = perThread("mov.u32 %r4, 9; setp.gt.u32 %p1, %r1, 10; @%p1 exit;", 40);
    for (W i = 0; i < 40; ++i) EXPECT_EQ(got[i], i > 10 ? 0u : 9u);
}

TEST(Spinning, lanesOfAWarpTakeALockInTurn) {
    // Each lane increments a plain counter under a lock that its neighbours spin on.
    auto program = load(std::string(kHead) +
                        ".visible .entry k(.param .u64 words)\n"
                        "{ .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<4>;\n"
                        "ld.param.u64 %rd1, [words];\n"
                        "AGAIN: atom.global.cas.b32 %r1, [%rd1], 0, 1; setp.ne.u32 %p1, %r1, 0;\n"
                        "@%p1 bra AGAIN;\n"
                        "ld.volatile.global.u32 %r2, [%rd1+4]; add.u32 %r2, %r2, 1;\n"
                        "st.volatile.global.u32 [%rd1+4], %r2; membar.gl;\n"
                        "atom.global.exch.b32 %r3, [%rd1], 0; ret; }\n");
    TestMemory memory;
    auto* words = memory.allocate<uint32_t>(2);
    LaunchResult result = run(launchOf(*program, memory, {6}, {160}, words));
    EXPECT_EQ(result.curesult, 0) << result.report;
    EXPECT_EQ(words[1], 6u * 160);
}

TEST(Spinning, blocksWaitForLaterBlocks) {
    // Every block counts itself in and spins until all have: more blocks than threads of the host.
    auto program = load(std::string(kHead) +
                        ".visible .entry k(.param .u64 word, .param .u32 blocks)\n"
                        "{ .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<4>;\n"
                        "ld.param.u64 %rd1, [word]; ld.param.u32 %r1, [blocks];\n"
                        "atom.global.add.u32 %r2, [%rd1], 1;\n"
                        "WAIT: ld.acquire.gpu.global.u32 %r3, [%rd1]; setp.lt.u32 %p1, %r3, %r1;\n"
                        "@%p1 bra WAIT; ret; }\n");
    TestMemory memory;
    auto* word = memory.allocate<uint32_t>(1);
    LaunchResult result = run(launchOf(*program, memory, {24}, {1}, word, 24u));
    EXPECT_EQ(result.curesult, 0) << result.report;
}

TEST(Spinning, stopsWhenCancelled) {
    auto program = load(wrap("LOOP: bra LOOP;"));
    TestMemory memory;
    bool cancel = true;
    Launch launch = launchOf(*program, memory, {4}, {64}, uint64_t{0}, uint64_t{0});
    launch.cancel[0] = &cancel;
    run(launch);

    program = load(wrap("LOOP: bar.sync 0; bra LOOP;"));
    launch.kernel = kernelOf(*program);
    run(launch);
}

TEST(Barriers, orderWarpsOfABlock) {
    // A running sum over 8 rounds; every round reads what the neighbour wrote in the one before.
    auto got = perThread(
        ".shared .align 4 .b8 cells[2048]; shl.b32 %r5, %r1, 2; mov.u32 %r6, cells;\n"
        "add.u32 %r7, %r6, %r5; st.shared.u32 [%r7], %r1; mov.u32 %r8, 0;\n"
        "add.u32 %r9, %r5, 4; and.b32 %r9, %r9, 1023; add.u32 %r9, %r9, %r6;\n"
        "ROUND: bar.sync 0; ld.shared.u32 %r10, [%r9]; bar.sync 0; st.shared.u32 [%r7], %r10;\n"
        "add.u32 %r8, %r8, 1; setp.lt.u32 %p1, %r8, 8; @%p1 bra ROUND;\n"
        "ld.shared.u32 %r4, [%r7];",
        256);
    for (W i = 0; i < 256; ++i) EXPECT_EQ(got[i], (i + 8) % 256);
}

TEST(Barriers, countVotes) {
    auto got = perThread(
        "setp.lt.u32 %p1, %r1, 37; barrier.sync 0; bar.red.popc.u32 %r4, 0, %p1;\n"
        "bar.red.and.pred %p2, 0, %p1; barrier.cta.red.or.aligned.pred %p3, 1, %p1;\n"
        "@%p2 add.u32 %r4, %r4, 1000; @%p3 add.u32 %r4, %r4, 2000;",
        96);
    for (W value : got) EXPECT_EQ(value, 2037u);
}

TEST(Barriers, passDataFromProducersToConsumers) {
    // Warp 0 arrives and goes on, warp 1 waits: bar.arrive pairs with bar.sync on 64 threads.
    auto got = perThread(
        ".shared .align 4 .b8 word[4]; mov.u32 %r4, 1; setp.ge.u32 %p1, %r1, 32; @%p1 bra WAIT;\n"
        "mov.u32 %r2, 55; st.shared.u32 [word], %r2; membar.cta; bar.arrive 3, 64; bra DONE;\n"
        "WAIT: bar.sync 3, 64; ld.shared.u32 %r4, [word];\nDONE:",
        64);
    for (W i = 0; i < 64; ++i) EXPECT_EQ(got[i], i < 32 ? 1 : 55);
}

TEST(Barriers, doNotWaitForThreadsThatHaveEnded) {
    auto got = perThread("mov.u32 %r4, 3; setp.gt.u32 %p1, %r1, 40; @%p1 exit; bar.sync 0;", 80);
    for (W i = 0; i < 80; ++i) EXPECT_EQ(got[i], i > 40 ? 0u : 3u);
}

TEST(Barriers, bringAWarpTogetherAcrossBranches) {
    auto got = perThread(
        "and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0; @%p1 bra EVEN;\n"
        "mov.u32 %r4, 1; bar.warp.sync 0xffffffff; bra DONE;\n"
        "EVEN: mov.u32 %r4, 2; bar.warp.sync -1;\nDONE:",
        32);
    for (W i = 0; i < 32; ++i) EXPECT_EQ(got[i], i % 2 ? 1 : 2);
}

TEST(Barriers, tellOfADeadlockInsteadOfHanging) {
    auto program =
        load(wrap("setp.gt.u32 %p1, %r1, 40; @%p1 bra OTHER; bar.sync 0; ret;\n"
                  "OTHER: bar.sync 1;"));
    TestMemory memory;
    LaunchResult result = run(launchOf(*program, memory, {}, {64}, uint64_t{0}, uint64_t{0}));
    EXPECT_EQ(result.curesult, 719);
    EXPECT_NE(result.report.find("barrier 0 has 41 of 64 threads"), std::string::npos)
        << result.report;
}

TEST(Warp, shufflesInAllModes) {
    auto shuffled = [](const std::string& op) {
        return perThread("mov.u32 %r2, %laneid; mul.lo.u32 %r3, %r2, 10; mov.u32 %r4, 0;\n" + op +
                             "\nselp.u32 %r5, 1000, 0, %p1; add.u32 %r4, %r4, %r5;",
                         32);
    };
    auto got = shuffled("shfl.sync.up.b32 %r4|%p1, %r3, 3, 0, -1;");
    for (W i = 0; i < 32; ++i) EXPECT_EQ(got[i], i >= 3 ? (i - 3) * 10 + 1000 : i * 10);
    got = shuffled("shfl.sync.down.b32 %r4|%p1, %r3, 5, 31, -1;");
    for (W i = 0; i < 32; ++i) EXPECT_EQ(got[i], i + 5 <= 31 ? (i + 5) * 10 + 1000 : i * 10);
    got = shuffled("shfl.sync.bfly.b32 %r4|%p1, %r3, 9, 31, 0xffffffff;");
    for (W i = 0; i < 32; ++i) EXPECT_EQ(got[i], (i ^ 9) * 10 + 1000);
    // In segments of 8 lanes: c = ((32 - 8) << 8) | 31.
    got = shuffled("shfl.sync.idx.b32 %r4|%p1, %r3, 2, 0x181f, -1;");
    for (W i = 0; i < 32; ++i) EXPECT_EQ(got[i], (i / 8 * 8 + 2) * 10 + 1000);
    got = shuffled("shfl.sync.down.b32 %r4|%p1, %r3, 6, 0x1807, -1;");
    for (W i = 0; i < 32; ++i) EXPECT_EQ(got[i], i % 8 + 6 < 8 ? (i + 6) * 10 + 1000 : i * 10);
}

TEST(Warp, gathersDivergedLanesBeforeTheyExchange) {
    // Lanes come to the shuffle by different ways and at different times.
    auto got = perThread(
        "mov.u32 %r2, 0; LOOP: setp.ge.u32 %p1, %r2, %r1; @%p1 bra OUT; add.u32 %r2, %r2, 1;\n"
        "bra LOOP;\nOUT: setp.lt.u32 %p2, %r1, 16; @%p2 bra LOW; add.u32 %r2, %r2, 100;\n"
        "LOW: shfl.sync.bfly.b32 %r4, %r2, 16, 31, -1;",
        32);
    for (W i = 0; i < 32; ++i) EXPECT_EQ(got[i], i < 16 ? i + 116 : i - 16);
}

TEST(Warp, exchangesWithinTheNamedLanesOnly) {
    auto got = perThread(
        "mov.u32 %r4, 7; setp.ge.u32 %p1, %r1, 8; @%p1 bra DONE;\n"
        "shfl.sync.bfly.b32 %r4, %r1, 7, 31, 0xff;\nDONE:",
        32);
    for (W i = 0; i < 32; ++i) EXPECT_EQ(got[i], i < 8 ? i ^ 7 : 7);
}

TEST(Warp, votes) {
    auto got = perThread(
        "setp.lt.u32 %p1, %r1, 5; vote.sync.ballot.b32 %r4, %p1, -1;\n"
        "vote.sync.any.pred %p2, %p1, -1; vote.sync.all.pred %p3, !%p1, -1;\n"
        "vote.sync.uni.pred %p4, %p1, -1; @%p2 add.u32 %r4, %r4, 100; @%p3 add.u32 %r4, %r4, 200;\n"
        "@%p4 add.u32 %r4, %r4, 400;",
        32);
    for (W value : got) EXPECT_EQ(value, 131u);
}

TEST(Warp, matchesAndReduces) {
    auto got = perThread("and.b32 %r2, %r1, 3; match.any.sync.b32 %r4, %r2, -1;", 32);
    for (W i = 0; i < 32; ++i) EXPECT_EQ(got[i], 0x11111111u << (i % 4));
    got = perThread(
        "mov.u64 %rd6, 9; match.all.sync.b64 %r4|%p1, %rd6, -1;"
        "selp.u32 %r4, 5, 6, %p1;",
        32);
    for (W value : got) EXPECT_EQ(value, 5u);
    got = perThread("redux.sync.add.u32 %r4, %r1, -1;", 32);
    for (W value : got) EXPECT_EQ(value, 496u);
    got = perThread("sub.s32 %r2, %r1, 10; redux.sync.min.s32 %r4, %r2, -1;", 32);
    for (W value : got) EXPECT_EQ(value, 0xfffffff6u);
    got = perThread("redux.sync.xor.b32 %r4, %r1, -1;", 33);
    EXPECT_EQ(got[0], 0u);
    EXPECT_EQ(got[32], 32u);
}

TEST(Special, tellsEachThreadWhereItIs) {
    auto program =
        load(std::string(kHead) +
             ".visible .entry k(.param .u64 out)\n"
             "{ .reg .b32 %r<20>; .reg .b64 %rd<8>;\n"
             "mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z;\n"
             "mov.u32 %r4, %ntid.x; mov.u32 %r5, %ntid.y; mov.u32 %r6, %ctaid.y;\n"
             "mov.u32 %r7, %nctaid.x; mov.u32 %r8, %ctaid.x; mov.u32 %r9, %laneid;\n"
             "mad.lo.u32 %r10, %r3, %r5, %r2; mad.lo.u32 %r10, %r10, %r4, %r1;\n"
             "mad.lo.u32 %r11, %r6, %r7, %r8; mad.lo.u32 %r11, %r11, 24, %r10;\n"
             "and.b32 %r12, %r10, 31; sub.u32 %r12, %r12, %r9; mov.u32 %r13, %warpid;\n"
             "mov.u32 %r14, %lanemask_lt; popc.b32 %r14, %r14; sub.u32 %r14, %r14, %r9;\n"
             "add.u32 %r12, %r12, %r13; add.u32 %r12, %r12, %r14;\n"
             "add.u32 %r12, %r12, %r11; ld.param.u64 %rd1, [out];\n"
             "mad.wide.u32 %rd1, %r11, 4, %rd1; st.global.u32 [%rd1], %r12; ret; }\n");
    TestMemory memory;
    auto* out = memory.allocate<uint32_t>(24 * 6);
    LaunchResult result = run(launchOf(*program, memory, {2, 3}, {4, 3, 2}, out));
    ASSERT_EQ(result.curesult, 0) << result.report;
    for (uint32_t i = 0; i < 24 * 6; ++i) EXPECT_EQ(out[i], i);
}

TEST(Calls, passValuesStructsAndResults) {
    const std::string kFunctions =
        ".func (.param .align 4 .b8 r[8]) both(.param .b32 a, .param .align 8 .b8 s[8])\n"
        "{ .reg .b32 %r<8>; ld.param.u32 %r1, [a]; ld.param.v2.u32 {%r2, %r3}, [s];\n"
        "add.u32 %r2, %r2, %r1; mul.lo.u32 %r3, %r3, %r1; st.param.b32 [r], %r2;\n"
        "st.param.b32 [r+4], %r3; ret; }\n";
    auto got = perThread(
        "{ .param .b32 p0; .param .align 8 .b8 p1[8]; .param .align 4 .b8 result[8];\n"
        "st.param.b32 [p0], %r1; st.param.v2.b32 [p1], {10, 20};\n"
        "call.uni (result), both, (p0, p1);\n"
        "ld.param.b32 %r2, [result]; ld.param.b32 %r3, [result+4]; }\n"
        "add.u32 %r4, %r2, %r3;",
        40, kFunctions);
    for (W i = 0; i < 40; ++i) EXPECT_EQ(got[i], 10 + i + 20 * i);
}

TEST(Calls, recurseDeeplyAndReportOverflow) {
    const std::string kFunctions =
        ".func (.param .b32 r) depth(.param .b32 n)\n"
        "{ .reg .pred %p<2>; .reg .b32 %r<8>; ld.param.u32 %r1, [n]; mov.u32 %r2, 0;\n"
        "setp.eq.u32 %p1, %r1, 0; @%p1 bra DONE; sub.u32 %r3, %r1, 1;\n"
        "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r3; call (b), depth, (a);\n"
        "ld.param.b32 %r2, [b]; } add.u32 %r2, %r2, 1;\nDONE: st.param.b32 [r], %r2; ret; }\n";
    const std::string kCall =
        "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r2; call (b), depth, (a);\n"
        "ld.param.b32 %r4, [b]; }";
    auto got = perThread("mul.lo.u32 %r2, %r1, 20;\n" + kCall, 40, kFunctions);
    for (W i = 0; i < 40; ++i) EXPECT_EQ(got[i], i * 20);

    auto program = load(wrap("mov.u32 %r2, -1;\n" + kCall, kFunctions));
    TestMemory memory;
    LaunchResult result = run(launchOf(*program, memory, {}, {1}, uint64_t{0}, uint64_t{0}));
    EXPECT_EQ(result.curesult, 719);
    EXPECT_NE(result.report.find("call stack overflow"), std::string::npos) << result.report;
}

TEST(Heap, givesEachThreadItsOwnMemory) {
    const std::string kHeap =
        ".extern .func (.param .b64 r) malloc(.param .b64 n);\n"
        ".extern .func free(.param .b64 p);\n";
    auto got = perThread(
        "{ .param .b64 n; .param .b64 p; st.param.b64 [n], 40; call (p), malloc, (n);\n"
        "ld.param.b64 %rd6, [p]; }\n"
        "st.u32 [%rd6+36], %r1; bar.sync 0; ld.global.u32 %r4, [%rd6+36];\n"
        "{ .param .b64 p; st.param.b64 [p], %rd6; call free, (p); }",
        100, kHeap);
    for (W i = 0; i < 100; ++i) EXPECT_EQ(got[i], i);
}

TEST(Printing, formatsAsTheDeviceRuntimeDoes) {
    const std::string kPrint =
        ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
        ".global .align 1 .b8 text[32] = {37, 100, 32, 37, 115, 32, 37, 46, 50, 102, 32, 37, 108, "
        "108, 120, 37, 37, 10, 0};\n"  // "%d %s %.2f %llx%%\n"
        ".global .align 1 .b8 word[4] = {104, 105, 33, 0};\n";
    auto program =
        load(wrap(".local .align 8 .b8 args[32]; mov.u64 %rd4, args; cvta.local.u64 %rd5, %rd4;\n"
                  "st.local.u32 [args], -5; mov.u64 %rd6, word; st.local.u64 [args+8], %rd6;\n"
                  "st.local.f64 [args+16], 0d3FF4000000000000; st.local.u64 [args+24], 255;\n"
                  "mov.u64 %rd7, text;\n"
                  "{ .param .b64 p0; .param .b64 p1; .param .b32 q; st.param.b64 [p0], %rd7;\n"
                  "st.param.b64 [p1], %rd5; call (q), vprintf, (p0, p1); ld.param.b32 %r4, [q]; }\n"
                  "st.global.u32 [%rd1], %r4;",
                  kPrint));
    TestMemory memory;
    auto* out = memory.allocate<W>(1);
    std::string printed;
    Launch launch = launchOf(*program, memory, {}, {1}, out, out);
    launch.print = [&](std::string_view text) { printed += text; };
    LaunchResult result = run(launch);
    EXPECT_EQ(result.curesult, 0) << result.report;
    EXPECT_EQ(printed, "-5 hi! 1.25 ff%\n");
    EXPECT_EQ(*out, 4u);
}

}  // namespace
}  // namespace juice::softgpu::test

// Exchange between threads: shfl, vote, match, redux, activemask, barriers of every form.
#include <bit>

#include "test/softgpu/warp.h"

namespace juice::truth {
namespace {

using U = uint32_t;

class Exchange : public WarpTest {};

/// The lane that shfl reads, by the manual's formulas; `held` is its predicate.
U source(const std::string& mode, U lane, U b, U c, bool& held) {
    U segment = c >> 8 & 31, clamp = c & 31;
    U most = (lane & segment) | (clamp & ~segment);
    U least = lane & segment;
    int from = 0;
    if (mode == "up") {
        from = static_cast<int>(lane) - static_cast<int>(b & 31);
        held = from >= static_cast<int>(most);
    } else if (mode == "down") {
        from = static_cast<int>(lane + (b & 31));
        held = from <= static_cast<int>(most);
    } else if (mode == "bfly") {
        from = static_cast<int>(lane ^ (b & 31));
        held = from <= static_cast<int>(most);
    } else {
        from = static_cast<int>(least | (b & 31 & ~segment));
        held = from <= static_cast<int>(most);
    }
    return held ? static_cast<U>(from) : lane;
}

TEST_F(Exchange, Shuffles) {
    for (const char* mode : {"up", "down", "bfly", "idx"}) {
        for (U b : {0u, 1u, 5u, 16u, 31u}) {
            // Whole warps, and segments of 8.
            for (U width : {32u, 8u}) {
                U c = (32 - width) << 8 | (std::string(mode) == "up" ? 0 : 31);
                const WarpWords out = runLanes(
                    ".reg .b32 %v; .reg .pred %p; mad.lo.u32 %v, %in0, 7, 100;"
                    "shfl.sync." +
                        std::string(mode) + ".b32 %out0|%p, %v, " + std::to_string(b) + ", " +
                        std::to_string(c) + ", -1; selp.u32 %out1, 1, 0, %p;",
                    2);
                for (U lane = 0; lane < 32; ++lane) {
                    bool held = false;
                    U from = source(mode, lane, b, c, held);
                    EXPECT_EQ(out[lane][0], from * 7 + 100) << mode << b << " lane " << lane;
                    EXPECT_EQ(out[lane][1], held ? 1 : 0) << mode << b << " lane " << lane;
                }
            }
        }
    }
}

TEST_F(Exchange, VotesAndMatches) {
    NEEDS(80);
    const WarpWords out = runLanes(
        ".reg .pred %p, %q, %r, %s, %t; .reg .b32 %v; .reg .b64 %w; and.b32 %v, %in0, 3;"
        "setp.eq.u32 %p, %v, 1; vote.sync.ballot.b32 %out0, %p, -1;"
        "vote.sync.any.pred %q, %p, -1; vote.sync.all.pred %r, %p, -1;"
        "vote.sync.all.pred %s, !%p, 0xffffffff; vote.sync.uni.pred %t, %p, -1;"
        "selp.u32 %out1, 1, 0, %q; @%r or.b32 %out1, %out1, 2; @%s or.b32 %out1, %out1, 4;"
        "@%t or.b32 %out1, %out1, 8; match.any.sync.b32 %out2, %v, -1; cvt.u64.u32 %w, %v;"
        "shl.b64 %w, %w, 40; match.any.sync.b64 %out3, %w, -1;"
        "match.all.sync.b32 %out4|%p, 5, -1; match.all.sync.b64 %out5|%q, %w, -1;"
        "@%p or.b32 %out1, %out1, 16; @%q or.b32 %out1, %out1, 32; activemask.b32 %out6;",
        7);
    for (U lane = 0; lane < 32; ++lane) {
        EXPECT_EQ(out[lane][0], 0x22222222u);
        EXPECT_EQ(out[lane][1], 1u | 16);
        EXPECT_EQ(out[lane][2], 0x11111111u << lane % 4);
        EXPECT_EQ(out[lane][3], 0x11111111u << lane % 4);
        EXPECT_EQ(out[lane][4], 0xffffffffu);
        EXPECT_EQ(out[lane][5], 0u);
        EXPECT_EQ(out[lane][6], 0xffffffffu);
    }
}

TEST_F(Exchange, Reduces) {
    NEEDS(80);
    const WarpWords out = runLanes(
        ".reg .b32 %v; .reg .pred %low; sub.s32 %v, %in0, 10;"
        "redux.sync.add.s32 %out0, %v, -1; redux.sync.min.s32 %out1, %v, -1;"
        "redux.sync.max.u32 %out2, %v, -1; redux.sync.and.b32 %out3, %in0, -1;"
        "redux.sync.or.b32 %out4, %in0, -1; redux.sync.xor.b32 %out5, %in0, -1;"
        // Half of the warp among themselves.
        "setp.lt.u32 %low, %in0, 16; mov.u32 %out6, 0; @!%low bra $L_high;"
        "redux.sync.add.u32 %out6, %in0, 0xffff;\n$L_high:\n",
        7);
    for (U lane = 0; lane < 32; ++lane) {
        EXPECT_EQ(static_cast<int>(out[lane][0]), 496 - 320);
        EXPECT_EQ(static_cast<int>(out[lane][1]), -10);
        EXPECT_EQ(out[lane][2], 0xffffffffu);
        EXPECT_EQ(out[lane][3], 0u);
        EXPECT_EQ(out[lane][4], 31u);
        EXPECT_EQ(out[lane][5], 0u);
        EXPECT_EQ(out[lane][6], lane < 16 ? 120u : 0u);
    }
}

TEST_F(Exchange, DivergedLanesMeetAgain) {
    const WarpWords out = runLanes(
        ".reg .b32 %v, %i; .reg .pred %p; mov.u32 %v, 0; and.b32 %i, %in0, 7;\n$L_again:\n"
        "add.u32 %v, %v, %i; sub.s32 %i, %i, 1; setp.gt.s32 %p, %i, 0; @%p bra $L_again;"
        "bar.warp.sync -1; shfl.sync.bfly.b32 %out0, %v, 7, 31, -1;",
        1);
    for (U lane = 0; lane < 32; ++lane) {
        U n = (lane ^ 7) & 7;
        EXPECT_EQ(out[lane][0], n * (n + 1) / 2) << lane;
    }
}

TEST_F(Exchange, BarriersOrderWarps) {
    // Four warps: named barriers with counts, arrive and sync, and reductions.
    Module module(head() + R"(
.visible .entry meet(.param .u64 out)
{
    .reg .b64 %to; .reg .b32 %t, %v, %at, %n, %and, %or; .reg .pred %p, %q, %first, %half;
    .shared .align 4 .b8 cells[1024];
    ld.param.u64 %to, [out]; mov.u32 %t, %tid.x; mad.wide.u32 %to, %t, 16, %to;
    mov.u32 %at, cells; mad.lo.u32 %at, %t, 4, %at; st.shared.u32 [%at], %t;
    bar.sync 0;
    xor.b32 %v, %t, 127; mov.u32 %at, cells; mad.lo.u32 %at, %v, 4, %at; ld.shared.u32 %v, [%at];
    st.global.u32 [%to], %v;
    // The upper half produces, the lower half consumes.
    setp.ge.u32 %half, %t, 64; @!%half bra $L_consume;
    mul.lo.u32 %v, %t, 3; mov.u32 %at, cells; mad.lo.u32 %at, %t, 4, %at;
    st.shared.u32 [%at+256], %v; bar.arrive 1, 128; bra $L_join;
$L_consume:
    bar.sync 1, 128; mov.u32 %at, cells; mad.lo.u32 %at, %t, 4, %at;
    ld.shared.u32 %v, [%at+512];
$L_join:
    st.global.u32 [%to+4], %v;
    setp.lt.u32 %p, %t, 37; barrier.red.popc.u32 %n, 0, %p;
    bar.red.and.pred %p, 2, %half; bar.red.or.pred %q, 3, 128, %half;
    selp.u32 %and, 1, 0, %p; selp.u32 %or, 2, 0, %q; or.b32 %and, %and, %or;
    st.global.u32 [%to+8], %n; st.global.u32 [%to+12], %and; ret;
})");
    ASSERT_TRUE(module.loaded());
    Buffer<U> out(128 * 4);
    ASSERT_OK(run(module.function("meet"), {1}, {128}, 0, out.address()));
    const std::vector<U> got = out.read();
    for (U i = 0; i < 128; ++i) {
        EXPECT_EQ(got[i * 4], 127 - i);
        EXPECT_EQ(got[i * 4 + 1], i < 64 ? (i + 64) * 3 : i * 3);
        EXPECT_EQ(got[i * 4 + 2], 37u);
        EXPECT_EQ(got[i * 4 + 3], 2u);
    }
}

}  // namespace
}  // namespace juice::truth

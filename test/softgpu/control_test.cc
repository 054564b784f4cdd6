// Branches, tables, calls of every kind, recursion, and the memory spaces that they touch.
#include "test/softgpu/table.h"
#include "test/softgpu/warp.h"

namespace juice::truth {
namespace {

using U = uint32_t;
using W = uint64_t;

class Control : public TableTest {
  protected:
    Rows numbers() const {
        Rows rows;
        for (U i = 0; i < 64; ++i) rows.push_back({i, i * 7, i * i});
        return rows;
    }
};

TEST_F(Control, BranchesAndLoops) {
    expectEach(
        "mov.u32 %r4, 0; mov.u32 %r5, %r1;\n$L_again:\n setp.eq.u32 %p1, %r5, 0;"
        "@%p1 bra $L_done; add.u32 %r4, %r4, %r5; sub.u32 %r5, %r5, 1; bra.uni $L_again;"
        "\n$L_done:\n",
        numbers(), [](U a) -> U { return a * (a + 1) / 2; });
    expectEach(
        "and.b32 %r5, %r1, 3; ts: .branchtargets $L_0, $L_1, $L_2, $L_3;"
        "brx.idx %r5, ts;\n$L_0: mov.u32 %r4, 10; bra $L_end;\n$L_1: mov.u32 %r4, 21;"
        "bra $L_end;\n$L_2: mov.u32 %r4, 32; bra $L_end;\n$L_3: mov.u32 %r4, 43;\n$L_end:\n",
        numbers(), [](U a) -> U { return 10 + 11 * (a & 3); });
    expectEach(
        "mov.u32 %r4, 5; setp.lt.u32 %p1, %r1, 20; @%p1 mov.u32 %r4, 6;"
        "setp.gt.u32 %p2, %r1, 40; @!%p2 add.u32 %r4, %r4, 100;",
        numbers(), [](U a) -> U { return (a < 20 ? 6 : 5) + (a > 40 ? 0 : 100); });
}

const std::string kFunctions = R"(
.func (.param .b32 result) twice(.param .b32 n)
{
    .reg .b32 %n; ld.param.b32 %n, [n]; shl.b32 %n, %n, 1; st.param.b32 [result], %n; ret;
}
.func (.param .b32 result) square(.param .b32 n)
{
    .reg .b32 %n; ld.param.b32 %n, [n]; mul.lo.u32 %n, %n, %n; st.param.b32 [result], %n; ret;
}
.func (.param .b32 result) sum(.param .b32 n)
{
    .reg .b32 %n, %m, %r; .reg .pred %p;
    ld.param.b32 %n, [n]; mov.u32 %r, 0; setp.eq.u32 %p, %n, 0; @%p bra $L_end;
    sub.u32 %m, %n, 1;
    { .param .b32 a; .param .b32 b; st.param.b32 [a], %m; call.uni (b), sum, (a);
      ld.param.b32 %r, [b]; }
    add.u32 %r, %r, %n;
$L_end:
    st.param.b32 [result], %r; ret;
}
.func (.param .align 8 .b8 result[16]) swap(.param .align 8 .b8 pair[16])
{
    .reg .b64 %a, %b; ld.param.v2.b64 {%a, %b}, [pair]; st.param.v2.b64 [result], {%b, %a}; ret;
}
.global .u64 table[2] = {twice, square};
)";

TEST_F(Control, Calls) {
    auto each = [&](const std::string& body, auto reference) {
        auto got = evaluate(body + store<U>(), numbers(), kFunctions);
        for (size_t i = 0; i < got.size(); ++i)
            EXPECT_EQ(got[i], reference(static_cast<U>(i))) << body;
    };
    each(
        "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), twice, (a);"
        "ld.param.b32 %r4, [b]; }",
        [](U a) -> W { return 2 * a; });
    each(
        "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), sum, (a);"
        "ld.param.b32 %r4, [b]; }",
        [](U a) -> W { return a * (a + 1) / 2; });
    // Through a pointer that differs between lanes.
    each(
        "and.b32 %r5, %r1, 1; mov.u64 %q5, table; mad.wide.u32 %q5, %r5, 8, %q5;"
        "ld.global.u64 %q6, [%q5];"
        "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1;"
        "pr: .callprototype (.param .b32 _) _ (.param .b32 _);"
        "call (b), %q6, (a), pr; ld.param.b32 %r4, [b]; }",
        [](U a) -> W { return a & 1 ? a * a : 2 * a; });
    each(
        "{ .param .align 8 .b8 a[16]; .param .align 8 .b8 b[16]; cvt.u64.u32 %q5, %r1;"
        "mov.u64 %q6, 5; st.param.v2.b64 [a], {%q5, %q6}; call (b), swap, (a);"
        "ld.param.v2.b64 {%q7, %q8}, [b]; } mul.lo.u64 %q7, %q7, 1000; add.u64 %q7, %q7, %q8;"
        "cvt.u32.u64 %r4, %q7;",
        [](U a) -> W { return 5000 + a; });
}

TEST_F(Control, ReachesEverySpace) {
    const std::string memory =
        ".global .align 8 .u32 words[4] = {11, 22, 33, 44};"
        ".const .align 4 .u32 fixed[4] = {5, 6, 7, 8};\n";
    auto each = [&](const std::string& body, auto reference) {
        auto got = evaluate(body + store<U>(), numbers(), memory);
        for (size_t i = 0; i < got.size(); ++i)
            EXPECT_EQ(got[i], reference(static_cast<U>(i))) << body;
    };
    each(
        "and.b32 %r5, %r1, 3; mov.u64 %q5, words; mad.wide.u32 %q5, %r5, 4, %q5;"
        "ld.global.nc.u32 %r4, [%q5];",
        [](U a) -> W { return 11 + 11 * (a & 3); });
    each(
        "and.b32 %r5, %r1, 3; mov.u64 %q5, fixed; mad.wide.u32 %q5, %r5, 4, %q5;"
        "ld.const.u32 %r4, [%q5];",
        [](U a) -> W { return 5 + (a & 3); });
    each(
        ".local .align 8 .b8 room[32]; st.local.u32 [room+8], %r1; cvta.local.u64 %q5, room;"
        "isspacep.local %p1, %q5; isspacep.shared %p2, %q5; ld.u32 %r4, [%q5+8];"
        "@%p1 add.u32 %r4, %r4, 100; @%p2 add.u32 %r4, %r4, 1000;",
        [](U a) -> W { return a + 100; });
    each(
        ".shared .align 8 .b8 room[1024]; mov.u32 %r5, %tid.x; mov.u32 %r6, room;"
        "mad.lo.u32 %r6, %r5, 8, %r6; st.shared.v2.u32 [%r6], {%r1, %r2};"
        "cvt.u64.u32 %q5, %r6; cvta.shared.u64 %q5, %q5; isspacep.shared %p1, %q5;"
        "ld.v2.u32 {%r7, %r8}, [%q5]; add.u32 %r4, %r7, %r8; @%p1 add.u32 %r4, %r4, 100;",
        [](U a) -> W { return a + a * 7 + 100; });
    each(
        "st.global.u8 [%in], %r1; ld.global.s8 %r4, [%in]; st.global.u16 [%in], %h1;"
        "ld.volatile.global.u16 %r5, [%in]; add.u32 %r4, %r4, %r5;",
        [](U a) -> W { return 2 * a; });
    each(
        "st.release.gpu.global.u32 [%in], %r1; ld.acquire.gpu.global.u32 %r4, [%in];"
        "st.relaxed.sys.global.u32 [%in], %r4; fence.acq_rel.gpu; membar.gl;"
        "ld.relaxed.sys.global.u32 %r4, [%in];",
        [](U a) -> W { return a; });
    each(
        "st.global.cs.v4.u16 [%in], {%h1, %h2, %h3, %h1};"
        "ld.global.cg.v4.u16 {%h5, %h6, %h7, %h8}, [%in]; cvt.u32.u16 %r4, %h6;",
        [](U a) -> W { return a * 7; });
}

TEST_F(Control, Reaches128Bits) {
    auto got = evaluate(
        ".reg .b128 %o<2>; .shared .align 16 .b8 room[2048]; mov.u32 %r5, %tid.x;"
        "mov.u32 %r6, room; mad.lo.u32 %r6, %r5, 16, %r6; mov.b128 %o0, {%q1, %q2};"
        "st.shared.b128 [%r6], %o0; ld.shared.b128 %o1, [%r6];"
        "mov.b128 {%q5, %q6}, %o1; add.u64 %q4, %q5, %q6;",
        numbers());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], i * 8);
}

}  // namespace
}  // namespace juice::truth

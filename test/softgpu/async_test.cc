// cp.async and mbarrier.
#include "test/softgpu/warp.h"

namespace juice::truth {
namespace {

using U = uint32_t;

class Async : public WarpTest {
  protected:
    /// data[i] = 1000 + i.
    static std::vector<U> numbers(size_t count) {
        std::vector<U> data(count);
        for (size_t i = 0; i < count; ++i) data[i] = static_cast<U>(1000 + i);
        return data;
    }
};

TEST_F(Async, CopiesToSharedMemory) {
    NEEDS(80);
    for (U bytes : {4u, 8u, 16u}) {
        std::vector<U> data = numbers(32 * 4);
        std::string size = std::to_string(bytes);
        const WarpWords out = runLanes(
            ".reg .b32 %at; .reg .b64 %from; mov.u32 %at, room; mad.lo.u32 %at, %lane, 16, %at;"
            "st.shared.v4.u32 [%at], {7, 7, 7, 7}; mad.wide.u32 %from, %lane, 16, %data;"
            "cp.async.ca.shared.global [%at], [%from], " +
                size +
                ";"
                "cp.async.commit_group; cp.async.wait_group 0;"
                "ld.shared.v4.u32 {%out0, %out1, %out2, %out3}, [%at];",
            4, &data);
        for (U lane = 0; lane < 32; ++lane) {
            for (U i = 0; i < 4; ++i) {
                EXPECT_EQ(out[lane][i], i < bytes / 4 ? 1000 + lane * 4 + i : 7) << lane;
            }
        }
    }
}

TEST_F(Async, FillsWithZerosWhatIsNotRead) {
    NEEDS(80);
    std::vector<U> data = numbers(32 * 4);
    const std::string place =
        ".reg .b32 %at, %size; .reg .b64 %from; .reg .pred %odd; mov.u32 %at, room;"
        "mad.lo.u32 %at, %lane, 16, %at; st.shared.v4.u32 [%at], {7, 7, 7, 7};"
        "mad.wide.u32 %from, %lane, 16, %data; and.b32 %size, %lane, 1;"
        "setp.ne.u32 %odd, %size, 0;";
    const std::string fetch =
        "cp.async.wait_all; ld.shared.v4.u32 {%out0, %out1, %out2, %out3}, [%at];";
    const WarpWords sized =
        runLanes(place +
                     "and.b32 %size, %lane, 3; shl.b32 %size, %size, 2;"
                     "cp.async.cg.shared.global.L2::128B [%at], [%from], 16, %size;" +
                     fetch,
                 4, &data);
    const WarpWords ignored = runLanes(
        place + "cp.async.ca.shared::cta.global [%at], [%from], 16, %odd;" + fetch, 4, &data);
    for (U lane = 0; lane < 32; ++lane) {
        for (U i = 0; i < 4; ++i) {
            U value = 1000 + lane * 4 + i;
            EXPECT_EQ(sized[lane][i], i < lane % 4 ? value : 0) << lane;
            EXPECT_EQ(ignored[lane][i], lane % 2 == 0 ? value : 0) << lane;
        }
    }
}

TEST_F(Async, PhasesEndWhenAllHaveArrived) {
    NEEDS(80);
    // Lane 0 alone: two arrivals a phase. Words: the answers of test_wait, as bits in order.
    const WarpWords out = runLanes(
        ".reg .b32 %bits; .reg .b64 %first, %second; .reg .pred %one, %done; mov.u32 %bits, 0;"
        "mov.u32 %out1, 0; setp.eq.u32 %one, %lane, 0; @!%one bra $L_end;"
        "mbarrier.init.shared.b64 [room], 2;"
        "mbarrier.test_wait.parity.shared.b64 %done, [room], 1; @%done or.b32 %bits, %bits, 1;"
        "mbarrier.test_wait.parity.shared.b64 %done, [room], 0; @%done or.b32 %bits, %bits, 2;"
        "mbarrier.arrive.shared.b64 %first, [room];"
        "mbarrier.pending_count.b64 %out1, %first;"
        "mbarrier.test_wait.shared.b64 %done, [room], %first; @%done or.b32 %bits, %bits, 4;"
        "mbarrier.arrive.shared.b64 %second, [room];"
        "mbarrier.test_wait.shared.b64 %done, [room], %first; @%done or.b32 %bits, %bits, 8;"
        "mbarrier.test_wait.shared.b64 %done, [room], %second; @%done or.b32 %bits, %bits, 16;"
        "mbarrier.test_wait.parity.shared.b64 %done, [room], 0; @%done or.b32 %bits, %bits, 32;"
        "mbarrier.test_wait.parity.shared.b64 %done, [room], 1; @%done or.b32 %bits, %bits, 64;"
        // The next phase: dropping out leaves one to wait for.
        "mbarrier.arrive_drop.shared.b64 %first, [room];"
        "mbarrier.arrive.shared.b64 %second, [room];"
        "mbarrier.test_wait.shared.b64 %done, [room], %second; @%done or.b32 %bits, %bits, 128;"
        "mbarrier.arrive.shared.b64 %second, [room];"
        "mbarrier.test_wait.shared.b64 %done, [room], %second; @%done or.b32 %bits, %bits, 256;"
        "mbarrier.inval.shared.b64 [room];\n$L_end:\nmov.u32 %out0, %bits;",
        2);
    EXPECT_EQ(out[0][0], 1u | 8 | 16 | 32 | 128 | 256);
    EXPECT_EQ(out[0][1], 2u);  // still to come before the first arrival
}

TEST_F(Async, CopiesArriveAtABarrier) {
    NEEDS(80);
    std::vector<U> data = numbers(32);
    const WarpWords out = runLanes(
        ".reg .b32 %at; .reg .b64 %from, %state; .reg .pred %p;"
        "setp.eq.u32 %p, %lane, 0; @%p mbarrier.init.shared.b64 [room], 32; bar.warp.sync -1;"
        "mov.u32 %at, room; mad.lo.u32 %at, %lane, 4, %at; mad.wide.u32 %from, %lane, 4, %data;"
        "cp.async.ca.shared.global [%at+64], [%from], 4;"
        "cp.async.mbarrier.arrive.noinc.shared.b64 [room];\n$L_wait:\n"
        "mbarrier.test_wait.parity.shared.b64 %p, [room], 0; @!%p bra $L_wait;"
        "mov.u32 %at, room; xor.b32 %out0, %lane, 31; mad.lo.u32 %at, %out0, 4, %at;"
        "ld.shared.u32 %out0, [%at+64];",
        1, &data);
    for (U lane = 0; lane < 32; ++lane) EXPECT_EQ(out[lane][0], 1000 + (31 - lane));
}

TEST_F(Async, BytesHoldAPhaseOpen) {
    NEEDS(90);
    const WarpWords out = runLanes(
        ".reg .b32 %bits; .reg .b64 %state; .reg .pred %one, %done; mov.u32 %bits, 0;"
        "setp.eq.u32 %one, %lane, 0; @!%one bra $L_end;"
        "mbarrier.init.shared::cta.b64 [room], 1;"
        "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 %state, [room], 48;"
        "mbarrier.test_wait.shared::cta.b64 %done, [room], %state; @%done or.b32 %bits, %bits, 1;"
        "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [room], 16;"
        "mbarrier.test_wait.shared::cta.b64 %done, [room], %state; @%done or.b32 %bits, %bits, 2;"
        "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [room], 32;\n$L_wait:\n"
        "mbarrier.try_wait.shared::cta.b64 %done, [room], %state; @!%done bra $L_wait;"
        "or.b32 %bits, %bits, 4;\n$L_end:\nmov.u32 %out0, %bits;",
        1);
    EXPECT_EQ(out[0][0], 4u);
}

/// Two warps hand a value to and fro through two barriers.
TEST_F(Async, WarpsTakeTurns) {
    NEEDS(90);
    Module module(head() + R"(
.visible .entry turns(.param .u64 out)
{
    .reg .b64 %to, %state; .reg .b32 %warp, %round, %value, %parity; .reg .pred %p, %first;
    .shared .align 8 .b8 there[8]; .shared .align 8 .b8 back[8]; .shared .align 4 .b8 cell[4];
    ld.param.u64 %to, [out]; mov.u32 %warp, %tid.x; shr.u32 %warp, %warp, 5;
    mov.u32 %value, %tid.x; setp.eq.u32 %first, %value, 0;
    @%first mbarrier.init.shared::cta.b64 [there], 32;
    @%first mbarrier.init.shared::cta.b64 [back], 32;
    @%first st.shared.u32 [cell], 1;
    bar.sync 0;
    mov.u32 %round, 0;
$L_again:
    and.b32 %parity, %round, 1;
    setp.eq.u32 %p, %warp, 0; @!%p bra $L_other;
    ld.shared.u32 %value, [cell]; bar.warp.sync -1; mad.lo.u32 %value, %value, 3, 1;
    @%first st.shared.u32 [cell], %value;
    mbarrier.arrive.release.cta.shared::cta.b64 %state, [there];
$L_waitBack:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [back], %parity; @!%p bra $L_waitBack;
    bra $L_next;
$L_other:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [there], %parity; @!%p bra $L_other;
    ld.shared.u32 %value, [cell]; bar.warp.sync -1; add.u32 %value, %value, 10;
    mov.u32 %parity, %laneid; setp.eq.u32 %p, %parity, 0; @%p st.shared.u32 [cell], %value;
    mbarrier.arrive.release.cta.shared::cta.b64 %state, [back];
$L_next:
    add.u32 %round, %round, 1; setp.lt.u32 %p, %round, 10; @%p bra $L_again;
    bar.sync 0; ld.shared.u32 %value, [cell]; @%first st.global.u32 [%to], %value; ret;
})");
    ASSERT_TRUE(module.loaded());
    Buffer<U> out(1);
    ASSERT_OK(run(module.function("turns"), {1}, {64}, 0, out.address()));
    U want = 1;
    for (int i = 0; i < 10; ++i) want = want * 3 + 1 + 10;
    EXPECT_EQ(out.read()[0], want);
}

}  // namespace
}  // namespace juice::truth

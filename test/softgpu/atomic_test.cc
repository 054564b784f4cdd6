// atom and red: every operation and type, values before and after, and sums under contention.
#include <algorithm>
#include <numeric>

#include "test/softgpu/narrow.h"
#include "test/softgpu/table.h"
#include "test/softgpu/warp.h"

namespace juice::truth {
namespace {

using U = uint32_t;
using W = uint64_t;

class Atomic : public TableTest {
  protected:
    /// Holds what an operation leaves in memory, and what it returns, against references. The cell
    /// (a, the low bits of it) lies in shared memory, a thread each; b and c are operands.
    template <class T, class After>
    void check(const std::string& op, const std::string& type, bool three, After after,
               bool returns = true, const Rows& given = {}) {
        constexpr bool kWide = sizeof(T) == 8, kHalf = sizeof(T) == 2;
        std::string bank = kWide ? "%q" : kHalf ? "%h" : "%r";
        if (type == "f32") bank = "%f";
        if (type == "f64") bank = "%d";
        std::string bits = std::to_string(8 * sizeof(T));
        std::string plain = kWide ? "%q" : kHalf ? "%h" : "%r";
        Rows rows = given;
        if (rows.empty()) {
            rows = joined(triples<T>(three ? std::vector<T>{0, 1, T(-1), 77} : troublesome<T>()),
                          randomRows(100));
        }
        const std::string cell =
            ".shared .align 8 .b8 cells[1024]; mov.u32 %r9, %tid.x; mov.u32 %r10, cells;"
            "mad.lo.u32 %r9, %r9, 8, %r10; st.shared.b" +
            bits + " [%r9], " + plain + "1;";
        const std::string operands = "[%r9], " + bank + "2" + (three ? ", " + bank + "3;" : ";");
        // Operands that the table offers in one register bank only.
        const std::string name = "atom.shared." + op + "." + type + " ";
        expectEach(cell + name + bank + "5, " + operands + "ld.shared.b" + bits + " " + plain +
                       "4, [%r9];",
                   rows, after);
        expectEach(cell + name + bank + "4, " + operands +
                       (bank == plain ? "" : "mov.b" + bits + " " + plain + "4, " + bank + "4;"),
                   rows, std::function<T(T, T, T)>([](T a, T, T) { return a; }));
        if (!returns) return;
        expectEach(cell + "red.shared." + op + "." + type + " " + operands + "ld.shared.b" + bits +
                       " " + plain + "4, [%r9];",
                   rows, after);
    }
};

TEST_F(Atomic, OnIntegers) {
    auto s = [](U v) { return static_cast<int32_t>(v); };
    auto sw = [](W v) { return static_cast<int64_t>(v); };
    check<U>("add", "u32", false, [](U a, U b, U) -> U { return a + b; });
    check<U>("add", "s32", false, [](U a, U b, U) -> U { return a + b; });
    check<W>("add", "u64", false, [](W a, W b, W) -> W { return a + b; });
    check<U>("min", "s32", false, [=](U a, U b, U) -> U { return s(a) < s(b) ? a : b; });
    check<U>("max", "u32", false, [](U a, U b, U) -> U { return std::max(a, b); });
    check<W>("min", "u64", false, [](W a, W b, W) -> W { return std::min(a, b); });
    check<W>("max", "s64", false, [=](W a, W b, W) -> W { return sw(a) > sw(b) ? a : b; });
    check<U>("inc", "u32", false, [](U a, U b, U) -> U { return a >= b ? 0 : a + 1; });
    check<U>("dec", "u32", false, [](U a, U b, U) -> U { return a == 0 || a > b ? b : a - 1; });
    check<U>("and", "b32", false, [](U a, U b, U) -> U { return a & b; });
    check<W>("or", "b64", false, [](W a, W b, W) -> W { return a | b; });
    check<U>("xor", "b32", false, [](U a, U b, U) -> U { return a ^ b; });
    check<U>(
        "exch", "b32", false, [](U, U b, U) -> U { return b; }, false);
    check<W>(
        "exch", "b64", false, [](W, W b, W) -> W { return b; }, false);
    check<U>(
        "cas", "b32", true, [](U a, U b, U c) -> U { return a == b ? c : a; }, false);
    check<W>(
        "cas", "b64", true, [](W a, W b, W c) -> W { return a == b ? c : a; }, false);
    check<uint16_t>(
        "cas", "b16", true, [](uint16_t a, uint16_t b, uint16_t c) { return a == b ? c : a; },
        false);
}

/// Addends whose upper half is zero, but on the software GPU: in shared memory, code that driver
/// 580 makes for an H200 adds the lower halves only.
Rows packedRows(Rows rows, bool whole) {
    for (Row& row : rows)
        if (!whole) row[1] &= 0xffff;
    return rows;
}

TEST_F(Atomic, OnFloats) {
    const Rows singles = randomFloats(300, -20, 20);
    check<U>(
        "add", "f32", false,
        [](U a, U b, U) -> U {
            return static_cast<U>(bitsOf(valueOf<float>(a) + valueOf<float>(b)));
        },
        true, singles);
    check<W>(
        "add", "f64", false,
        [](W a, W b, W) -> W { return bitsOf(valueOf<double>(a) + valueOf<double>(b)); }, true,
        randomDoubles(300, -40, 40));
    Rows pairsOfHalves;
    for (U i = 0; i < 200; ++i) {
        auto half = [&](U n) { return U{kBinary16.close(n * 0.25 - 20)}; };
        pairsOfHalves.push_back(
            {half(i) << 16 | half(i * 3), half(i * 7 % 100) << 16 | half(200 - i), 0});
    }
    check<U>(
        "add.noftz", "f16x2", false,
        [](U a, U b, U) -> U {
            auto sum = [](U x, U y) {
                return U{kBinary16.close(kBinary16.open(x) + kBinary16.open(y))};
            };
            return sum(a >> 16, b >> 16) << 16 | sum(a & 0xffff, b & 0xffff);
        },
        true, packedRows(pairsOfHalves, isSoftwareGpu()));
    check<uint16_t>(
        "add.noftz", "f16", false,
        [](uint16_t a, uint16_t b, uint16_t) -> uint16_t {
            return kBinary16.close(kBinary16.open(a) + kBinary16.open(b));
        },
        true, pairsOfHalves);
}

TEST_F(Atomic, OnBrain16) {
    NEEDS(90);
    Rows rows;
    for (U i = 0; i < 200; ++i) {
        auto brain = [&](U n) { return U{kBrain16.close(n * 0.25 - 20)}; };
        rows.push_back(
            {brain(i) << 16 | brain(i * 3 % 64), brain(i * 7 % 64) << 16 | brain(200 - i), 0});
    }
    check<U>(
        "add.noftz", "bf16x2", false,
        [](U a, U b, U) -> U {
            auto sum = [](U x, U y) {
                return U{kBrain16.close(kBrain16.open(x) + kBrain16.open(y))};
            };
            return sum(a >> 16, b >> 16) << 16 | sum(a & 0xffff, b & 0xffff);
        },
        true, packedRows(rows, isSoftwareGpu()));
}

class Contention : public WarpTest {};

TEST_F(Contention, LosesNothing) {
    for (const char* order : {"", ".relaxed.gpu", ".acq_rel.gpu", ".release.sys", ".acquire.sys"}) {
        Module module(head() + R"(
.visible .entry count(.param .u64 out)
{
    .reg .b64 %to; .reg .b32 %i, %old; .reg .pred %p;
    ld.param.u64 %to, [out]; mov.u32 %i, 0;
$L_again:
    atom)" + order + R"(.global.add.u32 %old, [%to], 1;
    red.relaxed.gpu.global.add.u64 [%to+8], 3;
    red.global.add.f32 [%to+16], 0f3f800000;
    add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 10; @%p bra $L_again;
    ret;
})");
        ASSERT_TRUE(module.loaded());
        Buffer<U> out(6);
        ASSERT_OK(run(module.function("count"), {64}, {128}, 0, out.address()));
        const std::vector<U> got = out.read();
        EXPECT_EQ(got[0], 64u * 128 * 10);
        EXPECT_EQ(got[2], 64u * 128 * 30);
        EXPECT_EQ(valueOf<float>(got[4]), 81920.0f);
    }
}

TEST_F(Contention, WordsOf128BitsAreWhole) {
    NEEDS(90);
    // A counter in each half, raised together by compare and swap.
    Module module(head() + R"(
.visible .entry count(.param .u64 out)
{
    .reg .b64 %to, %low, %high, %l, %h; .reg .b128 %seen, %next, %old; .reg .pred %p, %q;
    ld.param.u64 %to, [out];
    mov.u64 %low, 0; mov.b128 %seen, {%low, %low};
$L_again:
    mov.b128 {%low, %high}, %seen;
    add.u64 %l, %low, 1; add.u64 %h, %high, 3; mov.b128 %next, {%l, %h};
    atom.global.cas.b128 %old, [%to], %seen, %next;
    mov.b128 {%l, %h}, %old; setp.ne.u64 %p, %l, %low; setp.ne.or.u64 %q, %h, %high, %p;
    mov.b128 %seen, %old; @%q bra $L_again;
    ret;
})");
    ASSERT_TRUE(module.loaded());
    Buffer<W> out(2);
    ASSERT_OK(run(module.function("count"), {4}, {64}, 0, out.address()));
    EXPECT_EQ(out.read(), (std::vector<W>{256, 768}));
}

TEST_F(Contention, VectorsAddElementByElement) {
    NEEDS(90);
    std::vector<U> data(4);
    for (U& word : data) word = static_cast<U>(bitsOf(1.0f));
    runLanes(
        ".reg .f32 %f<4>; mov.f32 %f0, 0f3f800000; mov.f32 %f1, 0f40000000;"
        "mov.f32 %f2, 0f40400000; mov.f32 %f3, 0f40800000;"
        "red.relaxed.gpu.global.v4.f32.add [%data], {%f0, %f1, %f2, %f3}; mov.u32 %out0, 0;",
        1, &data);
    for (U i = 0; i < 4; ++i) EXPECT_EQ(valueOf<float>(data[i]), 1.0f + 32 * (i + 1.0f));
}

}  // namespace
}  // namespace juice::truth

// Integer arithmetic and bit operations, each against its definition.
#include <bit>
#include <functional>

#include "native/softgpu/test/harness.h"

namespace juice::softgpu::test {
namespace {

using U = uint32_t;
using W = uint64_t;

const std::vector<W> kPairs = {0x0000000000000000, 0x0000000100000002, 0xffffffff00000001,
                               0x80000000ffffffff, 0x7fffffff80000000, 0x12345678deadbeef,
                               0x0000002000000003, 0xffffffffffffffff, 0x0000001f80000001,
                               0xfffffff000ff00ff, 0x0000000700000000, 0x8000000080000000};

/// Runs "op" on %r2 = low half and %r3 = high half of each input; the result is in %r4.
void binary(const std::string& op, const std::function<U(U, U)>& want) {
    auto got = evaluate("ld.global.v2.u32 {%r2, %r3}, [%rd2];\n" + op +
                            "\ncvt.u64.u32 %rd5, %r4; st.global.u64 [%rd1], %rd5;",
                        kPairs);
    ASSERT_EQ(got.size(), kPairs.size());
    for (size_t i = 0; i < kPairs.size(); ++i) {
        U a = static_cast<U>(kPairs[i]), b = static_cast<U>(kPairs[i] >> 32);
        EXPECT_EQ(got[i], want(a, b)) << op << " of " << a << " and " << b;
    }
}

/// The same for one 64-bit input in %rd4 and result in %rd5; %rd6 is the input rotated by 32.
void wide(const std::string& op, const std::function<W(W, W)>& want) {
    auto got = evaluate(
        "ld.global.u64 %rd4, [%rd2]; mov.b64 {%r2, %r3}, %rd4; mov.b64 %rd6, {%r3, %r2};\n" + op +
            "\nst.global.u64 [%rd1], %rd5;",
        kPairs);
    ASSERT_EQ(got.size(), kPairs.size());
    for (size_t i = 0; i < kPairs.size(); ++i) {
        W a = kPairs[i];
        EXPECT_EQ(got[i], want(a, std::rotl(a, 32))) << op << " of " << a;
    }
}

int32_t s(U value) {
    return static_cast<int32_t>(value);
}
int64_t s(W value) {
    return static_cast<int64_t>(value);
}
U clamp(int64_t value) {
    return static_cast<U>(std::min<int64_t>(std::max<int64_t>(value, INT32_MIN), INT32_MAX));
}

TEST(Integer, addsSubtractsAndMultipliesWithWrapping) {
    binary("add.s32 %r4, %r2, %r3;", [](U a, U b) { return a + b; });
    binary("add.sat.s32 %r4, %r2, %r3;", [](U a, U b) { return clamp(int64_t{s(a)} + s(b)); });
    binary("sub.u32 %r4, %r2, %r3;", [](U a, U b) { return a - b; });
    binary("sub.sat.s32 %r4, %r2, %r3;", [](U a, U b) { return clamp(int64_t{s(a)} - s(b)); });
    binary("mul.lo.s32 %r4, %r2, %r3;", [](U a, U b) { return a * b; });
    binary("mul.hi.u32 %r4, %r2, %r3;", [](U a, U b) { return static_cast<U>(W{a} * b >> 32); });
    binary("mul.hi.s32 %r4, %r2, %r3;",
           [](U a, U b) { return static_cast<U>(int64_t{s(a)} * s(b) >> 32); });
    binary("mad.lo.s32 %r4, %r2, %r3, 7;", [](U a, U b) { return a * b + 7; });
    binary("mad.hi.u32 %r4, %r2, %r3, %r2;",
           [](U a, U b) { return static_cast<U>(W{a} * b >> 32) + a; });
    binary("mad.hi.sat.s32 %r4, %r2, %r3, %r2;",
           [](U a, U b) { return clamp((int64_t{s(a)} * s(b) >> 32) + s(a)); });
    binary("mul24.lo.u32 %r4, %r2, %r3;",
           [](U a, U b) { return static_cast<U>(W{a & 0xffffff} * (b & 0xffffff)); });
    binary("mad24.hi.s32 %r4, %r2, %r3, %r2;", [](U a, U b) {
        auto low = [](U v) { return int64_t{s(v << 8) >> 8}; };
        return static_cast<U>(low(a) * low(b) >> 16) + a;
    });
    wide("mul.wide.u32 %rd5, %r2, %r3;", [](W a, W) { return (a & ~0u) * (a >> 32); });
    wide("mul.wide.s32 %rd5, %r2, %r3;",
         [](W a, W) { return static_cast<W>(int64_t{s(U(a))} * s(U(a >> 32))); });
    wide("mad.wide.s32 %rd5, %r2, %r3, %rd4;",
         [](W a, W) { return static_cast<W>(int64_t{s(U(a))} * s(U(a >> 32))) + a; });
    wide("mul.lo.u64 %rd5, %rd4, %rd6;", [](W a, W b) { return a * b; });
    wide("mul.hi.u64 %rd5, %rd4, %rd6;",
         [](W a, W b) { return static_cast<W>(static_cast<unsigned __int128>(a) * b >> 64); });
    wide("mul.hi.s64 %rd5, %rd4, %rd6;",
         [](W a, W b) { return static_cast<W>(static_cast<__int128>(s(a)) * s(b) >> 64); });
}

TEST(Integer, worksInSixteenBits) {
    binary("mov.b32 {%h1, %h2}, %r2; mul.wide.s16 %r4, %h1, %h2;", [](U a, U) {
        return static_cast<U>(static_cast<int16_t>(a) * static_cast<int16_t>(a >> 16));
    });
    binary("mov.b32 {%h1, %h2}, %r2; add.s16 %h3, %h1, %h2; cvt.s32.s16 %r4, %h3;", [](U a, U) {
        return static_cast<U>(static_cast<int16_t>(static_cast<uint16_t>(a) + (a >> 16)));
    });
    binary("mov.b32 {%h1, %h2}, %r2; shr.s16 %h3, %h1, 3; cvt.u32.u16 %r4, %h3;", [](U a, U) {
        return static_cast<U>(static_cast<uint16_t>(static_cast<int16_t>(a) >> 3));
    });
    binary("mov.b32 {%h1, %h2}, %r2; min.u16 %h3, %h1, %h2; mov.b32 %r4, {%h3, %h1};",
           [](U a, U) { return std::min(a & 0xffff, a >> 16) | a << 16; });
}

TEST(Integer, dividesWithoutFaulting) {
    binary("div.s32 %r4, %r2, %r3;", [](U a, U b) {
        return b == 0 ? ~0u : b == ~0u ? 0 - a : static_cast<U>(s(a) / s(b));
    });
    binary("div.u32 %r4, %r2, %r3;", [](U a, U b) { return b == 0 ? ~0u : a / b; });
    binary("rem.s32 %r4, %r2, %r3;", [](U a, U b) {
        return b == 0 ? ~0u : b == ~0u ? 0 : static_cast<U>(s(a) % s(b));
    });
    wide("div.u64 %rd5, %rd4, %rd6;", [](W a, W b) { return b == 0 ? ~W{0} : a / b; });
    wide("rem.s64 %rd5, %rd4, %rd6;", [](W a, W b) {
        return b == 0 ? ~W{0} : s(b) == -1 ? 0 : static_cast<W>(s(a) % s(b));
    });
}

TEST(Integer, comparesAndMeasures) {
    binary("min.s32 %r4, %r2, %r3;", [](U a, U b) { return static_cast<U>(std::min(s(a), s(b))); });
    binary("max.u32 %r4, %r2, %r3;", [](U a, U b) { return std::max(a, b); });
    binary("abs.s32 %r4, %r2;", [](U a, U) { return s(a) < 0 ? 0 - a : a; });
    binary("neg.s32 %r4, %r2;", [](U a, U) { return 0 - a; });
    binary("sad.s32 %r4, %r2, %r3, 5;", [](U a, U b) { return (s(a) < s(b) ? b - a : a - b) + 5; });
    wide("max.s64 %rd5, %rd4, %rd6;",
         [](W a, W b) { return static_cast<W>(std::max(s(a), s(b))); });
}

TEST(Integer, carriesAcrossWords) {
    wide(
        "add.cc.u32 %r4, %r2, %r3; addc.cc.u32 %r5, %r3, %r2; addc.u32 %r6, 0, 0;\n"
        "xor.b32 %r5, %r5, %r6; mov.b64 %rd5, {%r4, %r5};",
        [](W a, W b) {
            unsigned __int128 sum = static_cast<unsigned __int128>(a) + b;
            return static_cast<W>(sum) ^ static_cast<W>(sum >> 64) << 32;
        });
    wide("sub.cc.u32 %r4, %r2, %r3; subc.u32 %r5, %r3, %r2; mov.b64 %rd5, {%r4, %r5};",
         [](W a, W b) { return a - b; });
    wide(
        "mad.lo.cc.u32 %r4, %r2, %r3, %r2; madc.hi.u32 %r5, %r2, %r3, %r3;"
        "mov.b64 %rd5, {%r4, %r5};",
        [](W a, W) { return (a & ~0u) * (a >> 32) + a; });
}

TEST(Bits, combineAndShift) {
    binary("and.b32 %r4, %r2, %r3;", [](U a, U b) { return a & b; });
    binary("or.b32 %r4, %r2, 0x10;", [](U a, U) { return a | 16; });
    binary("xor.b32 %r4, %r2, %r3;", [](U a, U b) { return a ^ b; });
    binary("not.b32 %r4, %r2;", [](U a, U) { return ~a; });
    binary("cnot.b32 %r4, %r2;", [](U a, U) { return a == 0 ? 1 : 0; });
    binary("shl.b32 %r4, %r2, %r3;", [](U a, U b) { return b < 32 ? a << b : 0; });
    binary("shr.u32 %r4, %r2, %r3;", [](U a, U b) { return b < 32 ? a >> b : 0; });
    binary("shr.s32 %r4, %r2, %r3;",
           [](U a, U b) { return static_cast<U>(s(a) >> std::min(b, 31u)); });
    wide("shl.b64 %rd5, %rd4, %r3;", [](W a, W) { return a >> 32 < 64 ? a << (a >> 32) : 0; });
    wide("shr.s64 %rd5, %rd4, 40;", [](W a, W) { return static_cast<W>(s(a) >> 40); });
    binary("shf.l.wrap.b32 %r4, %r2, %r3, 8;", [](U a, U b) { return b << 8 | a >> 24; });
    binary("shf.r.wrap.b32 %r4, %r2, %r3, 40;", [](U a, U b) { return a >> 8 | b << 24; });
    binary("shf.r.clamp.b32 %r4, %r2, %r3, 40;", [](U, U b) { return b; });
    binary("shf.l.clamp.b32 %r4, %r2, %r3, 32;", [](U a, U) { return a; });
}

TEST(Bits, evaluateEveryTableOfThreeInputs) {
    for (U table : {0x00u, 0x01u, 0x80u, 0x96u, 0xe8u, 0xcau, 0x3cu, 0xffu, 0x1bu}) {
        binary(
            "mov.u32 %r5, 0x0f0f3355; lop3.b32 %r4, %r2, %r3, %r5, " + std::to_string(table) + ";",
            [table](U a, U b) {
                U result = 0, c = 0x0f0f3355;
                for (int i = 0; i < 32; ++i) {
                    U index = (a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1);
                    result |= (table >> index & 1) << i;
                }
                return result;
            });
    }
}

U bfe(U a, U position, U length, bool negative) {
    position &= 255;
    length &= 255;
    U top = negative && length != 0 ? a >> std::min(position + length - 1, 31u) & 1 : 0;
    U result = 0;
    for (U i = 0; i < 32; ++i) {
        U bit = i < length && position + i < 32 ? a >> (position + i) & 1 : top;
        result |= bit << i;
    }
    return result;
}

TEST(Bits, extractAndInsertFields) {
    for (auto [position, length] : {std::pair{0, 32}, {4, 8}, {24, 16}, {31, 1}, {40, 3}, {3, 0}}) {
        U p = static_cast<U>(position), n = static_cast<U>(length);
        std::string field = std::to_string(p) + ", " + std::to_string(n) + ";";
        binary("bfe.u32 %r4, %r2, " + field, [=](U a, U) { return bfe(a, p, n, false); });
        binary("bfe.s32 %r4, %r2, " + field, [=](U a, U) { return bfe(a, p, n, true); });
        binary("bfi.b32 %r4, %r2, %r3, " + field, [=](U a, U b) {
            for (U i = 0; i < n && p + i < 32; ++i) {
                b = (b & ~(1u << (p + i))) | (a >> i & 1) << (p + i);
            }
            return b;
        });
    }
    wide("bfe.u64 %rd5, %rd4, 20, 24;", [](W a, W) { return a >> 20 & 0xffffff; });
    wide("bfe.s64 %rd5, %rd4, 40, 24;", [](W a, W) { return static_cast<W>(s(a) >> 40); });
    wide("bfi.b64 %rd5, %rd4, %rd6, 32, 32;", [](W a, W b) { return (b & ~0u) | a << 32; });
}

TEST(Bits, countFindAndReverse) {
    binary("popc.b32 %r4, %r2;", [](U a, U) { return static_cast<U>(std::popcount(a)); });
    binary("clz.b32 %r4, %r2;", [](U a, U) { return static_cast<U>(std::countl_zero(a)); });
    binary("brev.b32 %r4, %r2;", [](U a, U) {
        U result = 0;
        for (int i = 0; i < 32; ++i) result |= (a >> i & 1) << (31 - i);
        return result;
    });
    binary("bfind.u32 %r4, %r2;",
           [](U a, U) { return a == 0 ? ~0u : 31 - static_cast<U>(std::countl_zero(a)); });
    binary("bfind.s32 %r4, %r2;", [](U a, U) {
        U bits = s(a) < 0 ? ~a : a;
        return bits == 0 ? ~0u : 31 - static_cast<U>(std::countl_zero(bits));
    });
    binary("bfind.shiftamt.u32 %r4, %r2;",
           [](U a, U) { return a == 0 ? ~0u : static_cast<U>(std::countl_zero(a)); });
    wide("popc.b64 %r4, %rd4; cvt.u64.u32 %rd5, %r4;",
         [](W a, W) { return static_cast<W>(std::popcount(a)); });
    wide("clz.b64 %r4, %rd4; cvt.u64.u32 %rd5, %r4;",
         [](W a, W) { return static_cast<W>(std::countl_zero(a)); });
}

TEST(Bits, permuteBytes) {
    auto permute = [](U a, U b, U c) {
        W pair = W{b} << 32 | a;
        U result = 0;
        for (int i = 0; i < 4; ++i) {
            U selector = c >> (4 * i) & 15, byte = pair >> (8 * (selector & 7)) & 255;
            if (selector & 8) byte = byte & 128 ? 255 : 0;
            result |= byte << (8 * i);
        }
        return result;
    };
    for (U c : {0x3210u, 0x7654u, 0x0123u, 0x8091u, 0xfedcu}) {
        binary("prmt.b32 %r4, %r2, %r3, " + std::to_string(c) + ";",
               [=](U a, U b) { return permute(a, b, c); });
    }
    binary("prmt.b32.f4e %r4, %r2, %r3, 1;", [](U a, U b) { return a >> 8 | b << 24; });
    binary("prmt.b32.b4e %r4, %r2, %r3, 1;", [](U a, U b) {
        return (a >> 8 & 255) | (a & 255) << 8 | b >> 24 << 16 | (b >> 16 & 255) << 24;
    });
    binary("prmt.b32.rc8 %r4, %r2, %r3, 2;", [](U a, U) { return (a >> 16 & 255) * 0x01010101; });
    binary("prmt.b32.rc16 %r4, %r2, %r3, 1;", [](U a, U) { return (a >> 16) * 0x10001; });
    binary("prmt.b32.ecl %r4, %r2, %r3, 1;",
           [](U a, U) { return (a & 0xffffff00) | (a >> 8 & 255); });
    binary("prmt.b32.ecr %r4, %r2, %r3, 1;",
           [](U a, U) { return (a & 255) | (a >> 8 & 255) * 0x01010100; });
}

TEST(Predicates, compareIntegersAndCombine) {
    auto test = [](const std::string& op, const std::function<bool(U, U)>& want) {
        binary("setp.ne.s32 %p2, %r2, 1;\n" + op + "\nselp.u32 %r4, 1, 0, %p1;",
               [&](U a, U b) { return want(a, b) ? 1u : 0u; });
    };
    test("setp.lt.s32 %p1, %r2, %r3;", [](U a, U b) { return s(a) < s(b); });
    test("setp.lt.u32 %p1, %r2, %r3;", [](U a, U b) { return a < b; });
    test("setp.hs.u32 %p1, %r2, %r3;", [](U a, U b) { return a >= b; });
    test("setp.eq.b32 %p1, %r2, %r3;", [](U a, U b) { return a == b; });
    test("setp.gt.and.s32 %p1, %r2, %r3, %p2;", [](U a, U b) { return s(a) > s(b) && a != 1; });
    test("setp.gt.or.s32 %p1, %r2, %r3, !%p2;", [](U a, U b) { return s(a) > s(b) || a == 1; });
    test("setp.le.xor.u32 %p3|%p1, %r2, %r3, %p2;", [](U a, U b) { return (a > b) != (a != 1); });
    test("not.pred %p1, %p2;", [](U a, U) { return a == 1; });
    test("setp.lt.u32 %p3, %r2, %r3; and.pred %p1, %p2, %p3;",
         [](U a, U b) { return a < b && a != 1; });
    test("mov.pred %p1, %p2;", [](U a, U) { return a != 1; });
    binary("set.lt.u32.s32 %r4, %r2, %r3;", [](U a, U b) { return s(a) < s(b) ? ~0u : 0; });
    binary("set.ge.f32.u32 %f1, %r2, %r3; mov.b32 %r4, %f1;",
           [](U a, U b) { return a >= b ? 0x3f800000 : 0; });
    binary("slct.b32.s32 %r4, 11, 22, %r2;", [](U a, U) { return s(a) >= 0 ? 11 : 22; });
    wide("setp.lt.s64 %p1, %rd4, %rd6; selp.b64 %rd5, %rd4, %rd6, %p1;",
         [](W a, W b) { return s(a) < s(b) ? a : b; });
}

TEST(Predicates, guardSingleInstructions) {
    binary(
        "mov.u32 %r4, 1; setp.gt.u32 %p1, %r2, %r3;\n@%p1 mov.u32 %r4, 2;\n"
        "@!%p1 add.u32 %r4, %r4, 10;",
        [](U a, U b) { return a > b ? 2 : 11; });
}

}  // namespace
}  // namespace juice::softgpu::test

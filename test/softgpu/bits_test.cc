// Bits: logic, shifts, fields, counting, permutation.
#include <algorithm>
#include <bit>

#include "test/softgpu/table.h"

namespace juice::truth {
namespace {

using H = uint16_t;
using U = uint32_t;
using W = uint64_t;

class Bits : public TableTest {
  protected:
    const Rows words = joined(pairs(troublesome<U>()), randomRows(500));
    const Rows doublewords = joined(pairs(troublesome<W>()), randomRows(500));
    const Rows three = joined(triples(troublesome<U>()), randomRows(500));
    /// Values with small second and third operands: positions and lengths.
    Rows fields() const {
        Rows rows;
        for (const Row& row : joined(each(troublesome<W>()), randomRows(40, 3))) {
            for (W position : {0, 1, 5, 31, 32, 33, 63, 64, 255})
                for (W length : {0, 1, 4, 31, 32, 33, 63, 64, 255})
                    rows.push_back({row[0], position, length});
        }
        return rows;
    }
};

TEST_F(Bits, CombinesLogically) {
    expectEach("and.b32 %r4, %r1, %r2;", words, [](U a, U b) -> U { return a & b; });
    expectEach("or.b64 %q4, %q1, %q2;", doublewords, [](W a, W b) -> W { return a | b; });
    expectEach("xor.b16 %h4, %h1, %h2;", words, [](H a, H b) -> H { return a ^ b; });
    expectEach("not.b32 %r4, %r1;", words, [](U a) -> U { return ~a; });
    expectEach("not.b64 %q4, %q1;", doublewords, [](W a) -> W { return ~a; });
    expectEach("not.b16 %h4, %h1;", words, [](H a) -> H { return static_cast<H>(~a); });
    expectEach("cnot.b32 %r4, %r1;", words, [](U a) -> U { return a == 0; });
    expectEach("cnot.b64 %q4, %q1;", doublewords, [](W a) -> W { return a == 0; });
    std::string predicates =
        "and.b32 %r5, %r1, 1; setp.ne.u32 %p1, %r5, 0; and.b32 %r5, %r2, 1;"
        "setp.ne.u32 %p2, %r5, 0;";
    expectEach(predicates + "and.pred %p4, %p1, %p2;", words,
               [](U a, U b) { return (a & b & 1) != 0; });
    expectEach(predicates + "or.pred %p4, %p1, %p2;", words,
               [](U a, U b) { return ((a | b) & 1) != 0; });
    expectEach(predicates + "xor.pred %p4, %p1, %p2; not.pred %p4, %p4;", words,
               [](U a, U b) { return ((a ^ b) & 1) == 0; });
}

TEST_F(Bits, LooksUpThreeOperandLogic) {
    for (unsigned table : {0x00u, 0x1bu, 0x80u, 0x96u, 0xcau, 0xe8u, 0xf8u, 0xffu}) {
        auto reference = [table](U a, U b, U c) -> U {
            U result = 0;
            for (int i = 0; i < 32; ++i) {
                unsigned index = (a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1);
                result |= (table >> index & 1) << i;
            }
            return result;
        };
        expectEach("lop3.b32 %r4, %r1, %r2, %r3, " + std::to_string(table) + ";", three, reference);
    }
}

TEST_F(Bits, TellsWhetherLogicLeftAnything) {
    NEEDS(80);
    expectEach("setp.gt.u32 %p2, %r3, 100; lop3.or.b32 %r5|%p4, %r1, %r2, %r3, 0xc0, %p2;", three,
               [](U a, U b, U c) { return (a & b) != 0 || c > 100; });
    expectEach("setp.gt.u32 %p2, %r3, 100; lop3.and.b32 _|%p4, %r1, %r2, %r3, 0xc0, !%p2;", three,
               [](U a, U b, U c) { return (a & b) != 0 && c <= 100; });
}

TEST_F(Bits, Shifts) {
    expectEach("shl.b32 %r4, %r1, %r2;", words, [](U a, U b) -> U { return b > 31 ? 0 : a << b; });
    expectEach("shr.u32 %r4, %r1, %r2;", words, [](U a, U b) -> U { return b > 31 ? 0 : a >> b; });
    expectEach("shr.s32 %r4, %r1, %r2;", words, [](U a, U b) -> U {
        return static_cast<U>(static_cast<int32_t>(a) >> std::min(b, 31u));
    });
    expectEach("shl.b64 %q4, %q1, %r2;", doublewords,
               [](W a, U b) -> W { return b > 63 ? 0 : a << b; });
    expectEach("shr.u64 %q4, %q1, %r2;", doublewords,
               [](W a, U b) -> W { return b > 63 ? 0 : a >> b; });
    expectEach("shr.s64 %q4, %q1, %r2;", doublewords, [](W a, U b) -> W {
        return static_cast<W>(static_cast<int64_t>(a) >> std::min(b, 63u));
    });
    expectEach("shl.b16 %h4, %h1, %r2;", words,
               [](H a, U b) -> H { return static_cast<H>(b > 15 ? 0 : a << b); });
    expectEach("shr.s16 %h4, %h1, %r2;", words, [](H a, U b) -> H {
        return static_cast<H>(static_cast<int16_t>(a) >> std::min(b, 15u));
    });
    expectEach("shf.l.clamp.b32 %r4, %r1, %r2, %r3;", three, [](U a, U b, U c) -> U {
        return static_cast<U>(((W{b} << 32 | a) << std::min(c, 32u)) >> 32);
    });
    expectEach("shf.l.wrap.b32 %r4, %r1, %r2, %r3;", three, [](U a, U b, U c) -> U {
        return static_cast<U>(((W{b} << 32 | a) << (c & 31)) >> 32);
    });
    expectEach("shf.r.clamp.b32 %r4, %r1, %r2, %r3;", three, [](U a, U b, U c) -> U {
        return static_cast<U>((W{b} << 32 | a) >> std::min(c, 32u));
    });
    expectEach("shf.r.wrap.b32 %r4, %r1, %r2, %r3;", three,
               [](U a, U b, U c) -> U { return static_cast<U>((W{b} << 32 | a) >> (c & 31)); });
}

TEST_F(Bits, CountsAndFinds) {
    expectEach("popc.b32 %r4, %r1;", words, [](U a) -> U { return std::popcount(a); });
    expectEach("popc.b64 %r4, %q1;", doublewords, [](W a) -> U { return std::popcount(a); });
    expectEach("clz.b32 %r4, %r1;", words, [](U a) -> U { return std::countl_zero(a); });
    expectEach("clz.b64 %r4, %q1;", doublewords, [](W a) -> U { return std::countl_zero(a); });
    auto top = [](W bits) -> U {
        return bits == 0 ? ~0u : static_cast<U>(63 - std::countl_zero(bits));
    };
    expectEach("bfind.u32 %r4, %r1;", words, [=](U a) -> U { return top(a); });
    expectEach("bfind.s32 %r4, %r1;", words, [=](U a) -> U { return top(a >> 31 != 0 ? ~a : a); });
    expectEach("bfind.u64 %r4, %q1;", doublewords, [=](W a) -> U { return top(a); });
    expectEach("bfind.s64 %r4, %q1;", doublewords,
               [=](W a) -> U { return top(a >> 63 != 0 ? ~a : a); });
    expectEach("bfind.shiftamt.u32 %r4, %r1;", words,
               [=](U a) -> U { return a == 0 ? ~0u : 31 - top(a); });
    expectEach("bfind.shiftamt.u64 %r4, %q1;", doublewords,
               [=](W a) -> U { return a == 0 ? ~0u : 63 - top(a); });
    auto reversed = [](W bits, int width) {
        W result = 0;
        for (int i = 0; i < width; ++i) result |= (bits >> i & 1) << (width - 1 - i);
        return result;
    };
    expectEach("brev.b32 %r4, %r1;", words,
               [=](U a) -> U { return static_cast<U>(reversed(a, 32)); });
    expectEach("brev.b64 %q4, %q1;", doublewords, [=](W a) -> W { return reversed(a, 64); });
    expectTable<U>("fns.b32 %r4, %r1, %r2, %r3;", {{0b10110, 0, 1, 1},
                                                   {0b10110, 0, 2, 2},
                                                   {0b10110, 0, 3, 4},
                                                   {0b10110, 0, 4, 0xffffffff},
                                                   {0b10110, 2, 1, 2},
                                                   {0b10110, 3, 1, 4},
                                                   {0b10110, 2, 0, 2},
                                                   {0b10110, 3, 0, 0xffffffff},
                                                   {0b10110, 3, static_cast<U>(-1), 2},
                                                   {0b10110, 4, static_cast<U>(-3), 1},
                                                   {0x80000001, 31, static_cast<U>(-2), 0},
                                                   {0, 0, 1, 0xffffffff}});
}

TEST_F(Bits, ExtractsAndInsertsFields) {
    // Positions and lengths up to 255, which the manual defines.
    auto extract = [](W a, U position, U length, U width, bool isSigned) -> W {
        if (length == 0) return 0;
        W sign = isSigned ? a >> std::min(position + length - 1, width - 1) & 1 : 0;
        W result = 0;
        for (U i = 0; i < width; ++i) {
            bool inside = i < length && position + i < width;
            result |= (inside ? a >> (position + i) & 1 : sign) << i;
        }
        return result;
    };
    expectEach("bfe.u32 %r4, %r1, %r2, %r3;", fields(),
               [=](U a, U p, U n) -> U { return static_cast<U>(extract(a, p, n, 32, false)); });
    expectEach("bfe.s32 %r4, %r1, %r2, %r3;", fields(),
               [=](U a, U p, U n) -> U { return static_cast<U>(extract(a, p, n, 32, true)); });
    expectEach("bfe.u64 %q4, %q1, %r2, %r3;", fields(),
               [=](W a, U p, U n) -> W { return extract(a, p, n, 64, false); });
    expectEach("bfe.s64 %q4, %q1, %r2, %r3;", fields(),
               [=](W a, U p, U n) -> W { return extract(a, p, n, 64, true); });
    auto insert = [](W a, W b, U position, U length, U width) -> W {
        for (U i = 0; i < length && position + i < width; ++i) {
            W bit = W{1} << (position + i);
            b = (b & ~bit) | ((a >> i & 1) << (position + i));
        }
        return b;
    };
    expectEach("bfi.b32 %r4, %r1, 0xa5a5a5a5, %r2, %r3;", fields(),
               [=](U a, U p, U n) -> U { return static_cast<U>(insert(a, 0xa5a5a5a5, p, n, 32)); });
    expectEach("bfi.b64 %q4, %q1, 0xa5a5a5a55a5a5a5a, %r2, %r3;", fields(),
               [=](W a, U p, U n) -> W { return insert(a, 0xa5a5a5a55a5a5a5a, p, n, 64); });
}

TEST_F(Bits, MakesMasksAndExtendsSigns) {
    expectTable<U>("bmsk.clamp.b32 %r4, %r1, %r2;", {{0, 0, 0, 0},
                                                     {0, 4, 0, 0xf},
                                                     {4, 4, 0, 0xf0},
                                                     {28, 8, 0, 0xf0000000},
                                                     {0, 32, 0, 0xffffffff},
                                                     {31, 1, 0, 0x80000000},
                                                     {32, 4, 0, 0},
                                                     {40, 40, 0, 0}});
    expectTable<U>("bmsk.wrap.b32 %r4, %r1, %r2;",
                   {{0, 4, 0, 0xf}, {36, 4, 0, 0xf0}, {4, 36, 0, 0xf0}, {0, 32, 0, 0}});
    expectTable<U>("szext.clamp.s32 %r4, %r1, %r2;", {{0xff, 8, 0, 0xffffffff},
                                                      {0x7f, 8, 0, 0x7f},
                                                      {0x12345678, 0, 0, 0},
                                                      {0x12345678, 32, 0, 0x12345678},
                                                      {1, 1, 0, 0xffffffff}});
    expectTable<U>("szext.clamp.u32 %r4, %r1, %r2;",
                   {{0xfff, 8, 0, 0xff}, {0x12345678, 40, 0, 0x12345678}});
    expectTable<U>("szext.wrap.s32 %r4, %r1, %r2;",
                   {{0xff, 40, 0, 0xffffffff}, {0x12345678, 32, 0, 0}});
}

TEST_F(Bits, PermutesBytes) {
    expectEach("prmt.b32 %r4, %r1, %r2, %r3;", three, [](U a, U b, U c) -> U {
        W both = W{b} << 32 | a;
        U result = 0;
        for (int i = 0; i < 4; ++i) {
            U selector = c >> (4 * i) & 15;
            U byte = both >> (8 * (selector & 7)) & 0xff;
            if (selector & 8) byte = byte & 0x80 ? 0xff : 0;
            result |= byte << (8 * i);
        }
        return result;
    });
    constexpr U kA = 0x33221100, kB = 0x77665544;
    struct Mode {
        const char* name;
        std::array<U, 4> results;
    };
    const Mode kModes[] = {{"f4e", {0x33221100, 0x44332211, 0x55443322, 0x66554433}},
                           {"b4e", {0x55667700, 0x66770011, 0x77001122, 0x00112233}},
                           {"rc8", {0x00000000, 0x11111111, 0x22222222, 0x33333333}},
                           {"ecl", {0x33221100, 0x33221111, 0x33222222, 0x33333333}},
                           {"ecr", {0x00000000, 0x11111100, 0x22221100, 0x33221100}},
                           {"rc16", {0x11001100, 0x33223322, 0x11001100, 0x33223322}}};
    for (const Mode& mode : kModes) {
        std::vector<Known> table;
        for (U i = 0; i < 4; ++i) table.push_back({kA, kB, i, mode.results[i]});
        expectTable<U>("prmt.b32." + std::string(mode.name) + " %r4, %r1, %r2, %r3;", table);
    }
}

TEST_F(Bits, PacksAndUnpacksRegisters) {
    expectEach("mov.b32 {%h5, %h6}, %r1; mov.b32 %r4, {%h6, %h5};", words,
               [](U a) -> U { return a << 16 | a >> 16; });
    expectEach("mov.b64 {%r5, %r6}, %q1; mov.b64 %q4, {%r6, %r5};", doublewords,
               [](W a) -> W { return a << 32 | a >> 32; });
    expectEach("mov.b64 {%h5, %h6, %h7, %h8}, %q1; mov.b64 %q4, {%h8, %h7, %h6, %h5};", doublewords,
               [](W a) -> W {
                   return a << 48 | (a & 0xffff0000) << 16 | (a >> 16 & 0xffff0000) | a >> 48;
               });
    expectEach("mov.b32 {_, %h4}, %r1;", words, [](U a) -> H { return static_cast<H>(a >> 16); });
}

TEST_F(Bits, HoldsWordsOf128Bits) {
    expectEach(
        ".reg .b128 %o<2>; mov.b128 %o0, {%q1, %q2}; mov.b128 %o1, %o0;"
        "mov.b128 {%q5, %q6}, %o1; sub.u64 %q4, %q6, %q5;",
        doublewords, [](W a, W b) -> W { return b - a; });
}

}  // namespace
}  // namespace juice::truth

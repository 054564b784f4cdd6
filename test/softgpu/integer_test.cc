// Integer arithmetic.
#include <algorithm>
#include <cstdlib>

#include "test/softgpu/table.h"

namespace juice::truth {
namespace {

using H = uint16_t;
using U = uint32_t;
using W = uint64_t;
using Wide = unsigned __int128;

int32_t s(U value) {
    return static_cast<int32_t>(value);
}
int64_t s(W value) {
    return static_cast<int64_t>(value);
}
int16_t s(H value) {
    return static_cast<int16_t>(value);
}
/// Into the range of s32.
U clamp(int64_t value) {
    return static_cast<U>(std::clamp<int64_t>(value, INT32_MIN, INT32_MAX));
}
U highSigned(U a, U b) {
    return static_cast<U>(static_cast<W>(int64_t{s(a)} * s(b)) >> 32);
}
U highUnsigned(U a, U b) {
    return static_cast<U>(W{a} * b >> 32);
}
W highSigned(W a, W b) {
    return static_cast<W>(static_cast<Wide>(static_cast<__int128>(s(a)) * s(b)) >> 64);
}
W highUnsigned(W a, W b) {
    return static_cast<W>(static_cast<Wide>(a) * b >> 64);
}

class Integer : public TableTest {
  protected:
    const Rows halves = joined(pairs(troublesome<H>()), randomRows(200));
    const Rows words = joined(pairs(troublesome<U>()), randomRows(500));
    const Rows doublewords = joined(pairs(troublesome<W>()), randomRows(500));
    const Rows three = joined(triples(troublesome<U>()), randomRows(500));
    const Rows threeWide = joined(triples(troublesome<W>()), randomRows(500));
};

TEST_F(Integer, AddsAndSubtracts) {
    for (const char* type : {"s32", "u32"}) {
        std::string t = type;
        expectEach("add." + t + " %r4, %r1, %r2;", words, [](U a, U b) -> U { return a + b; });
        expectEach("sub." + t + " %r4, %r1, %r2;", words, [](U a, U b) -> U { return a - b; });
    }
    expectEach("add.s64 %q4, %q1, %q2;", doublewords, [](W a, W b) -> W { return a + b; });
    expectEach("sub.u64 %q4, %q1, %q2;", doublewords, [](W a, W b) -> W { return a - b; });
    expectEach("add.s16 %h4, %h1, %h2;", halves, [](H a, H b) -> H { return a + b; });
    expectEach("sub.u16 %h4, %h1, %h2;", halves, [](H a, H b) -> H { return a - b; });
    expectEach("add.sat.s32 %r4, %r1, %r2;", words,
               [](U a, U b) -> U { return clamp(int64_t{s(a)} + s(b)); });
    expectEach("sub.sat.s32 %r4, %r1, %r2;", words,
               [](U a, U b) -> U { return clamp(int64_t{s(a)} - s(b)); });
}

TEST_F(Integer, AddsPairsOfHalves) {
    NEEDS(90);
    for (const char* type : {"u16x2", "s16x2"}) {
        expectEach("add." + std::string(type) + " %r4, %r1, %r2;", words, [](U a, U b) -> U {
            return ((a + b) & 0xffff) | ((a & 0xffff0000) + (b & 0xffff0000));
        });
    }
}

TEST_F(Integer, CarriesThroughChains) {
    expectEach("add.cc.u32 %r5, %r1, %r2; addc.u32 %r4, %r3, %r1;", three,
               [](U a, U b, U c) -> U { return c + a + (W{a} + b > ~0u ? 1 : 0); });
    expectEach("sub.cc.u32 %r5, %r1, %r2; subc.u32 %r4, %r3, %r1;", three,
               [](U a, U b, U c) -> U { return c - a - (a < b ? 1 : 0); });
    // 128-bit sums and products of 64-bit halves.
    expectEach(
        "add.cc.u64 %q5, %q1, %q2; addc.cc.u64 %q6, %q3, %q1; addc.u64 %q7, 0, 0;"
        "xor.b64 %q4, %q6, %q7;",
        threeWide, [](W a, W b, W c) -> W {
            Wide middle = static_cast<Wide>(c) + a + ((static_cast<Wide>(a) + b) >> 64);
            return static_cast<W>(middle) ^ static_cast<W>(middle >> 64);
        });
    expectEach("sub.cc.s64 %q5, %q1, %q2; subc.s64 %q4, %q3, %q1;", threeWide,
               [](W a, W b, W c) -> W { return c - a - (a < b ? 1 : 0); });
    expectEach("mad.lo.cc.u32 %r5, %r1, %r2, %r3; madc.hi.u32 %r4, %r1, %r2, %r3;", three,
               [](U a, U b, U c) -> U {
                   W low = W{a * b} + c;
                   return highUnsigned(a, b) + c + static_cast<U>(low >> 32);
               });
    expectEach(
        "mad.lo.cc.u64 %q5, %q1, %q2, %q3; madc.hi.cc.u64 %q6, %q1, %q2, %q3;"
        "addc.u64 %q7, 0, 0; add.u64 %q4, %q6, %q7;",
        threeWide, [](W a, W b, W c) -> W {
            Wide low = static_cast<Wide>(a * b) + c;
            Wide high = static_cast<Wide>(highUnsigned(a, b)) + c + (low >> 64);
            return static_cast<W>(high) + static_cast<W>(high >> 64);
        });
    expectEach("mad.hi.cc.s32 %r5, %r1, %r2, %r3; addc.u32 %r4, 0, 0;", three,
               [](U a, U b, U c) -> U { return (W{highSigned(a, b)} + c) >> 32 != 0 ? 1 : 0; });
}

TEST_F(Integer, Multiplies) {
    expectEach("mul.lo.s32 %r4, %r1, %r2;", words, [](U a, U b) -> U { return a * b; });
    expectEach("mul.hi.s32 %r4, %r1, %r2;", words, [](U a, U b) -> U { return highSigned(a, b); });
    expectEach("mul.hi.u32 %r4, %r1, %r2;", words,
               [](U a, U b) -> U { return highUnsigned(a, b); });
    expectEach("mul.lo.u64 %q4, %q1, %q2;", doublewords, [](W a, W b) -> W { return a * b; });
    expectEach("mul.hi.s64 %q4, %q1, %q2;", doublewords,
               [](W a, W b) -> W { return highSigned(a, b); });
    expectEach("mul.hi.u64 %q4, %q1, %q2;", doublewords,
               [](W a, W b) -> W { return highUnsigned(a, b); });
    expectEach("mul.lo.s16 %h4, %h1, %h2;", halves,
               [](H a, H b) -> H { return static_cast<H>(U{a} * b); });
    expectEach("mul.hi.s16 %h4, %h1, %h2;", halves,
               [](H a, H b) -> H { return static_cast<H>(s(a) * s(b) >> 16); });
    expectEach("mul.hi.u16 %h4, %h1, %h2;", halves,
               [](H a, H b) -> H { return static_cast<H>(U{a} * b >> 16); });
    expectEach("mul.wide.s16 %r4, %h1, %h2;", halves,
               [](H a, H b) -> U { return static_cast<U>(s(a) * s(b)); });
    expectEach("mul.wide.u16 %r4, %h1, %h2;", halves, [](H a, H b) -> U { return U{a} * b; });
    expectEach("mul.wide.s32 %q4, %r1, %r2;", words,
               [](U a, U b) -> W { return static_cast<W>(int64_t{s(a)} * s(b)); });
    expectEach("mul.wide.u32 %q4, %r1, %r2;", words, [](U a, U b) -> W { return W{a} * b; });
    expectEach("mul24.lo.u32 %r4, %r1, %r2;", words,
               [](U a, U b) -> U { return static_cast<U>(W{a & 0xffffff} * (b & 0xffffff)); });
    expectEach("mul24.hi.u32 %r4, %r1, %r2;", words, [](U a, U b) -> U {
        return static_cast<U>(W{a & 0xffffff} * (b & 0xffffff) >> 16);
    });
    expectEach("mul24.lo.s32 %r4, %r1, %r2;", words, [](U a, U b) -> U {
        return static_cast<U>(int64_t{s(a << 8) >> 8} * (s(b << 8) >> 8));
    });
    expectEach("mul24.hi.s32 %r4, %r1, %r2;", words, [](U a, U b) -> U {
        return static_cast<U>(int64_t{s(a << 8) >> 8} * (s(b << 8) >> 8) >> 16);
    });
}

TEST_F(Integer, MultipliesAndAdds) {
    expectEach("mad.lo.u32 %r4, %r1, %r2, %r3;", three,
               [](U a, U b, U c) -> U { return a * b + c; });
    expectEach("mad.hi.s32 %r4, %r1, %r2, %r3;", three,
               [](U a, U b, U c) -> U { return highSigned(a, b) + c; });
    expectEach("mad.hi.u32 %r4, %r1, %r2, %r3;", three,
               [](U a, U b, U c) -> U { return highUnsigned(a, b) + c; });
    expectEach("mad.hi.sat.s32 %r4, %r1, %r2, %r3;", three,
               [](U a, U b, U c) -> U { return clamp(int64_t{s(highSigned(a, b))} + s(c)); });
    expectEach("mad.wide.s32 %q4, %r1, %r2, %q3;", threeWide,
               [](U a, U b, W c) -> W { return static_cast<W>(int64_t{s(a)} * s(b)) + c; });
    expectEach("mad.wide.u32 %q4, %r1, %r2, %q3;", threeWide,
               [](U a, U b, W c) -> W { return W{a} * b + c; });
    expectEach("mad.wide.u16 %r4, %h1, %h2, %r3;", three,
               [](H a, H b, U c) -> U { return U{a} * b + c; });
    expectEach("mad.wide.s16 %r4, %h1, %h2, %r3;", three,
               [](H a, H b, U c) -> U { return static_cast<U>(s(a) * s(b)) + c; });
    expectEach("mad.lo.s16 %h4, %h1, %h2, %h3;", three,
               [](H a, H b, H c) -> H { return static_cast<H>(U{a} * b + c); });
    expectEach("mad.lo.s64 %q4, %q1, %q2, %q3;", threeWide,
               [](W a, W b, W c) -> W { return a * b + c; });
    expectEach("mad.hi.u64 %q4, %q1, %q2, %q3;", threeWide,
               [](W a, W b, W c) -> W { return highUnsigned(a, b) + c; });
    expectEach("mad24.lo.u32 %r4, %r1, %r2, %r3;", three, [](U a, U b, U c) -> U {
        return static_cast<U>(W{a & 0xffffff} * (b & 0xffffff)) + c;
    });
    expectEach("mad24.hi.s32 %r4, %r1, %r2, %r3;", three, [](U a, U b, U c) -> U {
        return static_cast<U>(int64_t{s(a << 8) >> 8} * (s(b << 8) >> 8) >> 16) + c;
    });
    expectEach("mad24.hi.sat.s32 %r4, %r1, %r2, %r3;", three, [](U a, U b, U c) -> U {
        return clamp(s(static_cast<U>(int64_t{s(a << 8) >> 8} * (s(b << 8) >> 8) >> 16)) +
                     int64_t{s(c)});
    });
}

TEST_F(Integer, Divides) {
    // A zero divisor gives all ones, by convention of the hardware: the manual leaves it open.
    Rows some, someWide;
    for (const Row& row : words)
        if (static_cast<U>(row[1]) != 0) some.push_back(row);
    for (const Row& row : doublewords)
        if (row[1] != 0) someWide.push_back(row);
    expectEach("div.u32 %r4, %r1, %r2;", some, [](U a, U b) -> U { return a / b; });
    expectEach("rem.u32 %r4, %r1, %r2;", some, [](U a, U b) -> U { return a % b; });
    expectEach("div.s32 %r4, %r1, %r2;", some,
               [](U a, U b) -> U { return static_cast<U>(int64_t{s(a)} / s(b)); });
    expectEach("rem.s32 %r4, %r1, %r2;", some,
               [](U a, U b) -> U { return static_cast<U>(int64_t{s(a)} % s(b)); });
    expectEach("div.u64 %q4, %q1, %q2;", someWide, [](W a, W b) -> W { return a / b; });
    expectEach("rem.u64 %q4, %q1, %q2;", someWide, [](W a, W b) -> W { return a % b; });
    expectEach("div.s64 %q4, %q1, %q2;", someWide,
               [](W a, W b) -> W { return static_cast<W>(static_cast<__int128>(s(a)) / s(b)); });
    expectEach("rem.s64 %q4, %q1, %q2;", someWide,
               [](W a, W b) -> W { return static_cast<W>(static_cast<__int128>(s(a)) % s(b)); });
    Rows small;
    for (const Row& row : halves)
        if (static_cast<H>(row[1]) != 0) small.push_back(row);
    expectEach("div.u16 %h4, %h1, %h2;", small, [](H a, H b) -> H { return a / b; });
    expectEach("rem.s16 %h4, %h1, %h2;", small,
               [](H a, H b) -> H { return static_cast<H>(s(a) % s(b)); });
}

TEST_F(Integer, TakesSizesSignsAndExtremes) {
    expectEach("abs.s32 %r4, %r1;", words, [](U a) -> U { return s(a) < 0 ? 0 - a : a; });
    expectEach("abs.s64 %q4, %q1;", doublewords, [](W a) -> W { return s(a) < 0 ? 0 - a : a; });
    expectEach("abs.s16 %h4, %h1;", halves,
               [](H a) -> H { return static_cast<H>(s(a) < 0 ? 0 - a : a); });
    expectEach("neg.s32 %r4, %r1;", words, [](U a) -> U { return 0 - a; });
    expectEach("neg.s64 %q4, %q1;", doublewords, [](W a) -> W { return 0 - a; });
    expectEach("neg.s16 %h4, %h1;", halves, [](H a) -> H { return static_cast<H>(0 - a); });
    expectEach("min.s32 %r4, %r1, %r2;", words, [](U a, U b) -> U { return s(a) < s(b) ? a : b; });
    expectEach("max.s32 %r4, %r1, %r2;", words, [](U a, U b) -> U { return s(a) > s(b) ? a : b; });
    expectEach("min.u32 %r4, %r1, %r2;", words, [](U a, U b) -> U { return a < b ? a : b; });
    expectEach("max.u32 %r4, %r1, %r2;", words, [](U a, U b) -> U { return a > b ? a : b; });
    expectEach("min.s64 %q4, %q1, %q2;", doublewords,
               [](W a, W b) -> W { return s(a) < s(b) ? a : b; });
    expectEach("max.u64 %q4, %q1, %q2;", doublewords, [](W a, W b) -> W { return a > b ? a : b; });
    expectEach("min.s16 %h4, %h1, %h2;", halves, [](H a, H b) -> H { return s(a) < s(b) ? a : b; });
    expectEach("max.u16 %h4, %h1, %h2;", halves, [](H a, H b) -> H { return a > b ? a : b; });
    expectEach("sad.s32 %r4, %r1, %r2, %r3;", three,
               [](U a, U b, U c) -> U { return (s(a) < s(b) ? b - a : a - b) + c; });
    expectEach("sad.u32 %r4, %r1, %r2, %r3;", three,
               [](U a, U b, U c) -> U { return (a < b ? b - a : a - b) + c; });
    expectEach("sad.u64 %q4, %q1, %q2, %q3;", threeWide,
               [](W a, W b, W c) -> W { return (a < b ? b - a : a - b) + c; });
    expectEach("sad.s16 %h4, %h1, %h2, %h3;", three, [](H a, H b, H c) -> H {
        return static_cast<H>((s(a) < s(b) ? b - a : a - b) + c);
    });
}

TEST_F(Integer, TakesExtremesOfPairsAndAboveZero) {
    NEEDS(90);
    auto both = [](U a, U b, auto f) -> U {
        return U{f(static_cast<H>(a), static_cast<H>(b))} |
               U{f(static_cast<H>(a >> 16), static_cast<H>(b >> 16))} << 16;
    };
    expectEach("min.s16x2 %r4, %r1, %r2;", words, [&](U a, U b) -> U {
        return both(a, b, [](H x, H y) -> H { return s(x) < s(y) ? x : y; });
    });
    expectEach("max.u16x2 %r4, %r1, %r2;", words, [&](U a, U b) -> U {
        return both(a, b, [](H x, H y) -> H { return x > y ? x : y; });
    });
    expectEach("max.relu.s16x2 %r4, %r1, %r2;", words, [&](U a, U b) -> U {
        return both(a, b, [](H x, H y) -> H {
            return static_cast<H>(std::max<int>(0, std::max(s(x), s(y))));
        });
    });
    expectEach("min.relu.s32 %r4, %r1, %r2;", words,
               [](U a, U b) -> U { return static_cast<U>(std::max(0, std::min(s(a), s(b)))); });
    expectEach("max.relu.s32 %r4, %r1, %r2;", words,
               [](U a, U b) -> U { return static_cast<U>(std::max(0, std::max(s(a), s(b)))); });
}

/// Byte i of a word, as dp4a reads it.
int64_t byteOf(U word, int i, bool isSigned) {
    auto byte = static_cast<uint8_t>(word >> (8 * i));
    return isSigned ? static_cast<int8_t>(byte) : byte;
}
int64_t halfOf(U word, int i, bool isSigned) {
    auto half = static_cast<H>(word >> (16 * i));
    return isSigned ? s(half) : half;
}

TEST_F(Integer, SumsProductsOfBytes) {
    for (bool signedA : {false, true}) {
        for (bool signedB : {false, true}) {
            std::string types =
                std::string(signedA ? ".s32" : ".u32") + (signedB ? ".s32" : ".u32");
            expectEach("dp4a" + types + " %r4, %r1, %r2, %r3;", three, [=](U a, U b, U c) -> U {
                int64_t sum = c;
                for (int i = 0; i < 4; ++i) sum += byteOf(a, i, signedA) * byteOf(b, i, signedB);
                return static_cast<U>(sum);
            });
            for (int part : {0, 1}) {
                expectEach(
                    "dp2a." + std::string(part == 0 ? "lo" : "hi") + types + " %r4, %r1, %r2, %r3;",
                    three, [=](U a, U b, U c) -> U {
                        int64_t sum = c;
                        for (int i = 0; i < 2; ++i) {
                            sum += halfOf(a, i, signedA) * byteOf(b, i + 2 * part, signedB);
                        }
                        return static_cast<U>(sum);
                    });
            }
        }
    }
}

}  // namespace
}  // namespace juice::truth

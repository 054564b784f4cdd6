// setp and set in all their forms, selp, slct.
#include "test/softgpu/narrow.h"
#include "test/softgpu/rounding.h"
#include "test/softgpu/table.h"

namespace juice::truth {
namespace {

using H = uint16_t;
using U = uint32_t;
using W = uint64_t;

/// Whether a comparison holds between values that order as a and b do; `apart`: one is a NaN.
bool holds(const std::string& op, bool less, bool equal, bool apart) {
    bool more = !less && !equal && !apart;
    if (op == "num") return !apart;
    if (op == "nan") return apart;
    bool unordered = op.size() == 3;  // equ, neu, ltu, leu, gtu, geu
    if (apart) return unordered;
    std::string plain = op.substr(0, 2);
    if (plain == "eq") return equal;
    if (plain == "ne") return !equal;
    if (plain == "lt" || plain == "lo") return less;
    if (plain == "le" || plain == "ls") return less || equal;
    if (plain == "gt" || plain == "hi") return more;
    return more || equal;  // ge, hs
}
bool holds(const std::string& op, double a, double b) {
    return holds(op, a < b, a == b, std::isnan(a) || std::isnan(b));
}

constexpr std::array kOrders = {"eq", "ne", "lt", "le", "gt", "ge"};
constexpr std::array kUnsigned = {"lo", "ls", "hi", "hs"};
constexpr std::array kFloats = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};

class Compare : public TableTest {
  protected:
    const Rows words = joined(pairs(troublesome<U>()), randomRows(100));
    const Rows doublewords = joined(pairs(troublesome<W>()), randomRows(100));
    const Rows singles = pairs(troublesome<float>());
    const Rows doubles = pairs(troublesome<double>());
    Rows halves() const {
        return pairs<H>({0, 0x8000, 0x3c00, 0xbc00, 0x0001, 0x8001, 0x7c00, 0xfc00, 0x7fff, 0x7bff,
                         0x3f80, 0x7f80, 0xff80, 0x3c01});
    }
    Rows halfPairs() const {
        return pairs<U>({0, 0x80003c00, 0x3c003f80, 0x7fff0001, 0xfc007fff, 0x3f807bff, 0x00018001,
                         0xbc007f80});
    }
};

TEST_F(Compare, OrdersIntegers) {
    for (const char* op : kOrders) {
        std::string head = std::string("setp.") + op;
        expectEach(head + ".s32 %p4, %r1, %r2;", words, [=](U a, U b) {
            auto x = static_cast<int32_t>(a), y = static_cast<int32_t>(b);
            return holds(op, x < y, x == y, false);
        });
        expectEach(head + ".u32 %p4, %r1, %r2;", words,
                   [=](U a, U b) { return holds(op, a < b, a == b, false); });
        expectEach(head + ".s64 %p4, %q1, %q2;", doublewords, [=](W a, W b) {
            auto x = static_cast<int64_t>(a), y = static_cast<int64_t>(b);
            return holds(op, x < y, x == y, false);
        });
        expectEach(head + ".u64 %p4, %q1, %q2;", doublewords,
                   [=](W a, W b) { return holds(op, a < b, a == b, false); });
        expectEach(head + ".s16 %p4, %h1, %h2;", words, [=](H a, H b) {
            auto x = static_cast<int16_t>(a), y = static_cast<int16_t>(b);
            return holds(op, x < y, x == y, false);
        });
    }
    for (const char* op : kUnsigned) {
        expectEach(std::string("setp.") + op + ".u32 %p4, %r1, %r2;", words,
                   [=](U a, U b) { return holds(op, a < b, a == b, false); });
        expectEach(std::string("setp.") + op + ".u16 %p4, %h1, %h2;", words,
                   [=](H a, H b) { return holds(op, a < b, a == b, false); });
    }
    expectEach("setp.eq.b64 %p4, %q1, %q2;", doublewords, [](W a, W b) { return a == b; });
    expectEach("setp.ne.b16 %p4, %h1, %h2;", words, [](H a, H b) { return a != b; });
}

TEST_F(Compare, OrdersFloats) {
    for (const char* op : kFloats) {
        std::string head = std::string("setp.") + op;
        expectEach(head + ".f32 %p4, %f1, %f2;", singles,
                   [=](float a, float b) { return holds(op, a, b); });
        expectEach(head + ".ftz.f32 %p4, %f1, %f2;", singles,
                   [=](float a, float b) { return holds(op, flushed(a), flushed(b)); });
        expectEach(head + ".f64 %p4, %d1, %d2;", doubles,
                   [=](double a, double b) { return holds(op, a, b); });
        expectEach(head + ".f16 %p4, %h1, %h2;", halves(),
                   [=](H a, H b) { return holds(op, kBinary16.open(a), kBinary16.open(b)); });
    }
    expectEach("setp.ne.ftz.f16 %p4, %h1, %h2;", halves(), [](H a, H b) {
        auto open = [](H bits) { return (bits & 0x7c00) == 0 ? 0.0 : kBinary16.open(bits); };
        return holds("ne", open(a), open(b));
    });
}

TEST_F(Compare, OrdersBrain16) {
    NEEDS(90);
    for (const char* op : kFloats) {
        expectEach(std::string("setp.") + op + ".bf16 %p4, %h1, %h2;", halves(),
                   [=](H a, H b) { return holds(op, kBrain16.open(a), kBrain16.open(b)); });
        expectEach(std::string("setp.") + op +
                       ".bf16x2 %p5|%p6, %r1, %r2;"
                       "selp.u32 %r5, 1, 0, %p5; selp.u32 %r6, 2, 0, %p6;"
                       "or.b32 %r4, %r5, %r6;",
                   halfPairs(), [=](U a, U b) -> U {
                       bool low = holds(op, kBrain16.open(a & 0xffff), kBrain16.open(b & 0xffff));
                       bool high = holds(op, kBrain16.open(a >> 16), kBrain16.open(b >> 16));
                       return (low ? 1 : 0) + (high ? 2 : 0);
                   });
    }
}

TEST_F(Compare, CombinesWithAPredicate) {
    const std::string third = "setp.gt.s32 %p2, %r3, 0;";
    const std::string both =
        "selp.u32 %r5, 1, 0, %p4; selp.u32 %r6, 2, 0, %p5; or.b32 %r4, %r5, %r6;";
    const Rows rows = triples<U>({0, 1, 5, 0x80000000, 0xffffffff});
    for (const char* logic : {"and", "or", "xor"}) {
        std::string how = logic;
        auto combined = [=](bool held, bool c) {
            return how == "and" ? held && c : how == "or" ? held || c : held != c;
        };
        expectEach(third + "setp.lt." + how + ".s32 %p4|%p5, %r1, %r2, %p2;" + both, rows,
                   [=](U a, U b, U c) -> U {
                       bool held = static_cast<int32_t>(a) < static_cast<int32_t>(b);
                       bool more = static_cast<int32_t>(c) > 0;
                       return (combined(held, more) ? 1 : 0) + (combined(!held, more) ? 2 : 0);
                   });
        expectEach(third + "setp.eq." + how + ".u32 %p4|%p5, %r1, %r2, !%p2;" + both, rows,
                   [=](U a, U b, U c) -> U {
                       bool more = static_cast<int32_t>(c) > 0;
                       return (combined(a == b, !more) ? 1 : 0) + (combined(a != b, !more) ? 2 : 0);
                   });
        // The predicate operand is also a result.
        expectEach(third + "setp.lt." + how +
                       ".f16x2 %p2|%p5, %r1, %r2, %p2;"
                       "selp.u32 %r5, 1, 0, %p2; selp.u32 %r6, 2, 0, %p5;"
                       "or.b32 %r4, %r5, %r6;",
                   triples<U>({0x3c000000, 0x00003c00, 0x7fff0000, 1}), [=](U a, U b, U c) -> U {
                       bool more = static_cast<int32_t>(c) > 0;
                       bool low = kBinary16.open(a & 0xffff) < kBinary16.open(b & 0xffff);
                       bool high = kBinary16.open(a >> 16) < kBinary16.open(b >> 16);
                       return (combined(low, more) ? 1 : 0) + (combined(high, more) ? 2 : 0);
                   });
    }
}

TEST_F(Compare, SetsValues) {
    expectEach("set.lt.u32.s32 %r4, %r1, %r2;", words, [](U a, U b) -> U {
        return static_cast<int32_t>(a) < static_cast<int32_t>(b) ? ~0u : 0;
    });
    expectEach("set.ge.f32.u64 %f4, %q1, %q2;", doublewords,
               [](W a, W b) { return a >= b ? 1.0f : 0.0f; });
    expectEach("set.leu.s32.f32 %r4, %f1, %f2;", singles,
               [](float a, float b) -> U { return holds("leu", a, b) ? ~0u : 0; });
    expectEach("set.gt.f32.f64 %f4, %d1, %d2;", doubles,
               [](double a, double b) { return holds("gt", a, b) ? 1.0f : 0.0f; });
    expectEach("setp.gt.s32 %p2, %r3, 0; set.lt.xor.u32.u32 %r4, %r1, %r2, %p2;",
               triples<U>({0, 1, 0xffffffff}), [](U a, U b, U c) -> U {
                   return (a < b) != (static_cast<int32_t>(c) > 0) ? ~0u : 0;
               });
    expectEach("set.le.f16.f16 %h4, %h1, %h2;", halves(), [](H a, H b) -> H {
        return holds("le", kBinary16.open(a), kBinary16.open(b)) ? 0x3c00 : 0;
    });
    expectEach("set.ne.f16x2.f16x2 %r4, %r1, %r2;", halfPairs(), [](U a, U b) -> U {
        auto one = [](U x, U y) -> U {
            return holds("ne", kBinary16.open(x), kBinary16.open(y)) ? 0x3c00 : 0;
        };
        return one(a >> 16, b >> 16) << 16 | one(a & 0xffff, b & 0xffff);
    });
    expectEach("set.gtu.u32.f16x2 %r4, %r1, %r2;", halfPairs(), [](U a, U b) -> U {
        auto one = [](U x, U y) -> U {
            return holds("gtu", kBinary16.open(x), kBinary16.open(y)) ? 0xffff : 0;
        };
        return one(a >> 16, b >> 16) << 16 | one(a & 0xffff, b & 0xffff);
    });
}

TEST_F(Compare, Selects) {
    expectEach("setp.lt.u32 %p2, %r1, %r2; selp.b32 %r4, %r1, 77, %p2;", words,
               [](U a, U b) -> U { return a < b ? a : 77; });
    expectEach("setp.lt.u32 %p2, %r1, %r2; selp.f64 %d4, %d1, %d2, %p2;", doubles,
               [](W a, W b) { return valueOf<double>(U(a) < U(b) ? a : b); });
    expectEach("setp.lt.u32 %p2, %r1, %r2; selp.u16 %h4, %h1, %h2, %p2;", words,
               [](U a, U b) -> H { return static_cast<H>(a < b ? a : b); });
    const Rows three =
        triples<U>({0, 1, 0x3f800000, 0x80000000, 0x80000001, 0xffffffff, 0x7fc00000});
    expectEach("slct.u32.s32 %r4, %r1, %r2, %r3;", three,
               [](U a, U b, U c) -> U { return static_cast<int32_t>(c) >= 0 ? a : b; });
    expectEach("slct.b32.f32 %r4, %r1, %r2, %f3;", three,
               [](U a, U b, float c) -> U { return c >= 0 ? a : b; });
    expectEach("slct.ftz.b32.f32 %r4, %r1, %r2, %f3;", three,
               [](U a, U b, float c) -> U { return flushed(c) >= 0 ? a : b; });
    expectEach("slct.f64.s32 %d5, %d1, %d2, %r3; mov.b64 %q4, %d5;", three,
               [](W a, W b, U c) -> W { return static_cast<int32_t>(c) >= 0 ? a : b; });
}

}  // namespace
}  // namespace juice::truth

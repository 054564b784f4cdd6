// cvt between every pair of types.
#include <algorithm>
#include <limits>

#include "test/softgpu/narrow.h"
#include "test/softgpu/rounding.h"
#include "test/softgpu/table.h"

namespace juice::truth {
namespace {

using H = uint16_t;
using U = uint32_t;
using W = uint64_t;
using Wide = __int128;

struct Integer {
    const char* name;
    unsigned bits;
    bool isSigned;

    Wide least() const { return isSigned ? -(Wide{1} << (bits - 1)) : 0; }
    Wide most() const { return (Wide{1} << (isSigned ? bits - 1 : bits)) - 1; }
    Wide read(W from) const {
        Wide value = bits == 64 ? Wide{from} : Wide{from & ((W{1} << bits) - 1)};
        return isSigned && (value >> (bits - 1) & 1) != 0 ? value - (Wide{1} << bits) : value;
    }
    /// The bits in a register of 64 (32, 16) bits are looked at only as far as the type goes.
    W write(Wide value) const {
        return bits == 64 ? static_cast<W>(value) : static_cast<W>(value) & ((W{1} << bits) - 1);
    }
    /// A register that holds the type: number `n`.
    std::string at(int n) const {
        return (bits == 64 ? "%q" : bits == 32 ? "%r" : "%h") + std::to_string(n);
    }
    /// Its value of register 5 zero-extended into %q4.
    std::string out() const {
        if (bits == 64) return "mov.b64 %q4, %q5;";
        if (bits == 32) return "cvt.u64.u32 %q4, %r5;";
        return std::string("cvt.u64.u16 %q4, %h5;") + (bits == 8 ? "and.b64 %q4, %q4, 255;" : "");
    }
};
const std::array<Integer, 8> kIntegers = {{{"u8", 8, false},
                                           {"s8", 8, true},
                                           {"u16", 16, false},
                                           {"s16", 16, true},
                                           {"u32", 32, false},
                                           {"s32", 32, true},
                                           {"u64", 64, false},
                                           {"s64", 64, true}}};

class Convert : public TableTest {
  protected:
    const Rows patterns = joined(joined(each(troublesome<W>()), each(troublesome<U>())),
                                 joined(each(troublesome<H>()), randomRows(200)));
    const Rows singles = joined(joined(each(troublesome<float>()), randomFloats(300, -5, 70)),
                                joined(randomFloats(300, -30, 20, 2), randomRows(200)));
    const Rows doubles = joined(joined(each(troublesome<double>()), randomDoubles(300, -5, 70)),
                                joined(randomDoubles(500, -150, 130, 2), randomRows(200)));
};

TEST_F(Convert, IntegersToIntegers) {
    for (const Integer& to : kIntegers) {
        for (const Integer& from : kIntegers) {
            std::string types = std::string(to.name) + "." + from.name;
            expectEach("cvt." + types + " " + to.at(5) + ", " + from.at(1) + ";" + to.out(),
                       patterns, [&](W a) -> W { return to.write(from.read(a)); });
            if (to.least() <= from.least() && to.most() >= from.most())
                continue;  // nothing to clamp
            expectEach("cvt.sat." + types + " " + to.at(5) + ", " + from.at(1) + ";" + to.out(),
                       patterns, [&](W a) -> W {
                           return to.write(std::clamp(from.read(a), to.least(), to.most()));
                       });
        }
    }
    // A wider register takes the value extended by its sign; a narrower source is read in part.
    expectEach("cvt.s8.s32 %r4, %r1;", patterns,
               [](U a) -> U { return static_cast<U>(static_cast<int8_t>(a)); });
    expectEach("cvt.u8.u32 %q4, %r1;", patterns, [](U a) -> W { return a & 0xff; });
    expectEach("cvt.s64.s8 %q4, %q1;", patterns,
               [](W a) -> W { return static_cast<W>(int64_t{static_cast<int8_t>(a)}); });
}

TEST_F(Convert, IntegersToFloats) {
    for (const RoundingMode& r : kRoundings) {
        for (const Integer& from : kIntegers) {
            // Through long double, which holds every 64-bit integer.
            expectEach("cvt" + r.name + ".f32." + from.name + " %f4, " + from.at(1) + ";", patterns,
                       [&](W a) {
                           volatile auto exact = static_cast<long double>(from.read(a));
                           return roundedTo(r.mode, [&] { return static_cast<float>(exact); });
                       });
            expectEach("cvt" + r.name + ".f64." + from.name + " %d4, " + from.at(1) + ";", patterns,
                       [&](W a) {
                           volatile auto exact = static_cast<long double>(from.read(a));
                           return roundedTo(r.mode, [&] { return static_cast<double>(exact); });
                       });
        }
    }
    for (const Integer& from : kIntegers) {
        expectEach("cvt.rn.sat.f32." + std::string(from.name) + " %f4, " + from.at(1) + ";",
                   patterns, [&](W a) { return from.read(a) > 0 ? 1.0f : 0.0f; });
    }
}

/// The nearest integral value in a direction, clamped; NaN as the manual has it.
Wide integral(double value, const char* rounding, const Integer& to) {
    std::string way = rounding;
    double whole = way == "rni"   ? std::nearbyint(value)
                   : way == "rzi" ? std::trunc(value)
                   : way == "rmi" ? std::floor(value)
                                  : std::ceil(value);
    if (whole <= static_cast<double>(to.least())) return to.least();
    if (whole >= static_cast<double>(to.most())) return to.most();
    return static_cast<Wide>(whole);
}

TEST_F(Convert, FloatsToIntegers) {
    for (const char* rounding : {"rni", "rzi", "rmi", "rpi"}) {
        for (const Integer& to : kIntegers) {
            std::string head = "cvt." + std::string(rounding);
            std::string types = "." + std::string(to.name);
            Rows numbers, wideNumbers;  // what a NaN gives differs between widths: see below
            for (const Row& row : singles)
                if (!std::isnan(valueOf<float>(row[0]))) numbers.push_back(row);
            for (const Row& row : doubles)
                if (!std::isnan(valueOf<double>(row[0]))) wideNumbers.push_back(row);
            expectEach(head + types + ".f32 " + to.at(5) + ", %f1;" + to.out(), numbers,
                       [&](float a) -> W { return to.write(integral(a, rounding, to)); });
            expectEach(head + ".ftz" + types + ".f32 " + to.at(5) + ", %f1;" + to.out(), numbers,
                       [&](float a) -> W { return to.write(integral(flushed(a), rounding, to)); });
            expectEach(head + types + ".f64 " + to.at(5) + ", %d1;" + to.out(), wideNumbers,
                       [&](double a) -> W { return to.write(integral(a, rounding, to)); });
        }
    }
    expectTable<U>("cvt.rzi.s32.f32 %r4, %f1;", {{0x7fc00000, 0, 0, 0}});
    expectTable<U>("cvt.rzi.u32.f32 %r4, %f1;", {{0xffc00000, 0, 0, 0}});
    expectTable<W>("cvt.rzi.s64.f32 %q4, %f1;", {{0x7fc00000, 0, 0, 0x8000000000000000}});
    expectTable<U>("cvt.rzi.s32.f64 %r4, %d1;", {{0x7ff8000000000000, 0, 0, 0x80000000}});
}

TEST_F(Convert, FloatsToFloats) {
    for (const RoundingMode& r : kRoundings) {
        expectEach("cvt" + r.name + ".f32.f64 %f4, %d1;", doubles, [&](double a) {
            volatile double value = a;
            return roundedTo(r.mode, [&] { return static_cast<float>(value); });
        });
    }
    expectEach("cvt.f64.f32 %d4, %f1;", singles, [](float a) { return double{a}; });
    expectEach("cvt.ftz.f64.f32 %d4, %f1;", singles, [](float a) { return double{flushed(a)}; });
    expectEach("cvt.rn.sat.f32.f64 %f4, %d1;", doubles,
               [](double a) { return saturated(static_cast<float>(a)); });
    expectEach("cvt.sat.f32.f32 %f4, %f1;", singles, [](float a) { return saturated(a); });
    expectEach("cvt.ftz.f32.f32 %f4, %f1;", singles, [](float a) { return flushed(a); });
    expectEach("cvt.rni.f32.f32 %f4, %f1;", singles, [](float a) { return std::nearbyint(a); });
    expectEach("cvt.rzi.f32.f32 %f4, %f1;", singles, [](float a) { return std::trunc(a); });
    expectEach("cvt.rmi.f64.f64 %d4, %d1;", doubles, [](double a) { return std::floor(a); });
    expectEach("cvt.rpi.f64.f64 %d4, %d1;", doubles, [](double a) { return std::ceil(a); });
    expectEach("cvt.rpi.sat.f32.f32 %f4, %f1;", singles,
               [](float a) { return saturated(std::ceil(a)); });
}

/// Rounds a count of last places in a direction.
auto rounder(int mode) {
    return [mode](double places) {
        return roundedTo(mode, [&] {
            volatile double value = places;
            return std::nearbyint(value);
        });
    };
}

TEST_F(Convert, HalvesBothWays) {
    Rows halves;
    for (W bits = 0; bits < 0x10000; ++bits) halves.push_back({bits, 0, 0});
    expectEach("cvt.f32.f16 %f4, %h1;", halves,
               [](H a) { return static_cast<float>(kBinary16.open(a)); });
    expectEach("cvt.f64.f16 %d4, %h1;", halves, [](H a) { return kBinary16.open(a); });
    for (const RoundingMode& r : kRoundings) {
        expectEach("cvt" + r.name + ".f16.f32 %h4, %f1;", singles,
                   [&](float a) -> H { return kBinary16.closeBy(a, rounder(r.mode)); });
        Rows numbers;  // from f64 a NaN keeps some of its bits
        for (const Row& row : doubles)
            if (!std::isnan(valueOf<double>(row[0]))) numbers.push_back(row);
        expectEach("cvt" + r.name + ".f16.f64 %h4, %d1;", numbers,
                   [&](double a) -> H { return kBinary16.closeBy(a, rounder(r.mode)); });
    }
    expectEach("cvt.rn.sat.f16.f32 %h4, %f1;", singles,
               [](float a) -> H { return kBinary16.close(saturated(a)); });
    // An H200 flushes nothing here, for all that .ftz says.
    expectEach("cvt.rp.ftz.f16.f32 %h4, %f1;", singles,
               [](float a) -> H { return kBinary16.closeBy(a, rounder(FE_UPWARD)); });
    expectEach("cvt.rn.f16.s32 %h4, %r1;", patterns,
               [](U a) -> H { return kBinary16.close(static_cast<int32_t>(a)); });
    expectEach("cvt.rni.s32.f16 %r4, %h1;", halves, [](H a) -> U {
        double value = kBinary16.open(a);
        if (std::isnan(value)) return 0;
        return static_cast<U>(integral(value, "rni", kIntegers[5]));
    });
    expectEach("cvt.rmi.f16.f16 %h4, %h1;", halves, [](H a) -> H {
        double value = kBinary16.open(a);
        return std::isnan(value) ? 0x7fff : kBinary16.close(std::floor(value));
    });
}

TEST_F(Convert, Brain16BothWays) {
    NEEDS(90);
    Rows all;
    for (W bits = 0; bits < 0x10000; ++bits) all.push_back({bits, 0, 0});
    expectEach("cvt.f32.bf16 %f4, %h1;", all,
               [](H a) { return static_cast<float>(kBrain16.open(a)); });
    expectEach("cvt.rn.bf16.f32 %h4, %f1;", singles,
               [](float a) -> H { return kBrain16.close(a); });
    expectEach("cvt.rz.bf16.f32 %h4, %f1;", singles,
               [](float a) -> H { return kBrain16.closeBy(a, rounder(FE_TOWARDZERO)); });
    expectEach("cvt.rn.bf16.s32 %h4, %r1;", patterns,
               [](U a) -> H { return kBrain16.close(static_cast<int32_t>(a)); });
    expectEach("cvt.rzi.s32.bf16 %r4, %h1;", all, [](H a) -> U {
        double value = kBrain16.open(a);
        if (std::isnan(value)) return 0;
        return static_cast<U>(integral(value, "rzi", kIntegers[5]));
    });
}

TEST_F(Convert, PairsOfHalves) {
    NEEDS(80);
    const Rows two = joined(pairs(troublesome<float>()), randomFloats(500, -20, 20));
    auto both = [](H high, H low) -> U { return U{high} << 16 | low; };
    expectEach("cvt.rn.f16x2.f32 %r4, %f1, %f2;", two,
               [=](float a, float b) -> U { return both(kBinary16.close(a), kBinary16.close(b)); });
    expectEach("cvt.rz.bf16x2.f32 %r4, %f1, %f2;", two, [=](float a, float b) -> U {
        return both(kBrain16.closeBy(a, rounder(FE_TOWARDZERO)),
                    kBrain16.closeBy(b, rounder(FE_TOWARDZERO)));
    });
    auto relu = [](const Narrow& format, float a) -> H {
        return std::isnan(a) ? 0x7fff : a > 0 ? format.close(a) : 0;
    };
    expectEach("cvt.rn.relu.f16x2.f32 %r4, %f1, %f2;", two,
               [=](float a, float b) -> U { return both(relu(kBinary16, a), relu(kBinary16, b)); });
    expectEach("cvt.rn.relu.bf16x2.f32 %r4, %f1, %f2;", two,
               [=](float a, float b) -> U { return both(relu(kBrain16, a), relu(kBrain16, b)); });
}

TEST_F(Convert, Tf32) {
    NEEDS(80);
    Rows finite;
    for (const Row& row : singles)
        if (std::isfinite(valueOf<float>(row[0]))) finite.push_back(row);
    expectEach("cvt.rna.tf32.f32 %r4, %f1;", finite,
               [](U a) -> U { return (a + 0x1000) & ~0x1fffu; });
    expectTable<U>("cvt.rna.tf32.f32 %r4, %f1;",
                   {{0x7f800000, 0, 0, 0x7f800000}, {0xff800000, 0, 0, 0xff800000}});
}

TEST_F(Convert, Tf32InOtherRoundings) {
    NEEDS(90);
    Rows finite;
    for (const Row& row : singles)
        if (std::isfinite(valueOf<float>(row[0]))) finite.push_back(row);
    expectEach("cvt.rz.tf32.f32 %r4, %f1;", finite, [](U a) -> U { return a & ~0x1fffu; });
    auto even = [](U a) -> U { return (a + 0xfff + (a >> 13 & 1)) & ~0x1fffu; };
    expectEach("cvt.rn.tf32.f32 %r4, %f1;", finite, even);
    expectEach("cvt.rn.relu.tf32.f32 %r4, %f1;", finite,
               [=](U a) -> U { return a >> 31 != 0 ? 0 : even(a); });
}

TEST_F(Convert, EightBitFloats) {
    NEEDS(89);
    const Rows two = joined(joined(pairs(troublesome<float>()), randomFloats(1000, -12, 10)),
                            randomFloats(300, -20, 17, 4));
    struct Eight {
        const char* name;
        Narrow format;
    };
    for (const Eight& eight : {Eight{"e4m3x2", kE4m3}, Eight{"e5m2x2", kE5m2}}) {
        const Narrow& format = eight.format;
        std::string name = eight.name;
        auto close = [&](double a) -> U {
            if (std::isnan(a)) return 0x7f;
            return format.close(std::clamp(a, -format.largest(), format.largest()));
        };
        expectEach("cvt.rn.satfinite." + name + ".f32 %h4, %f1, %f2;", two,
                   [&](float a, float b) -> H { return static_cast<H>(close(a) << 8 | close(b)); });
        expectEach("cvt.rn.satfinite.relu." + name + ".f32 %h4, %f1, %f2;", two,
                   [&](float a, float b) -> H {
                       auto relu = [&](float v) { return v <= 0 ? 0 : close(v); };
                       return static_cast<H>(relu(a) << 8 | relu(b));
                   });
        expectEach("cvt.rn.satfinite." + name + ".f16x2 %h4, %r1;", patterns, [&](U a) -> H {
            return static_cast<H>(close(kBinary16.open(a >> 16)) << 8 |
                                  close(kBinary16.open(a & 0xffff)));
        });
        Rows all;
        for (W bits = 0; bits < 0x10000; bits += 257) all.push_back({bits, 0, 0});
        expectEach("cvt.rn.f16x2." + name + " %r4, %h1;", joined(all, patterns), [&](H a) -> U {
            return U{kBinary16.close(format.open(a >> 8))} << 16 |
                   kBinary16.close(format.open(a & 0xff));
        });
    }
}

TEST_F(Convert, PacksWithSaturation) {
    const Rows two = joined(triples(troublesome<U>()), randomRows(300));
    auto clamp = [](U value, unsigned bits, bool isSigned) -> U {
        int64_t low = isSigned ? -(int64_t{1} << (bits - 1)) : 0;
        int64_t high = (int64_t{1} << (isSigned ? bits - 1 : bits)) - 1;
        return static_cast<U>(std::clamp<int64_t>(static_cast<int32_t>(value), low, high)) &
               ((1u << bits) - 1);
    };
    for (bool isSigned : {false, true}) {
        std::string letter = isSigned ? "s" : "u";
        expectEach("cvt.pack.sat." + letter + "16.s32 %r4, %r1, %r2;", two, [=](U a, U b) -> U {
            return clamp(a, 16, isSigned) << 16 | clamp(b, 16, isSigned);
        });
        for (unsigned bits : {8u, 4u, 2u}) {
            if (bits < 8 && capability() < 75) continue;
            expectEach(
                "cvt.pack.sat." + letter + std::to_string(bits) + ".s32.b32 %r4, %r1, %r2, %r3;",
                two, [=](U a, U b, U c) -> U {
                    return c << (2 * bits) | clamp(a, bits, isSigned) << bits |
                           clamp(b, bits, isSigned);
                });
        }
    }
}

}  // namespace
}  // namespace juice::truth

// f32 arithmetic that IEEE pins down: every rounding, flushing, saturation.
#include "test/softgpu/rounding.h"
#include "test/softgpu/table.h"

namespace juice::truth {
namespace {

using U = uint32_t;

[[gnu::noinline]] float add(float a, float b) {
    return a + b;
}
[[gnu::noinline]] float subtract(float a, float b) {
    return a - b;
}
[[gnu::noinline]] float multiply(float a, float b) {
    return a * b;
}
[[gnu::noinline]] float divide(float a, float b) {
    return a / b;
}
[[gnu::noinline]] float root(float a) {
    return std::sqrt(a);
}
[[gnu::noinline]] float fuse(float a, float b, float c) {
    return std::fma(a, b, c);
}

class Single : public TableTest {
  protected:
    Rows numbers(int low, int high) const {
        return joined(joined(pairs(troublesome<float>()), randomFloats(1000, low, high)),
                      randomRows(500));
    }
    Rows threeNumbers() const {
        return joined(joined(triples(troublesome<float>()), randomFloats(2000, -20, 20)),
                      randomRows(500));
    }
    /// Products and sums near the borders of the range, where flushing and rounding meet.
    Rows smallNumbers() const {
        return joined(randomFloats(2000, -76, -60, 7), randomFloats(1000, -149, -120, 8));
    }
};

TEST_F(Single, RoundsInEveryDirection) {
    const Rows two = joined(numbers(-20, 20), smallNumbers());
    const Rows three = joined(threeNumbers(), smallNumbers());
    for (const RoundingMode& r : kRoundings) {
        int mode = r.mode;
        expectEach("add" + r.name + ".f32 %f4, %f1, %f2;", two,
                   [=](float a, float b) { return roundedTo(mode, add, a, b); });
        expectEach("sub" + r.name + ".f32 %f4, %f1, %f2;", two,
                   [=](float a, float b) { return roundedTo(mode, subtract, a, b); });
        expectEach("mul" + r.name + ".f32 %f4, %f1, %f2;", two,
                   [=](float a, float b) { return roundedTo(mode, multiply, a, b); });
        expectEach("div" + r.name + ".f32 %f4, %f1, %f2;", two,
                   [=](float a, float b) { return roundedTo(mode, divide, a, b); });
        expectEach("fma" + r.name + ".f32 %f4, %f1, %f2, %f3;", three,
                   [=](float a, float b, float c) { return roundedTo(mode, fuse, a, b, c); });
        expectEach("mad" + r.name + ".f32 %f4, %f1, %f2, %f3;", three,
                   [=](float a, float b, float c) { return roundedTo(mode, fuse, a, b, c); });
        expectEach("rcp" + r.name + ".f32 %f4, %f1;", two,
                   [=](float a) { return roundedTo(mode, divide, 1.0f, a); });
        expectEach("sqrt" + r.name + ".f32 %f4, %f1;", two,
                   [=](float a) { return roundedTo(mode, root, a); });
    }
}

TEST_F(Single, FlushesSubnormals) {
    const Rows two = joined(numbers(-20, 20), smallNumbers());
    const Rows three = joined(threeNumbers(), smallNumbers());
    expectEach("add.ftz.f32 %f4, %f1, %f2;", two,
               [](float a, float b) { return flushed(flushed(a) + flushed(b)); });
    expectEach("sub.rz.ftz.f32 %f4, %f1, %f2;", two, [](float a, float b) {
        return flushed(roundedTo(FE_TOWARDZERO, subtract, flushed(a), flushed(b)));
    });
    // Rounded to 24 digits as if the exponent had no end, then flushed.
    auto flushedLast = [](double exact, int mode) {
        volatile double scaled = exact * 0x1p100;
        std::fesetround(mode);
        volatile auto narrow = static_cast<float>(scaled);
        std::fesetround(FE_TONEAREST);
        float sign = std::copysign(0.0f, static_cast<float>(exact));
        return std::fabs(narrow) < 0x1p-26f ? sign : narrow * 0x1p-100f;
    };
    for (const RoundingMode& r : kRoundings) {
        expectEach("mul" + r.name + ".ftz.f32 %f4, %f1, %f2;", randomFloats(3000, -65, -60, 9),
                   [=](float a, float b) { return flushedLast(double{a} * b, r.mode); });
    }
    // 24 digits leave this one just below the smallest normal number, 23 would lift it there.
    expectTable<U>("fma.rp.ftz.f32 %f5, %f1, %f2, %f3; mov.b32 %r4, %f5;",
                   {{bitsOf(-0x1.8b6e8cp-43f), bitsOf(0x1.97b54cp-108f), bitsOf(0x1p-126f), 0}});
    expectTable<U>("rcp.rp.ftz.f32 %f5, %f1; mov.b32 %r4, %f5;",
                   {{bitsOf(0x1.000002p126f), 0, 0, 0}});
    expectEach("fma.rn.ftz.f32 %f4, %f1, %f2, %f3;", randomFloats(2000, -20, 20),
               [](float a, float b, float c) { return std::fma(a, b, c); });
    Rows apart;  // from the smallest normal number
    auto fusedFlushed = [](float a, float b, float c) {
        return flushed(std::fma(flushed(a), flushed(b), flushed(c)));
    };
    for (const Row& row : triples(troublesome<float>())) {
        float result =
            fusedFlushed(valueOf<float>(row[0]), valueOf<float>(row[1]), valueOf<float>(row[2]));
        if (std::fabs(result) != 0x1p-126f) apart.push_back(row);
    }
    expectEach("fma.rn.ftz.f32 %f4, %f1, %f2, %f3;", apart, fusedFlushed);
    expectEach("abs.ftz.f32 %f4, %f1;", two, [](float a) { return std::fabs(flushed(a)); });
    expectEach("neg.ftz.f32 %f4, %f1;", two, [](float a) { return -flushed(a); });
    expectEach("sqrt.rn.ftz.f32 %f4, %f1;", two, [](float a) { return std::sqrt(flushed(a)); });
}

TEST_F(Single, Saturates) {
    const Rows two = numbers(-3, 1);
    expectEach("add.sat.f32 %f4, %f1, %f2;", two,
               [](float a, float b) { return saturated(a + b); });
    expectEach("mul.rz.sat.f32 %f4, %f1, %f2;", two, [](float a, float b) {
        return saturated(roundedTo(FE_TOWARDZERO, multiply, a, b));
    });
    expectEach("fma.rn.sat.f32 %f4, %f1, %f2, %f3;", joined(two, triples(troublesome<float>())),
               [](float a, float b, float c) { return saturated(std::fma(a, b, c)); });
    expectEach("sub.ftz.sat.f32 %f4, %f1, %f2;", two,
               [](float a, float b) { return saturated(flushed(flushed(a) - flushed(b))); });
}

TEST_F(Single, MakesOneKindOfNan) {
    expectTable<U>("add.f32 %f5, %f1, %f2; mov.b32 %r4, %f5;",
                   {{0x7f800000, 0xff800000, 0, 0x7fffffff},
                    {0x7fc00001, 0x3f800000, 0, 0x7fffffff},
                    {0xffc12345, 0x3f800000, 0, 0x7fffffff}});
    expectTable<U>("mul.f32 %f5, %f1, %f2; mov.b32 %r4, %f5;", {{0x7f800000, 0, 0, 0x7fffffff}});
    expectTable<U>("min.f32 %f5, %f1, %f2; mov.b32 %r4, %f5;",
                   {{0x7fc00001, 0xffc00002, 0, 0x7fffffff}});
}

/// min and max where neither is a NaN, with -0 below +0.
float least(float a, float b) {
    if (a == b) return std::signbit(a) ? a : b;
    return a < b ? a : b;
}
float greatest(float a, float b) {
    if (a == b) return std::signbit(a) ? b : a;
    return a > b ? a : b;
}
/// The manual's rule for one NaN: the other operand, or NaN with .NaN.
template <class F>
float ordered(float a, float b, bool nan, F choose) {
    if (std::isnan(a) || std::isnan(b)) {
        if (nan || (std::isnan(a) && std::isnan(b))) return std::nanf("");
        return std::isnan(a) ? b : a;
    }
    return choose(a, b);
}

TEST_F(Single, TakesExtremes) {
    const Rows two = numbers(-20, 20);
    expectEach("min.f32 %f4, %f1, %f2;", two,
               [](float a, float b) { return ordered(a, b, false, least); });
    expectEach("max.f32 %f4, %f1, %f2;", two,
               [](float a, float b) { return ordered(a, b, false, greatest); });
    expectEach("max.ftz.f32 %f4, %f1, %f2;", two,
               [](float a, float b) { return ordered(flushed(a), flushed(b), false, greatest); });
}

TEST_F(Single, TakesExtremesThatKeepNan) {
    NEEDS(80);
    const Rows two = numbers(-20, 20);
    expectEach("min.NaN.f32 %f4, %f1, %f2;", two,
               [](float a, float b) { return ordered(a, b, true, least); });
    expectEach("max.ftz.NaN.f32 %f4, %f1, %f2;", two,
               [](float a, float b) { return ordered(flushed(a), flushed(b), true, greatest); });
}

TEST_F(Single, TakesExtremesOfSizes) {
    NEEDS(86);
    const Rows two = numbers(-20, 20);
    auto signedAs = [](float size, float a, float b) {
        return std::isnan(size) ? size : std::signbit(a) != std::signbit(b) ? -size : size;
    };
    expectEach("min.xorsign.abs.f32 %f4, %f1, %f2;", two, [=](float a, float b) {
        return signedAs(ordered(std::fabs(a), std::fabs(b), false, least), a, b);
    });
    expectEach("max.NaN.xorsign.abs.f32 %f4, %f1, %f2;", two, [=](float a, float b) {
        return signedAs(ordered(std::fabs(a), std::fabs(b), true, greatest), a, b);
    });
}

TEST_F(Single, HandlesSignsAndKinds) {
    const Rows two = numbers(-20, 20);
    expectEach("abs.f32 %f4, %f1;", two, [](float a) { return std::fabs(a); });
    expectEach("neg.f32 %f4, %f1;", two, [](float a) { return -a; });
    expectEach("copysign.f32 %f4, %f1, %f2; mov.b32 %r4, %f4;", two,
               [](U a, U b) -> U { return (a & 0x80000000) | (b & 0x7fffffff); });
    expectEach("testp.finite.f32 %p4, %f1;", two, [](float a) { return std::isfinite(a); });
    expectEach("testp.infinite.f32 %p4, %f1;", two, [](float a) { return std::isinf(a); });
    expectEach("testp.number.f32 %p4, %f1;", two, [](float a) { return !std::isnan(a); });
    expectEach("testp.notanumber.f32 %p4, %f1;", two, [](float a) { return std::isnan(a); });
    expectEach("testp.subnormal.f32 %p4, %f1;", two,
               [](float a) { return std::fpclassify(a) == FP_SUBNORMAL; });
}

}  // namespace
}  // namespace juice::truth

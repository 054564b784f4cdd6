// f64 arithmetic in every rounding.
#include "test/softgpu/rounding.h"
#include "test/softgpu/table.h"

namespace juice::truth {
namespace {

using W = uint64_t;

[[gnu::noinline]] double add(double a, double b) {
    return a + b;
}
[[gnu::noinline]] double subtract(double a, double b) {
    return a - b;
}
[[gnu::noinline]] double multiply(double a, double b) {
    return a * b;
}
[[gnu::noinline]] double divide(double a, double b) {
    return a / b;
}
[[gnu::noinline]] double root(double a) {
    return std::sqrt(a);
}
[[gnu::noinline]] double fuse(double a, double b, double c) {
    return std::fma(a, b, c);
}

class Double : public TableTest {
  protected:
    const Rows two = joined(joined(pairs(troublesome<double>()), randomDoubles(1000, -40, 40)),
                            joined(randomDoubles(500, -540, -500, 5), randomRows(500)));
    const Rows three = joined(joined(triples(troublesome<double>()), randomDoubles(2000, -40, 40)),
                              joined(randomDoubles(500, -540, -500, 6), randomRows(500)));
};

TEST_F(Double, RoundsInEveryDirection) {
    for (const RoundingMode& r : kRoundings) {
        int mode = r.mode;
        expectEach("add" + r.name + ".f64 %d4, %d1, %d2;", two,
                   [=](double a, double b) { return roundedTo(mode, add, a, b); });
        expectEach("sub" + r.name + ".f64 %d4, %d1, %d2;", two,
                   [=](double a, double b) { return roundedTo(mode, subtract, a, b); });
        expectEach("mul" + r.name + ".f64 %d4, %d1, %d2;", two,
                   [=](double a, double b) { return roundedTo(mode, multiply, a, b); });
        expectEach("div" + r.name + ".f64 %d4, %d1, %d2;", two,
                   [=](double a, double b) { return roundedTo(mode, divide, a, b); });
        expectEach("fma" + r.name + ".f64 %d4, %d1, %d2, %d3;", three,
                   [=](double a, double b, double c) { return roundedTo(mode, fuse, a, b, c); });
        expectEach("rcp" + r.name + ".f64 %d4, %d1;", two,
                   [=](double a) { return roundedTo(mode, divide, 1.0, a); });
        expectEach("sqrt" + r.name + ".f64 %d4, %d1;", two,
                   [=](double a) { return roundedTo(mode, root, a); });
    }
}

TEST_F(Double, TakesExtremesSignsAndKinds) {
    auto least = [](double a, double b) {
        if (std::isnan(a)) return b;
        if (std::isnan(b)) return a;
        if (a == b) return std::signbit(a) ? a : b;
        return a < b ? a : b;
    };
    expectEach("min.f64 %d4, %d1, %d2;", two, least);
    expectEach("max.f64 %d4, %d1, %d2;", two, [=](double a, double b) { return -least(-a, -b); });
    expectEach("abs.f64 %d4, %d1;", two, [](double a) { return std::fabs(a); });
    expectEach("neg.f64 %d4, %d1;", two, [](double a) { return -a; });
    expectEach("copysign.f64 %d5, %d1, %d2; mov.b64 %q4, %d5;", two,
               [](W a, W b) -> W { return (a & 1ull << 63) | (b & ~(1ull << 63)); });
    expectEach("testp.finite.f64 %p4, %d1;", two, [](double a) { return std::isfinite(a); });
    expectEach("testp.subnormal.f64 %p4, %d1;", two,
               [](double a) { return std::fpclassify(a) == FP_SUBNORMAL; });
}

TEST_F(Double, ApproximatesReciprocals) {
    const Rows some = randomDoubles(2000, -300, 300);
    expectNear<double>("rcp.approx.ftz.f64 %d4, %d1;", some,
                       [](const Row& row) { return 1.0 / valueOf<double>(row[0]); }, {0x1p-19, 0});
    expectNear<double>(
        "abs.f64 %d1, %d1; rsqrt.approx.f64 %d4, %d1;", some,
        [](const Row& row) { return 1.0 / std::sqrt(std::fabs(valueOf<double>(row[0]))); },
        {0x1p-51, 0});
    expectNear<double>(
        "abs.f64 %d1, %d1; rsqrt.approx.ftz.f64 %d4, %d1;", some,
        [](const Row& row) { return 1.0 / std::sqrt(std::fabs(valueOf<double>(row[0]))); },
        {0x1p-19, 0});
}

}  // namespace
}  // namespace juice::truth

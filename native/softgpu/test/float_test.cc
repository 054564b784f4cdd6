// Floating point: rounding, flushing, saturation, NaN, approximations, conversions, halves.
#include <bit>
#include <cfenv>
#include <cmath>
#include <functional>
#include <limits>

#include "native/softgpu/test/harness.h"

namespace juice::softgpu::test {
namespace {

using W = uint64_t;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr uint32_t kNan = 0x7fffffff;

uint32_t bitsOf(float value) {
    return std::bit_cast<uint32_t>(value);
}
uint64_t bitsOf(double value) {
    return std::bit_cast<uint64_t>(value);
}

const std::vector<float> kFloats = {
    0.0f,          -0.0f,           1.0f,          -1.0f,    1.5f,
    2.5f,          -2.5f,           0.1f,          3.0e38f,  1e-40f,
    -1e-45f,       1.17549435e-38f, kInf,          -kInf,    std::nanf(""),
    16777217.0f,   1e10f,           -0.3f,         65504.0f, 65520.0f,
    2147483648.0f, -2147483648.0f,  4294967296.0f, 9.3e18f,  0.49999997f};

/// All pairs of kFloats, a in the low half.
std::vector<W> pairs() {
    std::vector<W> result;
    for (float a : kFloats) {
        for (float b : kFloats) {
            result.push_back(static_cast<W>(bitsOf(b)) << 32 | bitsOf(a));
        }
    }
    return result;
}

/// Runs "op" on %f1 and %f2 with the result in %f3, in chunks of a block.
void binary(const std::string& op, const std::function<float(float, float)>& want) {
    std::vector<W> all = pairs();
    all.resize(512);
    auto got =
        evaluate("ld.global.v2.f32 {%f1, %f2}, [%rd2];\n" + op +
                     "\nmov.b32 %r4, %f3; cvt.u64.u32 %rd5, %r4; st.global.u64 [%rd1], %rd5;",
                 all);
    for (size_t i = 0; i < all.size(); ++i) {
        auto a = std::bit_cast<float>(static_cast<uint32_t>(all[i]));
        auto b = std::bit_cast<float>(static_cast<uint32_t>(all[i] >> 32));
        float expected = want(a, b);
        uint32_t bits = std::isnan(expected) ? kNan : bitsOf(expected);
        EXPECT_EQ(got[i], bits) << op << " of " << a << " and " << b;
    }
}

float rounding(int mode, float a, float b, float (*f)(float, float)) {
    std::fesetround(mode);
    volatile float x = a, y = b;
    volatile float result = f(x, y);
    std::fesetround(FE_TONEAREST);
    return result;
}

float flushed(float value) {
    return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value;
}
float clamped(float value) {
    return value > 0 ? std::min(value, 1.0f) : 0.0f;
}

[[gnu::noinline]] float add(float a, float b) {
    return a + b;
}
[[gnu::noinline]] float multiply(float a, float b) {
    return a * b;
}
[[gnu::noinline]] float divide(float a, float b) {
    return a / b;
}

TEST(Float, roundsInAllFourDirections) {
    const std::pair<const char*, int> kModes[] = {
        {"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};
    for (auto [name, mode] : kModes) {
        std::string suffix = std::string(".") + name + ".f32 %f3, %f1, %f2;";
        binary("add" + suffix, [=](float a, float b) { return rounding(mode, a, b, add); });
        binary("mul" + suffix, [=](float a, float b) { return rounding(mode, a, b, multiply); });
        binary("div" + suffix, [=](float a, float b) { return rounding(mode, a, b, divide); });
    }
    binary("fma.rn.f32 %f3, %f1, %f2, 0f3F800000;",
           [](float a, float b) { return std::fma(a, b, 1.0f); });
    binary("sqrt.rn.f32 %f3, %f1;", [](float a, float) { return std::sqrt(a); });
    binary("rcp.rn.f32 %f3, %f1;", [](float a, float) { return 1.0f / a; });
    binary("sub.f32 %f3, %f1, %f2;", [](float a, float b) { return a - b; });
}

TEST(Float, flushesAndSaturates) {
    binary("add.ftz.f32 %f3, %f1, %f2;",
           [](float a, float b) { return flushed(flushed(a) + flushed(b)); });
    binary("mul.ftz.sat.f32 %f3, %f1, %f2;",
           [](float a, float b) { return clamped(flushed(flushed(a) * flushed(b))); });
    binary("fma.rn.sat.f32 %f3, %f1, %f2, %f1;",
           [](float a, float b) { return clamped(std::fma(a, b, a)); });
    binary("cvt.sat.f32.f32 %f3, %f1;", [](float a, float) { return clamped(a); });
    binary("cvt.ftz.f32.f32 %f3, %f1;", [](float a, float) { return flushed(a); });
}

TEST(Float, ordersNumbersBeforeNaN) {
    auto less = [](float a, float b) {
        if (std::isnan(a)) return b;
        if (std::isnan(b)) return a;
        if (a == b) return std::signbit(a) ? a : b;
        return std::min(a, b);
    };
    binary("min.f32 %f3, %f1, %f2;", less);
    binary("max.f32 %f3, %f1, %f2;", [&](float a, float b) { return -less(-a, -b); });
    binary("min.NaN.f32 %f3, %f1, %f2;", [&](float a, float b) {
        return std::isnan(a) || std::isnan(b) ? std::nanf("") : less(a, b);
    });
    binary("abs.f32 %f3, %f1;", [](float a, float) { return std::fabs(a); });
    binary("copysign.f32 %f3, %f1, 0f40000000;",
           [](float a, float) { return std::copysign(2.0f, a); });
}

TEST(Float, comparesOrderedAndUnordered) {
    auto test = [](const std::string& op, const std::function<bool(float, float)>& want) {
        binary("setp." + op + ".f32 %p1, %f1, %f2; selp.f32 %f3, 0f3F800000, 0f00000000, %p1;",
               [&](float a, float b) { return want(a, b) ? 1.0f : 0.0f; });
    };
    auto unordered = [](float a, float b) { return std::isnan(a) || std::isnan(b); };
    test("eq", [](float a, float b) { return a == b; });
    test("ne", [&](float a, float b) { return !unordered(a, b) && a != b; });
    test("lt", [](float a, float b) { return a < b; });
    test("geu", [](float a, float b) { return !(a < b); });
    test("neu", [](float a, float b) { return a != b; });
    test("equ", [&](float a, float b) { return unordered(a, b) || a == b; });
    test("num", [&](float a, float b) { return !unordered(a, b); });
    test("nan", unordered);
    test("lt.ftz", [](float a, float b) { return flushed(a) < flushed(b); });
}

TEST(Float, classifiesNumbers) {
    auto test = [](const std::string& kind, const std::function<bool(float)>& want) {
        binary("testp." + kind + ".f32 %p1, %f1; selp.f32 %f3, 0f3F800000, 0f00000000, %p1;",
               [&](float a, float) { return want(a) ? 1.0f : 0.0f; });
    };
    test("finite", [](float a) { return std::isfinite(a); });
    test("infinite", [](float a) { return std::isinf(a); });
    test("notanumber", [](float a) { return std::isnan(a); });
    test("subnormal", [](float a) { return std::fpclassify(a) == FP_SUBNORMAL; });
    test("normal", [](float a) { return std::isnormal(a) || a == 0; });
}

TEST(Float, approximatesWithinTheManualsBounds) {
    std::vector<W> in;
    for (int i = 1; i < 500; ++i) in.push_back(bitsOf(0.0123f * static_cast<float>(i)));
    auto check = [&](const std::string& op, double (*f)(double), double relative, double absolute) {
        auto got = evaluate(
            "ld.global.f32 %f1, [%rd2];\n" + op + " %f3, %f1; st.global.u32 [%rd1], %f3;", in);
        for (size_t i = 0; i < in.size(); ++i) {
            double x = std::bit_cast<float>(static_cast<uint32_t>(in[i])), want = f(x);
            double value = std::bit_cast<float>(static_cast<uint32_t>(got[i]));
            EXPECT_NEAR(value, want, std::max(relative * std::fabs(want), absolute)) << op << x;
        }
    };
    check(
        "rcp.approx.f32", [](double x) { return 1 / x; }, 0x1p-23, 0);
    check(
        "rsqrt.approx.ftz.f32", [](double x) { return 1 / std::sqrt(x); }, 0x1p-22, 0);
    check(
        "sqrt.approx.f32", [](double x) { return std::sqrt(x); }, 0x1p-22, 0);
    check(
        "sin.approx.f32", [](double x) { return std::sin(x); }, 0, 0x1p-20);
    check(
        "cos.approx.ftz.f32", [](double x) { return std::cos(x); }, 0, 0x1p-20);
    check(
        "ex2.approx.f32", [](double x) { return std::exp2(x); }, 0x1p-22, 0);
    check(
        "lg2.approx.f32", [](double x) { return std::log2(x); }, 0x1p-22, 0x1p-22);
    check(
        "tanh.approx.f32", [](double x) { return std::tanh(x); }, 0x1p-11, 0);
}

TEST(Double, computesAndRounds) {
    auto check = [](const std::string& op, double a, double b, double want) {
        auto got = evaluate("ld.global.f64 %d1, [%rd2]; mov.f64 %d2, 0d" +
                                [](W bits) {
                                    char text[17];
                                    std::snprintf(text, sizeof text, "%016llX",
                                                  static_cast<unsigned long long>(bits));
                                    return std::string(text);
                                }(bitsOf(b)) +
                                ";\n" + op + "\nst.global.f64 [%rd1], %d3;",
                            {bitsOf(a)});
        EXPECT_EQ(got[0], bitsOf(want)) << op << a << " " << b;
    };
    check("add.f64 %d3, %d1, %d2;", 0.1, 0.2, 0.1 + 0.2);
    check("add.rp.f64 %d3, %d1, %d2;", 1.0, 1e-30, std::nextafter(1.0, 2.0));
    check("sub.rz.f64 %d3, %d1, %d2;", 1.0, 1e-30, std::nextafter(1.0, 0.0));
    check("mul.rn.f64 %d3, %d1, %d2;", 1e200, 1e-100, 1e200 * 1e-100);
    check("div.rn.f64 %d3, %d1, %d2;", 1.0, 3.0, 1.0 / 3.0);
    check("fma.rn.f64 %d3, %d1, %d2, %d2;", 1e16, 1.0 + 0x1p-52,
          std::fma(1e16, 1.0 + 0x1p-52, 1.0 + 0x1p-52));
    check("sqrt.rn.f64 %d3, %d1;", 2.0, 0, std::sqrt(2.0));
    check("min.f64 %d3, %d1, %d2;", -0.0, 0.0, -0.0);
    check("neg.f64 %d3, %d1;", 3.5, 0, -3.5);
    check("cvt.rn.f32.f64 %f1, %d1; cvt.f64.f32 %d3, %f1;", 0.1, 0, 0.1f);
    check("cvt.rp.f32.f64 %f1, %d1; cvt.f64.f32 %d3, %f1;", 1 + 1e-12, 0, std::nextafter(1.f, 2.f));
    check("cvt.rmi.f64.f64 %d3, %d1;", -1.5, 0, -2.0);
    check("rcp.approx.ftz.f64 %d3, %d1;", 4.0, 0, 0.25);
}

TEST(Convert, floatsToIntegersClampAndTurnNaNToZero) {
    auto check = [](const std::string& op, const std::function<W(float)>& want) {
        std::vector<W> in;
        for (float value : kFloats) in.push_back(bitsOf(value));
        auto got =
            evaluate("ld.global.f32 %f1, [%rd2];\n" + op + "\nst.global.u64 [%rd1], %rd5;", in);
        for (size_t i = 0; i < in.size(); ++i)
            EXPECT_EQ(got[i], want(kFloats[i])) << op << kFloats[i];
    };
    auto clampTo = [](double value, double low, double high) {
        return std::isnan(value) ? 0 : std::clamp(value, low, high);
    };
    check("cvt.rzi.s32.f32 %r4, %f1; cvt.u64.u32 %rd5, %r4;", [&](float a) {
        return static_cast<uint32_t>(
            static_cast<int64_t>(clampTo(std::trunc(a), INT32_MIN, INT32_MAX)));
    });
    check("cvt.rni.u32.f32 %r4, %f1; cvt.u64.u32 %rd5, %r4;",
          [&](float a) { return static_cast<W>(clampTo(std::rint(a), 0, UINT32_MAX)); });
    check("cvt.rmi.s16.f32 %h1, %f1; cvt.s64.s16 %rd5, %h1;", [&](float a) {
        return static_cast<W>(static_cast<int64_t>(clampTo(std::floor(a), -32768, 32767)));
    });
    check("cvt.rpi.u8.f32 %h1, %f1; cvt.u64.u16 %rd5, %h1;",
          [&](float a) { return static_cast<W>(clampTo(std::ceil(a), 0, 255)); });
    check("cvt.rzi.s64.f32 %rd5, %f1;", [&](float a) {
        if (std::isnan(a)) return W{1} << 63;
        if (a >= 0x1p63f) return static_cast<W>(INT64_MAX);
        if (a <= -0x1p63f) return W{1} << 63;
        return static_cast<W>(static_cast<int64_t>(std::trunc(a)));
    });
    check("cvt.rni.f32.f32 %f2, %f1; mov.b32 %r4, %f2; cvt.u64.u32 %rd5, %r4;",
          [](float a) { return std::isnan(a) ? kNan : bitsOf(std::rint(a)); });
}

TEST(Convert, integersToFloatsRound) {
    auto one = [](const std::string& op, W in) {
        return evaluate(
            "ld.global.u64 %rd4, [%rd2]; cvt.u32.u64 %r2, %rd4;\n" + op +
                "\nmov.b32 %r4, %f1; cvt.u64.u32 %rd5, %r4; st.global.u64 [%rd1], %rd5;",
            {in})[0];
    };
    EXPECT_EQ(one("cvt.rn.f32.s32 %f1, %r2;", 0xffffffff), bitsOf(-1.0f));
    EXPECT_EQ(one("cvt.rn.f32.u32 %f1, %r2;", 0xffffffff), bitsOf(4294967296.0f));
    EXPECT_EQ(one("cvt.rz.f32.u32 %f1, %r2;", 0xffffffff), bitsOf(4294967040.0f));
    EXPECT_EQ(one("cvt.rp.f32.s32 %f1, %r2;", 16777217), bitsOf(16777218.0f));
    EXPECT_EQ(one("cvt.rm.f32.s32 %f1, %r2;", 16777217), bitsOf(16777216.0f));
    EXPECT_EQ(one("cvt.rn.f32.u64 %f1, %rd4;", ~W{0}), bitsOf(0x1p64f));
    EXPECT_EQ(one("cvt.rz.f32.u64 %f1, %rd4;", ~W{0}), bitsOf(0x1.fffffep63f));
    EXPECT_EQ(one("cvt.rn.f64.s64 %d1, %rd4; cvt.rn.f32.f64 %f1, %d1;", W{0} - 5), bitsOf(-5.0f));
}

TEST(Convert, integersToIntegersWrapOrClamp) {
    auto one = [](const std::string& op, W in) {
        return evaluate("ld.global.u64 %rd4, [%rd2]; cvt.u32.u64 %r2, %rd4;\n" + op +
                            "\nst.global.u64 [%rd1], %rd5;",
                        {in})[0];
    };
    EXPECT_EQ(one("cvt.s64.s32 %rd5, %r2;", 0x80000000), 0xffffffff80000000u);
    EXPECT_EQ(one("cvt.u64.u32 %rd5, %r2;", 0x80000000), 0x80000000u);
    EXPECT_EQ(one("cvt.s64.s8 %rd5, %r2;", 0x1234ff80), 0xffffffffffffff80u);
    EXPECT_EQ(one("cvt.s8.s32 %r4, %r2; cvt.u64.u32 %rd5, %r4;", 0x180), 0xffffff80u);
    EXPECT_EQ(one("cvt.sat.u8.s32 %r4, %r2; cvt.u64.u32 %rd5, %r4;", 0xfffffff0), 0u);
    EXPECT_EQ(one("cvt.sat.u8.s32 %r4, %r2; cvt.u64.u32 %rd5, %r4;", 300), 255u);
    EXPECT_EQ(one("cvt.sat.s32.s64 %r4, %rd4; cvt.u64.u32 %rd5, %r4;", W{1} << 40), 0x7fffffffu);
    EXPECT_EQ(one("cvt.sat.s16.u32 %h1, %r2; cvt.u64.u16 %rd5, %h1;", 0xffffffff), 0x7fffu);
}

/// Converts one f32 with `op` to a 16-bit value in %h1.
W narrowed(const std::string& op, float value) {
    return evaluate("ld.global.f32 %f1, [%rd2];\n" + op +
                        " %h1, %f1; cvt.u64.u16 %rd5, %h1; st.global.u64 [%rd1], %rd5;",
                    {bitsOf(value)})[0];
}

TEST(Half, roundsOnceFromSingle) {
    EXPECT_EQ(narrowed("cvt.rn.f16.f32", 1.0f), 0x3c00u);
    EXPECT_EQ(narrowed("cvt.rn.f16.f32", -2.0f), 0xc000u);
    EXPECT_EQ(narrowed("cvt.rn.f16.f32", 65504.0f), 0x7bffu);
    EXPECT_EQ(narrowed("cvt.rn.f16.f32", 65519.0f), 0x7bffu);
    EXPECT_EQ(narrowed("cvt.rn.f16.f32", 65520.0f), 0x7c00u);
    EXPECT_EQ(narrowed("cvt.rz.f16.f32", 1e10f), 0x7bffu);
    EXPECT_EQ(narrowed("cvt.rn.satfinite.f16.f32", 1e10f), 0x7bffu);
    EXPECT_EQ(narrowed("cvt.rn.f16.f32", 0x1p-24f), 1u);
    EXPECT_EQ(narrowed("cvt.rn.f16.f32", 0x1p-25f), 0u);
    EXPECT_EQ(narrowed("cvt.rn.f16.f32", 0x1.8p-25f), 1u);
    EXPECT_EQ(narrowed("cvt.rn.f16.f32", 0x1.ff8p-15f), 0x03ffu);
    EXPECT_EQ(narrowed("cvt.rn.f16.f32", 0x1.ffcp-15f), 0x0400u);
    EXPECT_EQ(narrowed("cvt.rn.f16.f32", 1 + 0x1p-11f), 0x3c00u);
    EXPECT_EQ(narrowed("cvt.rn.f16.f32", 1 + 0x1.8p-10f), 0x3c02u);
    EXPECT_EQ(narrowed("cvt.rn.relu.f16.f32", -3.0f), 0u);
    EXPECT_EQ(narrowed("cvt.rn.f16.f32", std::nanf("")), 0x7fffu);
    EXPECT_EQ(narrowed("cvt.rn.bf16.f32", 1.0f), 0x3f80u);
    EXPECT_EQ(narrowed("cvt.rn.bf16.f32", 1 + 0x1p-8f), 0x3f80u);
    EXPECT_EQ(narrowed("cvt.rz.bf16.f32", 1.999f), 0x3fffu);
    EXPECT_EQ(narrowed("cvt.rn.bf16.f32", 3.4e38f), 0x7f80u);
    EXPECT_EQ(narrowed("cvt.rn.bf16.f32", 1e-40f), 0x0001u);
}

TEST(Half, widensEveryValueAndComesBack) {
    std::vector<W> all(1024);
    for (uint32_t base = 0; base < 65536; base += 1024) {
        for (uint32_t i = 0; i < 1024; ++i) all[i] = base + i;
        for (const char* type : {"f16", "bf16"}) {
            std::string t = type;
            auto got =
                evaluate("ld.global.u16 %h1, [%rd2]; cvt.f32." + t + " %f1, %h1; cvt.rn." + t +
                             ".f32 %h2, %f1; cvt.u64.u16 %rd5, %h2; st.global.u64 [%rd1], %rd5;",
                         all);
            for (uint32_t i = 0; i < 1024; ++i) {
                W infinity = t == "f16" ? 0x7c00 : 0x7f80;
                bool nan = (all[i] & 0x7fff) > infinity;
                ASSERT_EQ(got[i], nan ? 0x7fffu : all[i]) << t;
            }
        }
    }
}

TEST(Half, computesInSinglesAndPairs) {
    auto pair = [](const std::string& op, uint32_t a, uint32_t b) {
        return static_cast<uint32_t>(
            evaluate("ld.global.v2.u32 {%r2, %r3}, [%rd2];\n" + op +
                         "\ncvt.u64.u32 %rd5, %r4; st.global.u64 [%rd1], %rd5;",
                     {static_cast<W>(b) << 32 | a})[0]);
    };
    EXPECT_EQ(pair("add.f16x2 %r4, %r2, %r3;", 0x3c004000, 0x3c003c00), 0x40004200u);
    EXPECT_EQ(pair("sub.rn.f16x2 %r4, %r2, %r3;", 0x3c004000, 0x3c003c00), 0x00003c00u);
    EXPECT_EQ(pair("mul.f16x2 %r4, %r2, %r3;", 0x40004000, 0xc2003c00), 0xc6004000u);
    EXPECT_EQ(pair("fma.rn.f16x2 %r4, %r2, %r3, %r2;", 0x3c003c00, 0x3c004000), 0x40004200u);
    EXPECT_EQ(pair("fma.rn.bf16x2 %r4, %r2, %r3, %r2;", 0x3f803f80, 0x3f804000), 0x40004040u);
    EXPECT_EQ(pair("neg.f16x2 %r4, %r2;", 0x3c00c000, 0), 0xbc004000u);
    EXPECT_EQ(pair("abs.bf16x2 %r4, %r2;", 0xbf80c000, 0), 0x3f804000u);
    EXPECT_EQ(pair("max.f16x2 %r4, %r2, %r3;", 0x3c007fff, 0x40003c00), 0x40003c00u);
    EXPECT_EQ(pair("min.NaN.f16x2 %r4, %r2, %r3;", 0x3c007fff, 0x40003c00), 0x3c007fffu);
    EXPECT_EQ(pair("mov.b32 %f1, %r2; mov.b32 %f2, %r3; cvt.rn.f16x2.f32 %r4, %f1, %f2;",
                   0x3f800000, 0x40000000),
              0x3c004000u);
    EXPECT_EQ(pair("mov.b32 %f1, %r2; mov.b32 %f2, %r3; cvt.rn.bf16x2.f32 %r4, %f1, %f2;",
                   0x3f800000, 0x40000000),
              0x3f804000u);
    EXPECT_EQ(pair("mov.b32 {%h1, %h2}, %r2; setp.lt.f16 %p1, %h1, %h2; selp.u32 %r4, 1, 0, %p1;",
                   0x40003c00, 0),
              1u);
    EXPECT_EQ(pair("mov.b32 {%h1, %h2}, %r2; ex2.approx.f16 %h3, %h1; mov.b32 %r4, {%h3, %h3};",
                   0x4000, 0),
              0x44004400u);
    // 1 + 2^-11 (a tie in f16) minus a little more than nothing: one rounding goes down.
    EXPECT_EQ(pair("mov.b32 {%h1, %h2}, %r2; mov.b32 {%h3, %h4}, %r3;"
                   "fma.rn.f16 %h5, %h1, %h2, %h3; mov.b32 %r4, {%h5, %h5};",
                   0x10018401, 0x3c00),
              0x3c003c00u);
}

}  // namespace
}  // namespace juice::softgpu::test

// The functions that the hardware approximates, within the bounds of the manual.
#include "test/softgpu/narrow.h"
#include "test/softgpu/rounding.h"
#include "test/softgpu/table.h"

namespace juice::truth {
namespace {

using H = uint16_t;
using U = uint32_t;

class Approximate : public TableTest {
  protected:
    static double first(const Row& row) { return double{valueOf<float>(row[0])}; }
    static double second(const Row& row) { return double{valueOf<float>(row[1])}; }
    /// One unit in the last of 24 places, relative to a value in the worst place.
    static constexpr double kUlp = 0x1p-23;
    /// Only .ftz results can be subnormal no more; elsewhere the bound is that of a normal number.
    static constexpr double kTiny = 0x1p-126;
};

TEST_F(Approximate, Divides) {
    const Rows rows = randomFloats(3000, -40, 40);
    auto quotient = [](const Row& row) { return first(row) / second(row); };
    expectNear<float>("div.approx.f32 %f4, %f1, %f2;", rows, quotient, {2 * kUlp, kTiny});
    expectNear<float>("div.approx.ftz.f32 %f4, %f1, %f2;", rows, quotient, {2 * kUlp, kTiny});
    expectNear<float>("div.full.f32 %f4, %f1, %f2;", joined(rows, randomFloats(1000, 100, 127, 3)),
                      quotient, {2 * kUlp, kTiny});
    // Beyond 2^126 a divisor gives zero, and infinity over it NaN.
    expectTable<U>("div.approx.f32 %f5, %f1, %f2; mov.b32 %r4, %f5;",
                   {{bitsOf(1.0f), bitsOf(0x1.8p126f), 0, 0},
                    {bitsOf(-1.0f), bitsOf(0x1.8p126f), 0, 0x80000000},
                    {0x7f800000, bitsOf(0x1.8p126f), 0, 0x7fffffff}});
}

TEST_F(Approximate, TakesReciprocalsAndRoots) {
    const Rows rows = randomFloats(3000, -100, 100);
    expectNear<float>("rcp.approx.f32 %f4, %f1;", rows,
                      [](const Row& row) { return 1 / first(row); }, {kUlp, kTiny});
    expectNear<float>("abs.f32 %f1, %f1; sqrt.approx.f32 %f4, %f1;", rows,
                      [](const Row& row) { return std::sqrt(std::fabs(first(row))); },
                      {0x1p-23, 0});
    expectNear<float>("abs.f32 %f1, %f1; rsqrt.approx.f32 %f4, %f1;", rows,
                      [](const Row& row) { return 1 / std::sqrt(std::fabs(first(row))); },
                      {0x1.7p-22, 0});
    const U kInf = 0x7f800000, kNan = 0x7fffffff, kMinus = 0x80000000;
    expectTable<U>("rcp.approx.ftz.f32 %f5, %f1; mov.b32 %r4, %f5;", {{0, 0, 0, kInf},
                                                                      {kMinus, 0, 0, kInf | kMinus},
                                                                      {1, 0, 0, kInf},
                                                                      {kInf, 0, 0, 0},
                                                                      {kInf | kMinus, 0, 0, kMinus},
                                                                      {kNan, 0, 0, kNan}});
    expectTable<U>("sqrt.approx.ftz.f32 %f5, %f1; mov.b32 %r4, %f5;",
                   {{0, 0, 0, 0},
                    {kMinus, 0, 0, kMinus},
                    {1, 0, 0, 0},
                    {kInf, 0, 0, kInf},
                    {bitsOf(-1.0f), 0, 0, kNan}});
    expectTable<U>("rsqrt.approx.ftz.f32 %f5, %f1; mov.b32 %r4, %f5;",
                   {{0, 0, 0, kInf},
                    {kMinus, 0, 0, kInf | kMinus},
                    {1, 0, 0, kInf},
                    {kInf, 0, 0, 0},
                    {bitsOf(-1.0f), 0, 0, kNan}});
}

TEST_F(Approximate, TakesPowersAndLogarithms) {
    const Rows powers = joined(randomFloats(2000, -10, 6), randomFloats(500, -30, -10, 2));
    auto power = [](const Row& row) { return std::exp2(first(row)); };
    expectNear<float>("ex2.approx.f32 %f4, %f1;", powers, power, {0x1.1p-22, 0x1.1p-149});
    expectNear<float>("ex2.approx.ftz.f32 %f4, %f1;", powers, power, {0x1.1p-22, kTiny});
    const Rows logarithms = randomFloats(3000, -60, 60);
    // Relative outside of [0.5, 2], absolute inside.
    auto logarithm = [](const Row& row) { return std::log2(std::fabs(first(row))); };
    expectNear<float>("abs.f32 %f1, %f1; lg2.approx.f32 %f4, %f1;", logarithms, logarithm,
                      {0x1p-22, 0x1p-22});
    expectNear<float>("abs.f32 %f1, %f1; lg2.approx.ftz.f32 %f4, %f1;", logarithms, logarithm,
                      {0x1p-22, 0x1p-22});
    const U kInf = 0x7f800000, kNan = 0x7fffffff, kMinus = 0x80000000;
    expectTable<U>("ex2.approx.ftz.f32 %f5, %f1; mov.b32 %r4, %f5;",
                   {{0, 0, 0, bitsOf(1.0f)},
                    {1 | kMinus, 0, 0, bitsOf(1.0f)},
                    {kInf, 0, 0, kInf},
                    {kInf | kMinus, 0, 0, 0},
                    {bitsOf(-200.0f), 0, 0, 0},
                    {bitsOf(3.0f), 0, 0, bitsOf(8.0f)}});
    expectTable<U>("lg2.approx.ftz.f32 %f5, %f1; mov.b32 %r4, %f5;",
                   {{0, 0, 0, kInf | kMinus},
                    {1, 0, 0, kInf | kMinus},
                    {kInf, 0, 0, kInf},
                    {bitsOf(-1.0f), 0, 0, kNan},
                    {bitsOf(8.0f), 0, 0, bitsOf(3.0f)}});
}

TEST_F(Approximate, TakesSinesAndCosines) {
    // The manual's bound holds in [-2 pi, 2 pi].
    const Rows rows = joined(randomFloats(3000, -12, 1), randomFloats(500, -25, -12, 2));
    Rows inside;
    for (const Row& row : rows)
        if (std::fabs(first(row)) < 3.14) inside.push_back(row);
    expectNear<float>("sin.approx.f32 %f4, %f1;", inside,
                      [](const Row& row) { return std::sin(first(row)); }, {0, 0x1p-20});
    expectNear<float>("cos.approx.f32 %f4, %f1;", inside,
                      [](const Row& row) { return std::cos(first(row)); }, {0, 0x1p-20});
    const U kNan = 0x7fffffff;
    expectTable<U>("sin.approx.ftz.f32 %f5, %f1; mov.b32 %r4, %f5;",
                   {{0, 0, 0, 0}, {0x80000000, 0, 0, 0x80000000}, {0x7f800000, 0, 0, kNan}});
    expectTable<U>("cos.approx.ftz.f32 %f5, %f1; mov.b32 %r4, %f5;",
                   {{0, 0, 0, bitsOf(1.0f)}, {0x7f800000, 0, 0, kNan}});
}

TEST_F(Approximate, TakesHyperbolicTangents) {
    const Rows rows = randomFloats(3000, -12, 4);
    expectNear<float>("tanh.approx.f32 %f4, %f1;", rows,
                      [](const Row& row) { return std::tanh(first(row)); }, {0x1p-10, 0x1p-24});
}

TEST_F(Approximate, WorksInHalves) {
    Rows finite;
    for (uint64_t bits = 0; bits < 0x10000; bits += 3)
        if (std::isfinite(kBinary16.open(static_cast<U>(bits)))) finite.push_back({bits, 0, 0});
    auto half = [](const Row& row) { return kBinary16.open(static_cast<U>(row[0])); };
    const std::string widen = "cvt.f32.f16 %f4, %h4;";
    // 2^-9.9 relative, from the manual; infinities where the result is beyond the largest half.
    Rows powers;
    for (const Row& row : finite)
        if (half(row) < 15.9) powers.push_back(row);
    expectNear<float>("ex2.approx.f16 %h4, %h1;" + widen, powers,
                      [=](const Row& row) { return std::exp2(half(row)); }, {0x1.1p-10, 0x1p-24});
    expectNear<float>("tanh.approx.f16 %h4, %h1;" + widen, finite,
                      [=](const Row& row) { return std::tanh(half(row)); }, {0x1p-10, 0x1.ap-11});
}

TEST_F(Approximate, WorksInBrain16) {
    NEEDS(90);
    Rows finite;
    for (uint64_t bits = 0; bits < 0x10000; bits += 3) {
        double value = kBrain16.open(static_cast<U>(bits));
        if (std::isfinite(value) && value < 120) finite.push_back({bits, 0, 0});
    }
    auto brain = [](const Row& row) { return kBrain16.open(static_cast<U>(row[0])); };
    const std::string widen = "cvt.f32.bf16 %f4, %h4;";
    expectNear<float>("ex2.approx.ftz.bf16 %h4, %h1;" + widen, finite,
                      [=](const Row& row) { return std::exp2(brain(row)); }, {0x1p-7, kTiny});
    // The manual bounds the absolute error by 2^-8; an H200 is off by one unit of the last place.
    expectNear<float>("tanh.approx.bf16 %h4, %h1;" + widen, finite,
                      [=](const Row& row) { return std::tanh(brain(row)); }, {0x1.04p-7, kTiny});
}

}  // namespace
}  // namespace juice::truth

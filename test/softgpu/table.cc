#include "test/softgpu/table.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <random>

namespace juice::truth {
namespace {

constexpr unsigned kThreads = 128;

template <class T>
Rows randomNumbers(size_t count, int low, int high, uint64_t seed) {
    std::mt19937_64 random(seed);
    Rows rows(count);
    for (Row& row : rows) {
        for (uint64_t& bits : row) {
            double fraction = 1.0 + std::ldexp(static_cast<double>(random() >> 12), -52);
            int exponent = low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
            auto value = static_cast<T>(std::ldexp(fraction, exponent));
            bits = bitsOf((random() & 1) != 0 ? -value : value);
        }
    }
    return rows;
}

}  // namespace

template <>
std::vector<uint16_t> troublesome<uint16_t>() {
    return {0, 1, 2, 7, 15, 16, 0x00ff, 0x0100, 0x1234, 0x7fff, 0x8000, 0x8001, 0xdead, 0xffff};
}
template <>
std::vector<uint32_t> troublesome<uint32_t>() {
    return {0,          1,          2,          7,          8,          31,
            32,         33,         0xff,       0x8000,     0xffff,     0x10000,
            0x7fffff,   0xffffff,   0x1000000,  0x12345678, 0x7ffffffe, 0x7fffffff,
            0x80000000, 0x80000001, 0xdeadbeef, 0xfffffff0, 0xfffffffe, 0xffffffff};
}
template <>
std::vector<uint64_t> troublesome<uint64_t>() {
    return {0,
            1,
            2,
            31,
            32,
            63,
            64,
            65,
            0x7fffffff,
            0x80000000,
            0xffffffff,
            0x100000000,
            0x123456789abcdef0,
            0x7fffffffffffffff,
            0x8000000000000000,
            0x8000000000000001,
            0xdeadbeefcafebabe,
            0xffffffff00000000,
            0xfffffffffffffffe,
            0xffffffffffffffff};
}
template <>
std::vector<float> troublesome<float>() {
    constexpr float kInf = std::numeric_limits<float>::infinity();
    return {0.0f,
            -0.0f,
            1.0f,
            -1.0f,
            1.5f,
            2.5f,
            -2.5f,
            0.1f,
            0.49999997f,
            -0.3f,
            3.0f,
            3.0e38f,
            0x1.fffffep127f,
            -0x1.fffffep127f,
            0x1p-126f,
            -0x1.fffffcp-127f,
            0x1p-149f,
            -1e-40f,
            kInf,
            -kInf,
            std::nanf(""),
            16777217.0f,
            65504.0f,
            2147483648.0f,
            -2147483648.0f,
            9.3e18f,
            0x1.000002p0f,
            0x1.fffffep-1f};
}
template <>
std::vector<double> troublesome<double>() {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    return {0.0,
            -0.0,
            1.0,
            -1.0,
            1.5,
            -2.5,
            0.1,
            -0.3,
            3.0,
            1.7e308,
            0x1.fffffffffffffp1023,
            -0x1.fffffffffffffp1023,
            0x1p-1022,
            -0x0.fffffffffffffp-1022,
            0x1p-1074,
            kInf,
            -kInf,
            std::nan(""),
            9007199254740993.0,
            2147483648.5,
            -2147483649.0,
            9.3e18,
            1.9e19,
            0x1.0000000000001p0,
            0x1.fffffffffffffp-1,
            0x1.fffffefffffffp127,
            0x1.fffffffp127,
            1e-45,
            0x1.8p-150};
}

Rows randomRows(size_t count, uint64_t seed) {
    std::mt19937_64 random(seed);
    Rows rows(count);
    for (Row& row : rows)
        for (uint64_t& bits : row) bits = random();
    return rows;
}

Rows randomFloats(size_t count, int low, int high, uint64_t seed) {
    return randomNumbers<float>(count, low, high, seed);
}

Rows randomDoubles(size_t count, int low, int high, uint64_t seed) {
    return randomNumbers<double>(count, low, high, seed);
}

Rows joined(Rows first, const Rows& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
}

std::vector<uint64_t> TableTest::evaluate(const std::string& body, const Rows& rows,
                                          const std::string& before) const {
    Module module(head() + before +
                  ".visible .entry body(.param .u64 out, .param .u64 in, .param .u32 count)\n{\n"
                  ".reg .pred %p<16>; .reg .b16 %h<16>; .reg .b32 %r<32>; .reg .f32 %f<16>;\n"
                  ".reg .b64 %q<16>; .reg .f64 %d<16>; .reg .b64 %out; .reg .b64 %in;\n"
                  "ld.param.u64 %out, [out]; ld.param.u64 %in, [in]; ld.param.u32 %r3, [count];\n"
                  "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;\n"
                  "mad.lo.u32 %r1, %r2, 128, %r1; setp.ge.u32 %p1, %r1, %r3; @%p1 ret;\n"
                  "mad.wide.u32 %out, %r1, 8, %out; mad.wide.u32 %in, %r1, 24, %in;\n"
                  "ld.global.u64 %q1, [%in]; ld.global.u64 %q2, [%in+8];\n"
                  "ld.global.u64 %q3, [%in+16];\n"
                  "cvt.u32.u64 %r1, %q1; cvt.u32.u64 %r2, %q2; cvt.u32.u64 %r3, %q3;\n"
                  "cvt.u16.u64 %h1, %q1; cvt.u16.u64 %h2, %q2; cvt.u16.u64 %h3, %q3;\n"
                  "mov.b32 %f1, %r1; mov.b32 %f2, %r2; mov.b32 %f3, %r3;\n"
                  "mov.b64 %d1, %q1; mov.b64 %d2, %q2; mov.b64 %d3, %q3;\n" +
                  body + "\nst.global.u64 [%out], %q4;\nret;\n}\n");
    if (!module.loaded()) {
        ADD_FAILURE() << "refused: " << body;
        return {};
    }
    Buffer<Row> in(rows);
    Buffer<uint64_t> out(rows.size());
    auto count = static_cast<uint32_t>(rows.size());
    EXPECT_OK(run(module.function("body"), {(count + kThreads - 1) / kThreads}, {kThreads}, 0,
                  out.address(), in.address(), count))
        << body;
    return out.read();
}

TableTest::Faults::~Faults() {
    if (count_ > 0) ADD_FAILURE() << body_ << "\n" << text_ << count_ << " rows are wrong";
}

void TableTest::Faults::add(const Row& row, const std::string& want, const std::string& got) {
    if (++count_ > 5) return;
    text_ += "  a " + hex(row[0]) + " b " + hex(row[1]) + " c " + hex(row[2]) + ": expected " +
             want + ", got " + got + "\n";
}

bool TableTest::isNear(double got, double want, Bound bound) {
    if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
    if (got == want) return true;
    return std::fabs(got - want) <= std::max(bound.absolute, bound.relative * std::fabs(want));
}

std::string TableTest::hex(uint64_t bits) {
    std::array<char, 24> text{};
    std::snprintf(text.data(), text.size(), "%#" PRIx64, bits);
    return text.data();
}

std::string TableTest::text(double value) {
    std::array<char, 40> text{};
    std::snprintf(text.data(), text.size(), "%a", value);
    return text.data();
}

}  // namespace juice::truth

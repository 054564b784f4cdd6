// Instructions against tables: a body of PTX runs once for each row of operands, a thread each, and
// every result is held against a value that the host computes, or that the table gives.
//
// The body finds its operands a, b, c in %q1..%q3 (64 bits), and the low parts of the same in
// %r1..%r3, %h1..%h3, %f1..%f3 and %d1..%d3. It leaves its result in register 4 of the kind that
// the reference's result type names: bool %p4, 16 bits %h4, 32 %r4, 64 %q4, float %f4, double %d4.
// Registers 5 to 15 of every kind are free.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "test/softgpu/device.h"

namespace juice::truth {

using Row = std::array<uint64_t, 3>;
using Rows = std::vector<Row>;

/// A value's bits, at the low end.
template <class T>
uint64_t bitsOf(T value) {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    return bits;
}
template <class T>
T valueOf(uint64_t bits) {
    if constexpr (std::is_same_v<T, bool>) return (bits & 1) != 0;
    T value;
    std::memcpy(&value, &bits, sizeof(T));
    return value;
}

/// Rows of one operand each; of all pairs; of all triples.
template <class T>
Rows each(const std::vector<T>& values) {
    Rows rows;
    for (T a : values) rows.push_back({bitsOf(a), 0, 0});
    return rows;
}
template <class A, class B = A>
Rows pairs(const std::vector<A>& first, const std::vector<B>& second) {
    Rows rows;
    for (A a : first)
        for (B b : second) rows.push_back({bitsOf(a), bitsOf(b), 0});
    return rows;
}
template <class T>
Rows pairs(const std::vector<T>& values) {
    return pairs<T, T>(values, values);
}
template <class T>
Rows triples(const std::vector<T>& values) {
    Rows rows;
    for (T a : values)
        for (T b : values)
            for (T c : values) rows.push_back({bitsOf(a), bitsOf(b), bitsOf(c)});
    return rows;
}

/// Values that often make trouble in a type.
template <class T>
std::vector<T> troublesome();
template <>
std::vector<uint16_t> troublesome<uint16_t>();
template <>
std::vector<uint32_t> troublesome<uint32_t>();
template <>
std::vector<uint64_t> troublesome<uint64_t>();
template <>
std::vector<float> troublesome<float>();
template <>
std::vector<double> troublesome<double>();

/// Rows of random bits, the same in every run.
Rows randomRows(size_t count, uint64_t seed = 1);
/// Random floats (in every operand) with exponents from `low` to `high`, of both signs.
Rows randomFloats(size_t count, int low, int high, uint64_t seed = 1);
Rows randomDoubles(size_t count, int low, int high, uint64_t seed = 1);
Rows joined(Rows first, const Rows& second);

class TableTest : public DeviceTest {
  protected:
    /// Runs the body for each row; %q4 is the result. `before` stands ahead of the kernel.
    std::vector<uint64_t> evaluate(const std::string& body, const Rows& rows,
                                   const std::string& before = "") const;

    /// Holds each result against reference(a), reference(a, b) or reference(a, b, c). A NaN is
    /// expected where the reference gives one, whatever its payload.
    template <class F>
    void expectEach(const std::string& body, const Rows& rows, F reference) const {
        expectCalled(body, rows, std::function(reference));
    }

    /// Results of a table.
    struct Known {
        uint64_t a, b, c, result;
    };
    template <class R>
    void expectTable(const std::string& body, const std::vector<Known>& table) const {
        Rows rows;
        for (const Known& known : table) rows.push_back({known.a, known.b, known.c});
        auto got = evaluate(body + store<R>(), rows);
        if (got.empty()) return;
        Faults faults(body);
        for (size_t i = 0; i < table.size(); ++i) {
            if (valueOf<R>(got[i]) != valueOf<R>(table[i].result))
                faults.add(rows[i], hex(table[i].result), hex(got[i]));
        }
    }

    /// A result that the manual bounds: |got - reference| <= absolute, or <= relative of the
    /// reference's size. What is infinite, NaN, or overflows must be that.
    struct Bound {
        double relative = 0, absolute = 0;
    };
    template <class R, class F>
    void expectNear(const std::string& body, const Rows& rows, F reference, Bound bound) const {
        auto got = evaluate(body + store<R>(), rows);
        if (got.empty()) return;
        Faults faults(body);
        for (size_t i = 0; i < rows.size(); ++i) {
            auto value = static_cast<double>(valueOf<R>(got[i]));
            double want = reference(rows[i]);
            if (!isNear(value, want, bound)) faults.add(rows[i], text(want), text(value));
        }
    }

    /// What a store of register 4 as R takes: it ends in %q4.
    template <class R>
    static std::string store() {
        if constexpr (std::is_same_v<R, bool>) return "\nselp.u64 %q4, 1, 0, %p4;";
        if constexpr (std::is_same_v<R, float>) return "\nmov.b32 %r4, %f4; cvt.u64.u32 %q4, %r4;";
        if constexpr (std::is_same_v<R, double>) return "\nmov.b64 %q4, %d4;";
        if constexpr (std::is_integral_v<R> && sizeof(R) == 2) return "\ncvt.u64.u16 %q4, %h4;";
        if constexpr (std::is_integral_v<R> && sizeof(R) == 4) return "\ncvt.u64.u32 %q4, %r4;";
        return "";
    }

  private:
    /// The first few rows that went wrong, as one failure.
    class Faults {
      public:
        explicit Faults(const std::string& body) : body_(body) {}
        ~Faults();
        Faults(const Faults&) = delete;
        Faults& operator=(const Faults&) = delete;
        void add(const Row& row, const std::string& want, const std::string& got);

      private:
        std::string body_, text_;
        size_t count_ = 0;
    };

    static bool isNear(double got, double want, Bound bound);
    static std::string hex(uint64_t bits);
    static std::string text(double value);

    template <class R, class... A>
    void expectCalled(const std::string& body, const Rows& rows,
                      const std::function<R(A...)>& reference) const {
        auto got = evaluate(body + store<R>(), rows);
        if (got.empty()) return;
        Faults faults(body);
        for (size_t i = 0; i < rows.size(); ++i) {
            R want = call<R, A...>(reference, rows[i], std::index_sequence_for<A...>{});
            R value = valueOf<R>(got[i]);
            if constexpr (std::is_floating_point_v<R>) {
                if (std::isnan(want) && std::isnan(value)) continue;
            }
            if (bitsOf(want) != bitsOf(value)) faults.add(rows[i], hex(bitsOf(want)), hex(got[i]));
        }
    }
    template <class R, class... A, size_t... I>
    static R call(const std::function<R(A...)>& reference, const Row& row,
                  std::index_sequence<I...>) {
        return reference(valueOf<A>(row[I])...);
    }
};

}  // namespace juice::truth

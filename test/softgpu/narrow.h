// Floating-point formats narrower than f32, for references: what a value's bits are, and which bits
// a number rounds to, written out from the definition of such a format.
#pragma once

#include <cmath>
#include <cstdint>

namespace juice::truth {

struct Narrow {
    int exponentBits, fractionBits;
    bool infinities = true;  // false: e4m3, whose only special value is NaN, all ones

    int bias() const { return (1 << (exponentBits - 1)) - 1; }
    uint32_t signBit() const { return 1u << (exponentBits + fractionBits); }
    /// The largest finite value.
    double largest() const {
        double fraction = 2.0 - std::ldexp(infinities ? 1.0 : 2.0, -fractionBits);
        return std::ldexp(fraction, infinities ? bias() : bias() + 1);
    }

    double open(uint32_t bits) const {
        uint32_t fraction = bits & ((1u << fractionBits) - 1);
        int exponent = static_cast<int>(bits >> fractionBits & ((1u << exponentBits) - 1));
        int last = (1 << exponentBits) - 1;
        double value;
        if (exponent == 0) {
            value = std::ldexp(fraction, 1 - bias() - fractionBits);
        } else if (exponent == last && infinities) {
            value = fraction == 0 ? INFINITY : NAN;
        } else if (exponent == last && fraction == (1u << fractionBits) - 1) {
            value = NAN;
        } else {
            value = std::ldexp((1u << fractionBits) + fraction, exponent - bias() - fractionBits);
        }
        return bits & signBit() ? -value : value;
    }

    /// Rounds an exact value: `round` turns a count of last places into a whole number.
    template <class Round>
    uint16_t closeBy(double value, Round round) const {
        if (std::isnan(value)) return static_cast<uint16_t>(signBit() - 1);
        uint32_t sign = std::signbit(value) ? signBit() : 0;
        uint32_t infinity = ((1u << exponentBits) - 1) << fractionBits;
        double size = std::fabs(value);
        if (std::isinf(size)) return static_cast<uint16_t>(sign | infinity);
        if (size == 0) return static_cast<uint16_t>(sign);
        int exponent = std::max(std::ilogb(size), 1 - bias());
        double places = std::ldexp(value, fractionBits - exponent);
        double whole = std::fabs(round(places));
        double result = std::ldexp(whole, exponent - fractionBits);
        if (result > largest()) {
            bool up = std::fabs(round(std::copysign(0.25, value))) > 0.5 || isNearest(round);
            return static_cast<uint16_t>(sign | (up ? infinity : infinity - 1));
        }
        if (result == 0) return static_cast<uint16_t>(sign);
        int top = std::max(std::ilogb(result), 1 - bias());
        auto fraction = static_cast<uint32_t>(std::ldexp(result, fractionBits - top));
        // A subnormal's exponent field is 0; the hidden bit of others adds one to it.
        return static_cast<uint16_t>(
            sign | ((static_cast<uint32_t>(top + bias() - 1) << fractionBits) + fraction));
    }
    uint16_t close(double value) const {
        return closeBy(value, [](double places) { return std::nearbyint(places); });
    }
    /// a + b where the sum of both need not be exact in double: its lost part only matters where
    /// the sum lies half-way between two values.
    uint16_t closeSum(double a, double b) const {
        double sum = a + b;
        if (!std::isfinite(sum)) return close(sum);
        double other = sum - a;
        double lost = (a - (sum - other)) + (b - other);
        return closeBy(sum, [lost](double places) {
            double whole = std::nearbyint(places);
            if (lost != 0 && std::fabs(places - std::trunc(places)) == 0.5) {
                return lost > 0 ? std::ceil(places) : std::floor(places);
            }
            return whole;
        });
    }

  private:
    template <class Round>
    static bool isNearest(Round round) {
        return round(0.75) > 0.5 && round(-0.75) < -0.5;
    }
};

inline constexpr Narrow kBinary16{5, 10}, kBrain16{8, 7}, kE5m2{5, 2}, kE4m3{4, 3, false};

}  // namespace juice::truth

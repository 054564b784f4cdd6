// Half-precision and bfloat16 values held as their bits, and rounding to them.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace juice::softgpu {

/// A binary format narrower than f32: sign, exponent, fraction, with infinities and NaN.
struct Format {
    int exponentBits;
    int fractionBits;
    int bias;
    uint32_t nan;  // what an operation that makes a NaN gives
};
inline constexpr Format kF16{5, 10, 15, 0x7fff};
inline constexpr Format kBf16{8, 7, 127, 0x7fff};

enum class Direction : uint8_t { nearest, zero, down, up, nearestAway };

/// Rounds a double once to the format. Overflow gives infinity, or the largest finite value where
/// the direction is towards zero from there, or where `finite` is set.
template <Format F>
uint16_t roundTo(double value, Direction direction = Direction::nearest, bool finite = false) {
    auto bits = std::bit_cast<uint64_t>(value);
    auto sign = static_cast<uint32_t>(bits >> 63) << (F.exponentBits + F.fractionBits);
    constexpr uint32_t kInfinity = ((1u << F.exponentBits) - 1) << F.fractionBits;
    if (value != value) return static_cast<uint16_t>(F.nan);
    bool negative = bits >> 63;
    bool away =
        (direction == Direction::up && !negative) || (direction == Direction::down && negative);
    auto exponent = static_cast<int>(bits >> 52 & 0x7ff);
    uint64_t fraction = bits & ((1ull << 52) - 1);
    if (exponent == 0x7ff) {
        return static_cast<uint16_t>(sign | (finite ? kInfinity - 1 : kInfinity));
    }
    if (exponent == 0 && fraction == 0) return static_cast<uint16_t>(sign);
    if (exponent != 0)
        fraction |= 1ull << 52;
    else
        exponent = 1;
    int target = exponent - 1023 + F.bias;  // biased exponent in the new format
    int drop = 52 - F.fractionBits;
    if (target < 1) drop += 1 - target;
    uint64_t kept = drop < 64 ? fraction >> drop : 0;
    uint64_t rest = drop < 64 ? fraction & ((1ull << drop) - 1) : fraction;
    uint64_t half = drop <= 53 ? 1ull << (drop - 1) : 0;
    bool up = false;
    if (rest != 0) {
        if (direction == Direction::nearest) {
            up = half != 0 && (rest > half || (rest == half && (kept & 1)));
        } else if (direction == Direction::nearestAway) {
            up = half != 0 && rest >= half;
        } else {
            up = away;
        }
    }
    kept += up;
    // The hidden bit of `kept` adds one to the exponent, a carry out of the fraction as well.
    uint64_t result =
        target < 1 ? kept : (static_cast<uint64_t>(target - 1) << F.fractionBits) + kept;
    if (result >= kInfinity) {
        bool toInfinity =
            direction == Direction::nearest || direction == Direction::nearestAway || away;
        result = toInfinity && !finite ? kInfinity : kInfinity - 1;
    }
    return static_cast<uint16_t>(sign | result);
}

inline float halfToFloat(uint16_t half) {
    uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
    uint32_t exponent = half >> 10 & 31;
    uint32_t fraction = half & 0x3ff;
    if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000 | fraction << 13);
    if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
    float tiny = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(tiny) | sign);
}

inline float bf16ToFloat(uint16_t value) {
    return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}

/// Reads and rounds values of one of the two formats.
template <bool Brain>
struct Half {
    static float widen(uint16_t bits) { return Brain ? bf16ToFloat(bits) : halfToFloat(bits); }
    static uint16_t narrow(double value, Direction direction = Direction::nearest,
                           bool finite = false) {
        if constexpr (Brain)
            return roundTo<kBf16>(value, direction, finite);
        else
            return roundTo<kF16>(value, direction, finite);
    }
};

}  // namespace juice::softgpu

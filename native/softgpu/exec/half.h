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

/// The eight-bit formats: e5m2 is a half without its lower byte; e4m3 has no infinity and one NaN.
template <bool E5m2>
float eightToFloat(uint8_t bits) {
    if constexpr (E5m2) {
        return halfToFloat(static_cast<uint16_t>(bits << 8));
    } else {
        uint32_t sign = static_cast<uint32_t>(bits & 0x80) << 24;
        uint32_t exponent = bits >> 3 & 15, fraction = bits & 7;
        if (exponent == 15 && fraction == 7) return std::bit_cast<float>(sign | 0x7fc00000);
        if (exponent != 0)
            return std::bit_cast<float>(sign | (exponent + 120) << 23 | fraction << 20);
        float tiny = static_cast<float>(fraction) * 0x1p-9f;
        return std::bit_cast<float>(std::bit_cast<uint32_t>(tiny) | sign);
    }
}

/// Rounds to nearest; what is too large, infinity too, becomes the largest.
template <bool E5m2>
uint8_t narrowToEight(double value) {
    constexpr double kLargest = E5m2 ? 57344.0 : 448.0;
    if (value != value) return 0x7f;
    value = value > kLargest ? kLargest : value < -kLargest ? -kLargest : value;
    // Held as a format of 16 bits whose fraction ends where the eight-bit one does.
    constexpr Format kFormat = E5m2 ? Format{5, 2, 15, 0x7f} : Format{4, 3, 7, 0x7f};
    constexpr Format kRoomy = E5m2 ? kFormat : Format{5, 3, 7, 0x7f};
    uint16_t bits = roundTo<kRoomy>(value);
    if constexpr (E5m2) return static_cast<uint8_t>(bits);
    // One more exponent digit kept 480 from being an infinity: the sign moves down over it.
    return static_cast<uint8_t>((bits >> 1 & 0x80) | (bits & 0x7f));
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

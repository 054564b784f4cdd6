// What NVIDIA's floating-point units do beyond IEEE: flushing, saturation, one NaN.
#pragma once

#include <cfenv>
#include <cmath>
#include <cstdint>

#include "native/softgpu/exec/lanes.h"

namespace juice::softgpu {

/// Every single-precision operation that makes a NaN makes this one.
inline constexpr uint32_t kNan32 = 0x7fffffff;

template <class T>
JUICE_LOOP bool isNan(T value) {
    return __builtin_isnan(value);
}

JUICE_LOOP float canonical(float value) {
    return isNan(value) ? __builtin_bit_cast(float, kNan32) : value;
}
JUICE_LOOP double canonical(double value) {
    return value;
}

/// Subnormals to zeros of the same sign.
JUICE_LOOP float flush(float value) {
    auto bits = __builtin_bit_cast(uint32_t, value);
    uint32_t kept = (bits & 0x7f800000) == 0 ? bits & 0x80000000 : bits;
    return __builtin_bit_cast(float, kept);
}
JUICE_LOOP double flush(double value) {
    auto bits = __builtin_bit_cast(uint64_t, value);
    uint64_t kept = (bits & 0x7ff0000000000000) == 0 ? bits & 0x8000000000000000 : bits;
    return __builtin_bit_cast(double, kept);
}

/// Clamps to [0, 1]; NaN becomes +0.
template <class T>
JUICE_LOOP T saturate(T value) {
    return value > 0 ? (value < 1 ? value : T{1}) : T{0};
}

JUICE_LOOP float fused(float a, float b, float c) {
    return __builtin_fmaf(a, b, c);
}
JUICE_LOOP double fused(double a, double b, double c) {
    return __builtin_fma(a, b, c);
}

/// Sets the rounding direction of this thread for a scope.
class Rounding {
  public:
    explicit Rounding(int mode) { std::fesetround(mode); }
    ~Rounding() { std::fesetround(FE_TONEAREST); }
    Rounding(const Rounding&) = delete;
    Rounding& operator=(const Rounding&) = delete;
};

/// A loop whose floating-point operations round in direction Mode. The operands come from memory
/// that the calls of fesetround may write, for all the compiler knows, so nothing moves across.
template <auto Loop, int Mode>
JUICE_LOOP void rounded(Exec& x, const Instr& in, uint32_t m) {
    Rounding scope(Mode);
    Loop(x, in, m);
}

/// The handler of a loop for a rounding modifier: "rn" or none, "rz", "rm", "rp". The directed ones
/// are rare, and not worth a second copy.
template <auto Loop>
Handler roundedLanes(std::string_view mode) {
    if (mode == "rz") return plainLoop<rounded<Loop, FE_TOWARDZERO>>;
    if (mode == "rm") return plainLoop<rounded<Loop, FE_DOWNWARD>>;
    if (mode == "rp") return plainLoop<rounded<Loop, FE_UPWARD>>;
    return lanes<Loop>();
}

}  // namespace juice::softgpu

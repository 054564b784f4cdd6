// References for directed rounding: the host's own arithmetic under fesetround.
#pragma once

#include <array>
#include <cfenv>
#include <cmath>
#include <string>

namespace juice::truth {

/// A rounding modifier of PTX and the host's mode.
struct RoundingMode {
    std::string name;  // ".rn"
    int mode;
};
inline const std::array<RoundingMode, 4> kRoundings = {
    {{".rn", FE_TONEAREST}, {".rz", FE_TOWARDZERO}, {".rm", FE_DOWNWARD}, {".rp", FE_UPWARD}}};

/// f(arguments) with the host rounding in `mode`. What f computes must not fold at compile time:
/// this program is compiled with -frounding-math.
template <class F, class... A>
auto roundedTo(int mode, F f, A... arguments) {
    std::fesetround(mode);
    volatile auto result = f(arguments...);  // computed now, not after the mode is back
    std::fesetround(FE_TONEAREST);
    return result;
}

/// A subnormal to the zero of its sign, as .ftz does.
inline float flushed(float value) {
    return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value;
}

/// Into [0, 1], NaN to +0, as .sat does.
template <class T>
T saturated(T value) {
    return value > 0 ? (value < 1 ? value : T{1}) : T{0};
}

}  // namespace juice::truth

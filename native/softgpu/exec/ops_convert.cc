// cvt: between integers, floats and half-precision floats.
#include <algorithm>
#include <array>
#include <limits>

#include "native/softgpu/exec/floats.h"
#include "native/softgpu/exec/half.h"
#include "native/softgpu/exec/ops.h"

namespace juice::softgpu {
namespace {

using ptx::FunctionDecoder;
using ptx::Operand;
using ptx::Type;

template <class F>
Handler withInteger(const FunctionDecoder& d, Type type, F f) {
    switch (type) {
        case Type::u8:
            return f(uint8_t{});
        case Type::s8:
            return f(int8_t{});
        case Type::u16:
            return f(uint16_t{});
        case Type::s16:
            return f(int16_t{});
        case Type::u32:
            return f(uint32_t{});
        case Type::s32:
            return f(int32_t{});
        case Type::u64:
            return f(uint64_t{});
        case Type::s64:
            return f(int64_t{});
        default:
            d.unsupported("." + std::string(nameOf(type)) + " here");
    }
}

// Integers to integers.

template <class D, class S>
constexpr auto kClampTo = [](S a) {
    auto wide = static_cast<__int128>(a);
    auto low = static_cast<__int128>(std::numeric_limits<D>::min());
    auto high = static_cast<__int128>(std::numeric_limits<D>::max());
    return static_cast<D>(std::clamp(wide, low, high));
};

Handler integerToInteger(const FunctionDecoder& d, Type to, Type from, bool sat) {
    if (!sat) return resizeHandler(from, to);
    return withInteger(d, to, [&](auto dst) {
        return withInteger(d, from, [&](auto src) -> Handler {
            using D = decltype(dst);
            using S = decltype(src);
            return plainLoop<map1<kClampTo<D, S>, D, S>>;
        });
    });
}

// Integers to floats.

template <class D, class S, bool Sat>
constexpr auto kIntToFloat = [](S a) {
    auto value = static_cast<D>(a);
    return Sat ? saturate(value) : value;
};

/// An integer as a double that rounds to any narrower format as the integer itself would: digits
/// beyond the double's are folded into its last bit.
template <class S>
double sticky(S a) {
    bool negative = a < 0;
    uint64_t size = negative ? 0 - static_cast<uint64_t>(a) : static_cast<uint64_t>(a);
    if (size >> 53) size = (size >> 11 | ((size & 0x7ff) != 0)) << 11;
    auto value = static_cast<double>(size);
    return negative ? -value : value;
}

template <bool Brain, Direction Way, class S>
constexpr auto kIntToHalf = [](S a) { return Half<Brain>::narrow(sticky(a), Way); };
template <bool Brain, class S>
constexpr auto kIntToHalfSat = [](S a) { return Half<Brain>::narrow(a > 0 ? 1.0 : 0.0); };

template <bool Brain, class S>
Handler integerToHalf(std::string_view rounding, bool sat) {
    if (sat) return plainLoop<map1<kIntToHalfSat<Brain, S>, uint16_t, S>>;
    if (rounding == "rz")
        return plainLoop<map1<kIntToHalf<Brain, Direction::zero, S>, uint16_t, S>>;
    if (rounding == "rm")
        return plainLoop<map1<kIntToHalf<Brain, Direction::down, S>, uint16_t, S>>;
    if (rounding == "rp") return plainLoop<map1<kIntToHalf<Brain, Direction::up, S>, uint16_t, S>>;
    return plainLoop<map1<kIntToHalf<Brain, Direction::nearest, S>, uint16_t, S>>;
}

Handler integerToFloat(const FunctionDecoder& d, Type to, Type from, std::string_view rounding,
                       bool sat) {
    return withInteger(d, from, [&](auto src) -> Handler {
        using S = decltype(src);
        switch (to) {
            case Type::f32:
                return sat ? roundedLanes<map1<kIntToFloat<float, S, true>, float, S>>(rounding)
                           : roundedLanes<map1<kIntToFloat<float, S, false>, float, S>>(rounding);
            case Type::f64:
                return sat ? roundedLanes<map1<kIntToFloat<double, S, true>, double, S>>(rounding)
                           : roundedLanes<map1<kIntToFloat<double, S, false>, double, S>>(rounding);
            case Type::f16:
                return integerToHalf<false, S>(rounding, sat);
            default:
                return integerToHalf<true, S>(rounding, sat);
        }
    });
}

// Floats to integers: rounded to an integral value, clamped to the type's range.

template <int Mode, class S>
JUICE_LOOP S integral(S a) {
    if constexpr (Mode == 0) return sizeof(S) == 4 ? __builtin_rintf(a) : __builtin_rint(a);
    if constexpr (Mode == 1) return sizeof(S) == 4 ? __builtin_truncf(a) : __builtin_trunc(a);
    if constexpr (Mode == 2) return sizeof(S) == 4 ? __builtin_floorf(a) : __builtin_floor(a);
    if constexpr (Mode == 3) return sizeof(S) == 4 ? __builtin_ceilf(a) : __builtin_ceil(a);
}

template <class D, class S, int Mode, bool Ftz>
constexpr auto kFloatToInt = [](S a) -> D {
    if constexpr (Ftz) a = flush(a);
    a = integral<Mode>(a);
    using Limits = std::numeric_limits<D>;
    if (isNan(a)) {
        // NaN: zero, but for 64-bit sources or results the value with only the top bit set.
        if (sizeof(D) < 8 && sizeof(S) < 8) return 0;
        return static_cast<D>(1ull << (8 * sizeof(D) - 1));
    }
    // Both limits as floats: the lower one is exact, the upper one is one beyond the largest.
    constexpr S kBelow = static_cast<S>(Limits::min());
    constexpr S kAbove = static_cast<S>(Limits::max() / 2 + 1) * 2;
    if (a <= kBelow) return Limits::min();
    if (a >= kAbove) return Limits::max();
    return static_cast<D>(a);
};

template <auto F, class D, class S, bool Ftz>
Handler floatToIntegerOf() {
    if constexpr (Ftz || sizeof(D) < 4)
        return plainLoop<map1<F, D, S>>;
    else
        return lanes<map1<F, D, S>>();
}

template <class D, class S, bool Ftz>
Handler floatToIntegerMode(int mode) {
    switch (mode) {
        case 0:
            return floatToIntegerOf<kFloatToInt<D, S, 0, Ftz>, D, S, Ftz>();
        case 1:
            return floatToIntegerOf<kFloatToInt<D, S, 1, Ftz>, D, S, Ftz>();
        case 2:
            return floatToIntegerOf<kFloatToInt<D, S, 2, Ftz>, D, S, Ftz>();
        default:
            return floatToIntegerOf<kFloatToInt<D, S, 3, Ftz>, D, S, Ftz>();
    }
}

int integralMode(std::string_view rounding) {
    return rounding == "rni" ? 0 : rounding == "rzi" ? 1 : rounding == "rmi" ? 2 : 3;
}

Handler floatToInteger(const FunctionDecoder& d, Type to, Type from, std::string_view rounding,
                       bool ftz) {
    int mode = integralMode(rounding);
    return withInteger(d, to, [&](auto dst) {
        using D = decltype(dst);
        if (from == Type::f64) return floatToIntegerMode<D, double, false>(mode);
        return ftz ? floatToIntegerMode<D, float, true>(mode)
                   : floatToIntegerMode<D, float, false>(mode);
    });
}

// Floats to floats.

template <class D, class S, bool Ftz, bool Sat>
constexpr auto kFloatToFloat = [](S a) -> D {
    if constexpr (Ftz && sizeof(S) == 4) a = flush(a);
    auto value = static_cast<D>(a);
    if constexpr (Ftz && sizeof(D) == 4) value = flush(value);
    if constexpr (Sat) return saturate(value);
    // Between the two widths a NaN keeps its upper bits.
    return sizeof(D) == sizeof(S) ? canonical(value) : value;
};

template <class D, class S>
Handler floatToFloat(bool ftz, bool sat, std::string_view rounding) {
    if (ftz) {
        return sat ? roundedLanes<map1<kFloatToFloat<D, S, true, true>, D, S>>(rounding)
                   : roundedLanes<map1<kFloatToFloat<D, S, true, false>, D, S>>(rounding);
    }
    return sat ? roundedLanes<map1<kFloatToFloat<D, S, false, true>, D, S>>(rounding)
               : roundedLanes<map1<kFloatToFloat<D, S, false, false>, D, S>>(rounding);
}

template <class S, int Mode, bool Ftz, bool Sat>
constexpr auto kToIntegral = [](S a) -> S {
    if constexpr (Ftz) a = flush(a);
    a = integral<Mode>(a);
    if constexpr (Sat)
        return saturate(a);
    else
        return canonical(a);
};

template <class S, int Mode>
Handler toIntegralMode(bool ftz, bool sat) {
    if (ftz) {
        return sat ? plainLoop<map1<kToIntegral<S, Mode, true, true>, S, S>>
                   : plainLoop<map1<kToIntegral<S, Mode, true, false>, S, S>>;
    }
    return sat ? plainLoop<map1<kToIntegral<S, Mode, false, true>, S, S>>
               : plainLoop<map1<kToIntegral<S, Mode, false, false>, S, S>>;
}

template <class S>
Handler toIntegral(std::string_view rounding, bool ftz, bool sat) {
    switch (integralMode(rounding)) {
        case 0:
            return toIntegralMode<S, 0>(ftz, sat);
        case 1:
            return toIntegralMode<S, 1>(ftz, sat);
        case 2:
            return toIntegralMode<S, 2>(ftz, sat);
        default:
            return toIntegralMode<S, 3>(ftz, sat);
    }
}

// Halves: widened to f32 first; narrowing rounds once, from f32 or f64.

template <bool Brain>
constexpr auto kWiden = [](uint16_t a) {
    float wide = Half<Brain>::widen(a);
    return Brain ? wide : canonical(wide);
};

template <bool Brain, class S, Direction Way, bool Relu, bool Finite>
constexpr auto kNarrow = [](S a) -> uint16_t {
    if (Relu && !(a > 0)) return isNan(a) ? 0x7fff : 0;
    if (sizeof(S) == 8 && !Brain && isNan(a)) {
        // From f64 a NaN keeps its sign and upper bits.
        auto bits = __builtin_bit_cast(uint64_t, static_cast<double>(a));
        return static_cast<uint16_t>((bits >> 48 & 0x8000) | 0x7e00 | (bits >> 42 & 0x1ff));
    }
    return Half<Brain>::narrow(static_cast<double>(a), Way, Finite);
};

struct NarrowModes {
    Direction way = Direction::nearest;
    bool relu = false, finite = false;
};

template <bool Brain, class S, Direction Way>
Handler narrowWay(const NarrowModes& modes) {
    if (modes.finite) {
        return modes.relu ? plainLoop<map1<kNarrow<Brain, S, Way, true, true>, uint16_t, S>>
                          : plainLoop<map1<kNarrow<Brain, S, Way, false, true>, uint16_t, S>>;
    }
    return modes.relu ? plainLoop<map1<kNarrow<Brain, S, Way, true, false>, uint16_t, S>>
                      : plainLoop<map1<kNarrow<Brain, S, Way, false, false>, uint16_t, S>>;
}

template <bool Brain, class S>
Handler narrowHandler(const NarrowModes& modes) {
    switch (modes.way) {
        case Direction::zero:
            return narrowWay<Brain, S, Direction::zero>(modes);
        case Direction::down:
            return narrowWay<Brain, S, Direction::down>(modes);
        case Direction::up:
            return narrowWay<Brain, S, Direction::up>(modes);
        default:
            return narrowWay<Brain, S, Direction::nearest>(modes);
    }
}

bool isHalf(Type type) {
    return type == Type::f16 || type == Type::bf16;
}
bool isHalfPair(Type type) {
    return type == Type::f16x2 || type == Type::bf16x2;
}

Direction directionOf(std::string_view rounding) {
    return rounding == "rz"   ? Direction::zero
           : rounding == "rm" ? Direction::down
           : rounding == "rp" ? Direction::up
                              : Direction::nearest;
}

Handler narrowFor(Type to, Type from, const NarrowModes& modes) {
    bool brain = to == Type::bf16 || to == Type::bf16x2;
    if (from == Type::f64) {
        return brain ? narrowHandler<true, double>(modes) : narrowHandler<false, double>(modes);
    }
    return brain ? narrowHandler<true, float>(modes) : narrowHandler<false, float>(modes);
}

void packHalves(Exec& x, const Instr& in, uint32_t m) {
    auto* d = x.to<uint32_t>(in.dst);
    const auto* high = x.from<uint16_t>(in.a);
    const auto* low = x.from<uint16_t>(in.b);
    forLanes(m, [=](unsigned i) { d[i] = static_cast<uint32_t>(high[i]) << 16 | low[i]; });
}

/// cvt.rn.f16x2.f32 d, a, b: a to the upper half, b to the lower.
void decodePair(FunctionDecoder& d, Type to, Type from, const NarrowModes& modes) {
    if (from != Type::f32) d.unsupported("from ." + std::string(nameOf(from)));
    d.needOperands(3);
    Handler run = narrowFor(to, from, modes);
    Ref a = d.source(1, from), b = d.source(2, from);
    Ref high = d.temporary(Type::b16), low = d.temporary(Type::b16);
    d.emit(run, high, a);
    d.emit(run, low, b);
    d.emit(packHalves, d.target(0, to), high, low);
}

void decodeCvt(FunctionDecoder& d) {
    if (decodeNarrowConversion(d)) return;
    std::string_view integralRounding = d.takeOneOf({"rni", "rzi", "rmi", "rpi"});
    std::string_view rounding = d.takeOneOf({"rn", "rz", "rm", "rp"});
    bool ftz = d.takeMod("ftz"), sat = d.takeMod("sat");
    NarrowModes narrow{directionOf(rounding), d.takeMod("relu"), d.takeMod("satfinite")};
    Type to = d.takeType(), from = d.takeType();
    if (isHalfPair(to)) return decodePair(d, to, from, narrow);
    d.needOperands(2);
    if ((narrow.relu || narrow.finite) && !isHalf(to)) d.unsupported(".relu or .satfinite here");

    Ref source = d.narrowSource(d.operand(1), from);
    // Halves go by way of f32, which holds them exactly.
    bool integralHalf = isHalf(to) && to == from && !integralRounding.empty();
    if (isHalf(from) && (to != from || integralHalf || sat)) {
        bool exact = to == Type::f32 && !sat && !ftz && integralRounding.empty();
        Ref wide = exact ? d.target(0, to) : d.temporary(Type::f32);
        d.emit(from == Type::f16 ? lanes<map1<kWiden<false>, float, uint16_t>>()
                                 : lanes<map1<kWiden<true>, float, uint16_t>>(),
               wide, source);
        if (exact) return;
        source = wide;
        from = Type::f32;
    }
    Handler run = nullptr;
    if (!ptx::isFloat(to) && !ptx::isFloat(from)) {
        if (!rounding.empty() || !integralRounding.empty() || ftz) d.refuse("nothing to round");
        run = integerToInteger(d, to, from, sat);
    } else if (!ptx::isFloat(from)) {
        if (rounding.empty()) d.refuse("needs .rn, .rz, .rm or .rp");
        run = integerToFloat(d, to, from, rounding, sat);
    } else if (!ptx::isFloat(to)) {
        if (integralRounding.empty()) d.refuse("needs .rni, .rzi, .rmi or .rpi");
        run = floatToInteger(d, to, from, integralRounding, ftz);
    } else if (isHalf(to)) {
        if (integralHalf) {
            Ref whole = d.temporary(Type::f32);
            d.emit(toIntegral<float>(integralRounding, false, sat), whole, source);
            source = whole;
            sat = false;
        } else if (!integralRounding.empty()) {
            d.unsupported("this conversion");
        }
        if (isHalf(from) && to != from) d.unsupported("this conversion");
        if (isHalf(from)) {
            run = copyHandler(to);
        } else {
            // .ftz flushes nothing on the way to halves: so does an H200.
            if (sat) {
                Ref clean = d.temporary(from);
                d.emit(from == Type::f64 ? floatToFloat<double, double>(false, sat, "")
                                         : floatToFloat<float, float>(false, sat, ""),
                       clean, source);
                source = clean;
            }
            run = narrowFor(to, from, narrow);
        }
    } else if (!integralRounding.empty()) {
        if (to != from) d.unsupported("this conversion");
        run = to == Type::f32 ? toIntegral<float>(integralRounding, ftz, sat)
                              : toIntegral<double>(integralRounding, false, sat);
    } else if (to == Type::f32) {
        run = from == Type::f32 ? floatToFloat<float, float>(ftz, sat, rounding)
                                : floatToFloat<float, double>(ftz, sat, rounding);
    } else {
        run = from == Type::f32 ? floatToFloat<double, float>(ftz, sat, rounding)
                                : floatToFloat<double, double>(ftz, sat, rounding);
    }

    const Operand& result = d.operand(0);
    if (d.isRegister(result) && ptx::sizeOf(d.registerType(result)) > ptx::sizeOf(to)) {
        // A wider register takes the value extended by its own sign.
        Type held = d.registerType(result);
        Ref value = d.temporary(to);
        d.emit(run, value, source);
        d.emit(resizeHandler(to, held), d.target(result, held), value);
        return;
    }
    d.emit(run, d.target(result, to), source);
}

constexpr std::array<ptx::OpEntry, 1> kOps{{{"cvt", decodeCvt}}};

}  // namespace

std::span<const ptx::OpEntry> convertOps() {
    return kOps;
}

}  // namespace juice::softgpu

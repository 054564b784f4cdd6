// f32 and f64 arithmetic, and the functions that the hardware approximates.
#include <array>
#include <cstddef>
#include <type_traits>

#include "native/softgpu/exec/floats.h"
#include "native/softgpu/exec/ops.h"

namespace juice::softgpu {
namespace {

using ptx::FunctionDecoder;
using ptx::Type;

template <class T>
constexpr auto kAdd = [](T a, T b) { return a + b; };
// The hardware adds the negated operand, and so turns the sign of a NaN in it.
template <class T>
constexpr auto kSub = [](T a, T b) {
    if constexpr (sizeof(T) == 8) {
        uint64_t turned = __builtin_bit_cast(uint64_t, b + b) ^ (1ull << 63);
        if (!isNan(a) && isNan(b)) return __builtin_bit_cast(double, turned);
    }
    return a - b;
};
template <class T>
constexpr auto kMul = [](T a, T b) { return a * b; };
template <class T>
constexpr auto kDiv = [](T a, T b) { return a / b; };
template <class T>
constexpr auto kFma = [](T a, T b, T c) {
    // Of several f64 NaN operands the second counts first, then the third.
    if (sizeof(T) == 8 && isNan(b)) return b + b;
    if (sizeof(T) == 8 && isNan(c)) return c + c;
    return fused(a, b, c);
};
template <class T>
constexpr auto kRcp = [](T a) { return T{1} / a; };
template <class T>
constexpr auto kSqrt = [](T a) {
    if constexpr (sizeof(T) == 4)
        return __builtin_sqrtf(a);
    else
        return __builtin_sqrt(a);
};

// min and max of PTX: the number wins over a NaN, and -0 is less than +0.
template <class T>
constexpr auto kMin = [](T a, T b) {
    if (isNan(a)) return b;
    if (isNan(b)) return a;
    if (a == b) return std::signbit(a) ? a : b;
    return a < b ? a : b;
};
template <class T>
constexpr auto kMax = [](T a, T b) {
    if (isNan(a)) return b;
    if (isNan(b)) return a;
    if (a == b) return std::signbit(a) ? b : a;
    return a > b ? a : b;
};
template <class T>
constexpr auto kMinNan = [](T a, T b) {
    return isNan(a) ? a : isNan(b) ? b : kMin<T>(a, b);
};
template <class T>
constexpr auto kMaxNan = [](T a, T b) {
    return isNan(a) ? a : isNan(b) ? b : kMax<T>(a, b);
};

// .xorsign.abs: the sizes compare, and the result's sign is the product's of both.
template <auto Choose>
constexpr auto kOfSizes = [](float a, float b) {
    float size = Choose(__builtin_fabsf(a), __builtin_fabsf(b));
    return std::signbit(a) != std::signbit(b) && size == size ? -size : size;
};

template <class T>
constexpr auto kAbs = [](T a) {
    T size = sizeof(T) == 4 ? static_cast<T>(__builtin_fabsf(static_cast<float>(a)))
                            : static_cast<T>(__builtin_fabs(a));
    return isNan(a) ? a + a : size;  // a NaN keeps its sign
};
template <class T>
constexpr auto kNeg = [](T a) { return isNan(a) ? a + a : -a; };

// The approximate functions, computed in double and rounded: well within the manual's bounds.
// Division by a very large divisor gives 0 there, so it does here.
constexpr auto kDivApprox = [](float a, float b) {
    float size = __builtin_fabsf(b);
    if (size > 0x1p126f && size <= 0x1.fffffep127f) {
        return !std::isfinite(a)
                   ? __builtin_bit_cast(float, kNan32)
                   : std::copysign(0.0f, std::signbit(a) != std::signbit(b) ? -1.f : 1.f);
    }
    return a / b;
};
constexpr auto kSin = [](float a) { return static_cast<float>(std::sin(static_cast<double>(a))); };
constexpr auto kCos = [](float a) { return static_cast<float>(std::cos(static_cast<double>(a))); };
constexpr auto kEx2 = [](float a) { return static_cast<float>(std::exp2(static_cast<double>(a))); };
constexpr auto kLg2 = [](float a) { return static_cast<float>(std::log2(static_cast<double>(a))); };
constexpr auto kTanh = [](float a) {
    return static_cast<float>(std::tanh(static_cast<double>(a)));
};
constexpr auto kRsqrt = [](float a) {
    return static_cast<float>(1.0 / std::sqrt(static_cast<double>(a)));
};

/// f64 approximations look at the upper 32 bits only, and give only those.
double upperHalf(double value) {
    return __builtin_bit_cast(double, __builtin_bit_cast(uint64_t, value) & 0xffffffff00000000);
}
constexpr auto kRcpApprox64 = [](double a) { return upperHalf(flush(1.0 / flush(upperHalf(a)))); };
constexpr auto kRsqrtApproxFtz64 = [](double a) {
    return upperHalf(1.0 / std::sqrt(flush(upperHalf(a))));
};
/// Without .ftz it is a sequence of instructions, and as good as the type.
constexpr auto kRsqrtApprox64 = [](double a) {
    return isNan(a) ? a + a : static_cast<double>(1.0L / std::sqrt(static_cast<long double>(a)));
};

constexpr auto kCopysign32 = [](uint32_t a, uint32_t b) {
    return (b & 0x7fffffff) | (a & 0x80000000);
};
constexpr auto kCopysign64 = [](uint64_t a, uint64_t b) {
    return (b & ~(1ull << 63)) | (a & (1ull << 63));
};

/// Applies .ftz to inputs and result and .sat to the result of F.
template <class T, auto F, bool Ftz, bool Sat>
struct Finish {
    template <class... A>
    JUICE_LOOP T operator()(A... a) const {
        T result;
        if constexpr (Ftz)
            result = flush(F(flush(a)...));
        else
            result = F(a...);
        if constexpr (Sat)
            return saturate(result);
        else
            return canonical(result);
    }
};

// .ftz flushes what is subnormal once it has been rounded to 24 digits. Next to the smallest normal
// number the processor keeps only 23, and may round up to it what should have gone: such a result
// is computed again, 2^60 times as large.
constexpr float kSmallest = 0x1p-126f, kScale = 0x1p60f;
template <auto F>
constexpr std::nullptr_t kScaledUp = nullptr;  // results that are exact when they are so small
template <>
constexpr auto kScaledUp<kMul<float>> = [](float a, float b, float) {
    bool first = __builtin_fabsf(a) < __builtin_fabsf(b);
    return first ? a * kScale * b : a * (b * kScale);
};
template <>
constexpr auto kScaledUp<kDiv<float>> = [](float a, float b, float) { return a * kScale / b; };
template <>
constexpr auto kScaledUp<kRcp<float>> = [](float a, float, float) { return kScale / a; };
template <>
constexpr auto kScaledUp<kFma<float>> = [](float a, float b, float c) {
    bool first = __builtin_fabsf(a) < __builtin_fabsf(b);
    return first ? fused(a * kScale, b, c * kScale) : fused(a, b * kScale, c * kScale);
};

template <auto F, bool Sat>
JUICE_LOOP void flushedLoop(Exec& x, const Instr& in, uint32_t m) {
    auto* d = x.to<float>(in.dst);
    const auto* a = x.from<float>(in.a);
    const auto* b = in.b == kNoRef ? a : x.from<float>(in.b);
    const auto* c = in.c == kNoRef ? a : x.from<float>(in.c);
    alignas(32) float result[kLanes];
    uint32_t border = 0;
    for (unsigned i = 0; i < kLanes; ++i) {
        float p = flush(a[i]), q = flush(b[i]), r = flush(c[i]);
        if constexpr (requires { F(p, q, r); })
            result[i] = F(p, q, r);
        else if constexpr (requires { F(p, q); })
            result[i] = F(p, q);
        else
            result[i] = F(p);
        border |= __builtin_fabsf(result[i]) == kSmallest ? 1 : 0;
    }
    for (unsigned i = 0; border != 0 && i < kLanes; ++i) {
        if (__builtin_fabsf(result[i]) != kSmallest) continue;
        float exact = kScaledUp<F>(flush(a[i]), flush(b[i]), flush(c[i]));
        if (__builtin_fabsf(exact) < kSmallest * kScale) result[i] = std::copysign(0.0f, exact);
    }
    forLanes(m, [=, &result](unsigned i) {
        float flushed = flush(result[i]);
        d[i] = Sat ? saturate(flushed) : canonical(flushed);
    });
}

struct Modes {
    bool ftz = false, sat = false;
    std::string_view rounding;
};

Modes takeModes(FunctionDecoder& d, Type type) {
    Modes modes;
    modes.rounding = d.takeOneOf({"rn", "rz", "rm", "rp"});
    if (type == Type::f32) {
        modes.ftz = d.takeMod("ftz");
        modes.sat = d.takeMod("sat");
    }
    return modes;
}

template <class T, auto F, bool Ftz, bool Sat>
Handler handlerOf(int operands, std::string_view rounding) {
    constexpr Finish<T, F, Ftz, Sat> kFinish{};
    if constexpr (Ftz && !std::is_null_pointer_v<std::remove_const_t<decltype(kScaledUp<F>)>>)
        return roundedLanes<flushedLoop<F, Sat>>(rounding);
    else if constexpr (requires(T t) { F(t); })
        return roundedLanes<map1<kFinish, T, T>>(rounding);
    else if constexpr (requires(T t) { F(t, t); })
        return roundedLanes<map2<kFinish, T, T>>(rounding);
    else
        return roundedLanes<map3<kFinish, T, T>>(rounding);
}

template <class T, auto F>
void emitOp(FunctionDecoder& d, const Modes& modes) {
    constexpr Type kType = sizeof(T) == 4 ? Type::f32 : Type::f64;
    constexpr int kOperands = std::is_invocable_v<decltype(F), T>      ? 1
                              : std::is_invocable_v<decltype(F), T, T> ? 2
                                                                       : 3;
    d.needOperands(kOperands + 1);
    Ref s[3] = {kNoRef, kNoRef, kNoRef};
    for (int i = 0; i < kOperands; ++i) s[i] = d.source(i + 1, kType);
    Handler run;
    if constexpr (sizeof(T) == 8) {
        run = handlerOf<T, F, false, false>(kOperands, modes.rounding);
    } else if (modes.ftz) {
        run = modes.sat ? handlerOf<T, F, true, true>(kOperands, modes.rounding)
                        : handlerOf<T, F, true, false>(kOperands, modes.rounding);
    } else {
        run = modes.sat ? handlerOf<T, F, false, true>(kOperands, modes.rounding)
                        : handlerOf<T, F, false, false>(kOperands, modes.rounding);
    }
    d.emit(run, d.target(0, kType), s[0], s[1], s[2]);
}

/// The f32 functions without rounding modifiers: .approx is taken already.
template <auto F>
void emitApprox(FunctionDecoder& d) {
    Modes modes;
    modes.ftz = d.takeMod("ftz");
    emitOp<float, F>(d, modes);
}

template <class T>
void arithmetic(FunctionDecoder& d, std::string_view op, Type type) {
    Modes modes = takeModes(d, type);
    if (op == "add") return emitOp<T, kAdd<T>>(d, modes);
    if (op == "sub") return emitOp<T, kSub<T>>(d, modes);
    if (op == "mul") return emitOp<T, kMul<T>>(d, modes);
    if (op == "fma" || op == "mad") return emitOp<T, kFma<T>>(d, modes);
    if (op == "min" || op == "max") {
        if (!modes.rounding.empty() || modes.sat) d.unsupported("rounding or .sat here");
        bool nan = type == Type::f32 && d.takeMod("NaN");
        if constexpr (sizeof(T) == 4) {
            if (d.takeMod("xorsign")) {
                if (!d.takeMod("abs")) d.refuse("needs .xorsign.abs");
                if (op == "min") {
                    return nan ? emitOp<float, kOfSizes<kMinNan<float>>>(d, modes)
                               : emitOp<float, kOfSizes<kMin<float>>>(d, modes);
                }
                return nan ? emitOp<float, kOfSizes<kMaxNan<float>>>(d, modes)
                           : emitOp<float, kOfSizes<kMax<float>>>(d, modes);
            }
        }
        if (op == "min")
            return nan ? emitOp<T, kMinNan<T>>(d, modes) : emitOp<T, kMin<T>>(d, modes);
        return nan ? emitOp<T, kMaxNan<T>>(d, modes) : emitOp<T, kMax<T>>(d, modes);
    }
    if (op == "abs" || op == "neg") {
        if (!modes.rounding.empty() || modes.sat) d.unsupported("rounding or .sat here");
        return op == "abs" ? emitOp<T, kAbs<T>>(d, modes) : emitOp<T, kNeg<T>>(d, modes);
    }
    if (op == "div") {
        if (modes.rounding.empty()) {
            if constexpr (sizeof(T) == 4) {
                if (d.takeMod("approx")) return emitOp<float, kDivApprox>(d, modes);
                if (d.takeMod("full")) return emitOp<float, kDiv<float>>(d, modes);
            }
            d.refuse("needs a rounding modifier");
        }
        return emitOp<T, kDiv<T>>(d, modes);
    }
    d.unsupported();
}

void decodeRcp(FunctionDecoder& d) {
    bool approx = d.takeMod("approx");
    Type type = d.takeTypeOf({Type::f32, Type::f64});
    if (approx) {
        if (type == Type::f32) return emitApprox<kRcp<float>>(d);
        if (!d.takeMod("ftz")) d.refuse(".approx.f64 needs .ftz");
        return emitOp<double, kRcpApprox64>(d, {});
    }
    Modes modes = takeModes(d, type);
    if (modes.rounding.empty()) d.refuse("needs .approx or a rounding modifier");
    type == Type::f32 ? emitOp<float, kRcp<float>>(d, modes)
                      : emitOp<double, kRcp<double>>(d, modes);
}

void decodeSqrt(FunctionDecoder& d) {
    bool approx = d.takeMod("approx");
    Type type = d.takeTypeOf({Type::f32, Type::f64});
    if (approx) {
        if (type != Type::f32) d.unsupported();
        return emitApprox<kSqrt<float>>(d);
    }
    Modes modes = takeModes(d, type);
    if (modes.rounding.empty()) d.refuse("needs .approx or a rounding modifier");
    type == Type::f32 ? emitOp<float, kSqrt<float>>(d, modes)
                      : emitOp<double, kSqrt<double>>(d, modes);
}

void decodeRsqrt(FunctionDecoder& d) {
    if (!d.takeMod("approx")) d.refuse("needs .approx");
    Type type = d.takeTypeOf({Type::f32, Type::f64});
    if (type == Type::f32) return emitApprox<kRsqrt>(d);
    if (d.takeMod("ftz")) return emitOp<double, kRsqrtApproxFtz64>(d, {});
    emitOp<double, kRsqrtApprox64>(d, {});
}

template <auto F>
void decodeApproximate(FunctionDecoder& d) {
    if (!d.takeMod("approx")) d.refuse("needs .approx");
    Type type = d.takeType();
    if (type != Type::f32) return decodeHalfArithmetic(d, d.instruction().op, type);
    emitApprox<F>(d);
}

void decodeCopysign(FunctionDecoder& d) {
    d.needOperands(3);
    Type type = d.takeTypeOf({Type::f32, Type::f64});
    Ref a = d.source(1, type), b = d.source(2, type);
    d.emit(type == Type::f32 ? lanes<map2<kCopysign32, uint32_t, uint32_t>>()
                             : lanes<map2<kCopysign64, uint64_t, uint64_t>>(),
           d.target(0, type), a, b);
}

constexpr std::array<std::string_view, 6> kTests{"finite",     "infinite", "number",
                                                 "notanumber", "normal",   "subnormal"};

template <class T>
bool testOf(uint32_t test, T value) {
    switch (test) {
        case 0:
            return std::isfinite(value);
        case 1:
            return std::isinf(value);
        case 2:
            return !isNan(value);
        case 3:
            return isNan(value);
        case 4:  // zeros count
            return std::isfinite(value) && std::fpclassify(value) != FP_SUBNORMAL;
        default:
            return std::fpclassify(value) == FP_SUBNORMAL;
    }
}

template <class T>
void testLoop(Exec& x, const Instr& in, uint32_t m) {
    const T* a = x.from<T>(in.a);
    uint32_t held = 0;
    eachLane(m, [&](unsigned i) { held |= static_cast<uint32_t>(testOf(in.aux, a[i])) << i; });
    x.setPredicate(in.dst, m, held);
}

void decodeTestp(FunctionDecoder& d) {
    d.needOperands(2);
    Type type = d.takeTypeOf({Type::f32, Type::f64});
    for (uint32_t test = 0; test < kTests.size(); ++test) {
        if (!d.takeMod(kTests[test])) continue;
        Ref a = d.source(1, type);
        d.emit(type == Type::f32 ? testLoop<float> : testLoop<double>, d.target(0, Type::pred), a)
            .aux = test;
        return;
    }
    d.refuse("needs a test");
}

constexpr std::array<ptx::OpEntry, 10> kOps{{
    {"rcp", decodeRcp},
    {"sqrt", decodeSqrt},
    {"rsqrt", decodeRsqrt},
    {"sin", decodeApproximate<kSin>},
    {"cos", decodeApproximate<kCos>},
    {"ex2", decodeApproximate<kEx2>},
    {"lg2", decodeApproximate<kLg2>},
    {"tanh", decodeApproximate<kTanh>},
    {"copysign", decodeCopysign},
    {"testp", decodeTestp},
}};

}  // namespace

std::span<const ptx::OpEntry> floatOps() {
    return kOps;
}

void decodeFloatArithmetic(FunctionDecoder& d, std::string_view op, Type type) {
    type == Type::f32 ? arithmetic<float>(d, op, type) : arithmetic<double>(d, op, type);
}

}  // namespace juice::softgpu

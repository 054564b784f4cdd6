// Integer arithmetic.
#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>

#include "native/softgpu/exec/lanes.h"
#include "native/softgpu/exec/ops.h"

namespace juice::softgpu {
namespace {

using ptx::FunctionDecoder;
using ptx::Type;

template <class T>
using Unsigned = std::make_unsigned_t<T>;

template <class T>
using Twice = std::conditional_t<
    sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>,
    std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>,
                       std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>>>;

// All sums and products wrap; computing them unsigned in at least 32 bits keeps that defined.
template <class T>
using Wrap = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <class T>
constexpr auto kAdd = [](T a, T b) { return static_cast<T>(Wrap<T>(a) + Wrap<T>(b)); };
template <class T>
constexpr auto kSub = [](T a, T b) { return static_cast<T>(Wrap<T>(a) - Wrap<T>(b)); };
template <class T>
constexpr auto kMulLo = [](T a, T b) { return static_cast<T>(Wrap<T>(a) * Wrap<T>(b)); };
template <class T>
constexpr auto kMulWide = [](T a, T b) { return static_cast<Twice<T>>(Twice<T>(a) * b); };
template <class T>
constexpr auto kMulHi =
    [](T a, T b) { return static_cast<T>((Twice<T>(a) * b) >> (8 * sizeof(T))); };
template <class T>
constexpr auto kMadLo =
    [](T a, T b, T c) { return static_cast<T>(Wrap<T>(a) * Wrap<T>(b) + Wrap<T>(c)); };
template <class T>
constexpr auto kMadHi = [](T a, T b, T c) { return kAdd<T>(kMulHi<T>(a, b), c); };
template <class T>
constexpr auto kMadWide = [](T a, T b, Twice<T> c) {
    using W = std::make_unsigned_t<std::conditional_t<sizeof(T) == 8, int64_t, Twice<T>>>;
    return static_cast<Twice<T>>(W(Twice<T>(a) * b) + W(c));
};

// Division by zero gives all ones for quotient and remainder, as the hardware does; the manual
// leaves it open.
template <class T>
constexpr auto kDiv = [](T a, T b) {
    if (b == 0) return static_cast<T>(~T{0});
    if constexpr (std::is_signed_v<T>) {
        if (b == -1) return kSub<T>(0, a);
    }
    return static_cast<T>(a / b);
};
template <class T>
constexpr auto kRem = [](T a, T b) {
    if (b == 0) return static_cast<T>(~T{0});
    if constexpr (std::is_signed_v<T>) {
        if (b == -1) return T{0};
    }
    return static_cast<T>(a % b);
};

template <class T>
constexpr auto kMin = [](T a, T b) { return a < b ? a : b; };
template <class T>
constexpr auto kMax = [](T a, T b) { return a > b ? a : b; };
template <class T>
constexpr auto kAbs = [](T a) { return a < 0 ? kSub<T>(0, a) : a; };
template <class T>
constexpr auto kNeg = [](T a) { return kSub<T>(0, a); };
template <class T>
constexpr auto kSad = [](T a, T b, T c) {
    T distance = a < b ? kSub<T>(b, a) : kSub<T>(a, b);
    return kAdd<T>(c, distance);
};

template <class T>
constexpr auto kAddSat = [](T a, T b) {
    int64_t sum = int64_t{a} + b;
    return static_cast<T>(
        std::clamp<int64_t>(sum, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
};
template <class T>
constexpr auto kSubSat = [](T a, T b) {
    int64_t difference = int64_t{a} - b;
    return static_cast<T>(std::clamp<int64_t>(difference, std::numeric_limits<T>::min(),
                                              std::numeric_limits<T>::max()));
};
template <class T>
constexpr auto kMadHiSat = [](T a, T b, T c) { return kAddSat<T>(kMulHi<T>(a, b), c); };

template <class T>
T low24(T a) {
    return static_cast<T>(static_cast<T>(Unsigned<T>(a) << 8) >> 8);
}
template <class T>
constexpr auto kMul24Lo = [](T a, T b) { return kMulLo<T>(low24(a), low24(b)); };
template <class T>
constexpr auto kMul24Hi =
    [](T a, T b) { return static_cast<T>((Twice<T>(low24(a)) * low24(b)) >> 16); };
template <class T>
constexpr auto kMad24Lo = [](T a, T b, T c) { return kAdd<T>(kMul24Lo<T>(a, b), c); };
template <class T>
constexpr auto kMad24Hi = [](T a, T b, T c) { return kAdd<T>(kMul24Hi<T>(a, b), c); };

template <class T>
constexpr auto kMad24HiSat = [](T a, T b, T c) { return kAddSat<T>(kMul24Hi<T>(a, b), c); };
// .relu: nothing below zero.
template <class T>
constexpr auto kMinRelu = [](T a, T b) { return std::max(kMin<T>(a, b), T{0}); };
template <class T>
constexpr auto kMaxRelu = [](T a, T b) { return std::max(kMax<T>(a, b), T{0}); };

/// Calls make<T>() with the C++ type of a PTX integer type, bits counting as unsigned.
template <class F>
Handler byType(const FunctionDecoder& d, Type type, F make) {
    switch (type) {
        case Type::u16:
        case Type::b16:
            return make(uint16_t{});
        case Type::s16:
            return make(int16_t{});
        case Type::u32:
        case Type::b32:
            return make(uint32_t{});
        case Type::s32:
            return make(int32_t{});
        case Type::u64:
        case Type::b64:
            return make(uint64_t{});
        case Type::s64:
            return make(int64_t{});
        default:
            d.unsupported("." + std::string(nameOf(type)) + " here");
    }
}

Type widened(const FunctionDecoder& d, Type type) {
    switch (type) {
        case Type::u16:
            return Type::u32;
        case Type::s16:
            return Type::s32;
        case Type::u32:
            return Type::u64;
        case Type::s32:
            return Type::s64;
        default:
            d.unsupported(".wide of this type");
    }
}

template <template <class> class Pick>
void binary(FunctionDecoder& d, Type type) {
    d.needOperands(3);
    Handler run = byType(d, type, [](auto zero) { return Pick<decltype(zero)>::handler(); });
    Ref a = d.source(1, type), b = d.source(2, type);
    d.emit(run, d.target(0, type), a, b);
}

#define JUICE_PICK2(Name, op)                                           \
    template <class T>                                                  \
    struct Name {                                                       \
        static Handler handler() { return lanes<map2<op<T>, T, T>>(); } \
    };
JUICE_PICK2(Add, kAdd)
JUICE_PICK2(Sub, kSub)
JUICE_PICK2(Div, kDiv)
JUICE_PICK2(Rem, kRem)
JUICE_PICK2(Min, kMin)
JUICE_PICK2(Max, kMax)
#undef JUICE_PICK2

void decodeMul(FunctionDecoder& d, Type type) {
    d.needOperands(3);
    std::string_view part = d.takeOneOf({"lo", "hi", "wide"});
    Ref a = d.source(1, type), b = d.source(2, type);
    if (part == "wide") {
        Type wide = widened(d, type);
        Handler run = byType(d, type, [](auto zero) -> Handler {
            using T = decltype(zero);
            if constexpr (sizeof(T) == 8)
                return nullptr;
            else
                return lanes<map2<kMulWide<T>, Twice<T>, T>>();
        });
        d.emit(run, d.target(0, wide), a, b);
        return;
    }
    if (part.empty()) d.refuse("needs .lo, .hi or .wide");
    bool high = part == "hi";
    Handler run = byType(d, type, [high](auto zero) {
        using T = decltype(zero);
        return high ? lanes<map2<kMulHi<T>, T, T>>() : lanes<map2<kMulLo<T>, T, T>>();
    });
    d.emit(run, d.target(0, type), a, b);
}

void decodeMad(FunctionDecoder& d, Type type) {
    d.needOperands(4);
    std::string_view part = d.takeOneOf({"lo", "hi", "wide"});
    Ref a = d.source(1, type), b = d.source(2, type);
    if (part == "wide") {
        Type wide = widened(d, type);
        Handler run = byType(d, type, [](auto zero) -> Handler {
            using T = decltype(zero);
            if constexpr (sizeof(T) == 8)
                return nullptr;
            else
                return lanes<map3<kMadWide<T>, Twice<T>, T, T, Twice<T>>>();
        });
        Ref c = d.source(3, wide);
        d.emit(run, d.target(0, wide), a, b, c);
        return;
    }
    if (part.empty()) d.refuse("needs .lo, .hi or .wide");
    Ref c = d.source(3, type);
    Ref dst = d.target(0, type);
    if (d.takeMod("sat")) {
        if (part != "hi" || type != Type::s32) d.refuse(".sat goes with .hi.s32 only");
        d.emit(lanes<map3<kMadHiSat<int32_t>, int32_t, int32_t>>(), dst, a, b, c);
        return;
    }
    bool high = part == "hi";
    Handler run = byType(d, type, [high](auto zero) {
        using T = decltype(zero);
        return high ? lanes<map3<kMadHi<T>, T, T>>() : lanes<map3<kMadLo<T>, T, T>>();
    });
    d.emit(run, dst, a, b, c);
}

void decodeAddSub(FunctionDecoder& d, bool subtract, Type type) {
    d.needOperands(3);
    if (d.takeMod("cc")) return decodeAddCarry(d, subtract, type);
    if (d.takeMod("sat")) {
        if (type != Type::s32) d.refuse(".sat goes with .s32 only");
        Ref a = d.source(1, type), b = d.source(2, type);
        d.emit(subtract ? lanes<map2<kSubSat<int32_t>, int32_t, int32_t>>()
                        : lanes<map2<kAddSat<int32_t>, int32_t, int32_t>>(),
               d.target(0, type), a, b);
        return;
    }
    subtract ? binary<Sub>(d, type) : binary<Add>(d, type);
}

void decode24(FunctionDecoder& d) {
    bool mad = d.instruction().op == "mad24";
    d.needOperands(mad ? 4 : 3);
    Type type = d.takeTypeOf({Type::u32, Type::s32});
    std::string_view part = d.takeOneOf({"lo", "hi"});
    if (part.empty()) d.refuse("needs .lo or .hi");
    bool high = part == "hi";
    Ref a = d.source(1, type), b = d.source(2, type);
    Ref c = mad ? d.source(3, type) : kNoRef;
    if (mad && high && d.takeMod("sat")) {
        if (type != Type::s32) d.refuse(".sat goes with .hi.s32 only");
        d.emit(lanes<map3<kMad24HiSat<int32_t>, int32_t, int32_t>>(), d.target(0, type), a, b, c);
        return;
    }
    Handler run = byType(d, type, [high, mad](auto zero) -> Handler {
        using T = decltype(zero);
        if constexpr (sizeof(T) != 4)
            return nullptr;
        else if (mad)
            return high ? lanes<map3<kMad24Hi<T>, T, T>>() : lanes<map3<kMad24Lo<T>, T, T>>();
        else
            return high ? lanes<map2<kMul24Hi<T>, T, T>>() : lanes<map2<kMul24Lo<T>, T, T>>();
    });
    d.emit(run, d.target(0, type), a, b, c);
}

void decodeMinMax(FunctionDecoder& d, bool least, Type type) {
    if (type != Type::s32 || !d.takeMod("relu")) {
        return least ? binary<Min>(d, type) : binary<Max>(d, type);
    }
    d.needOperands(3);
    Ref a = d.source(1, type), b = d.source(2, type);
    d.emit(least ? lanes<map2<kMinRelu<int32_t>, int32_t, int32_t>>()
                 : lanes<map2<kMaxRelu<int32_t>, int32_t, int32_t>>(),
           d.target(0, type), a, b);
}

void decodeRem(FunctionDecoder& d) {
    binary<Rem>(d, d.takeType());
}

void decodeSad(FunctionDecoder& d) {
    d.needOperands(4);
    Type type = d.takeType();
    Handler run = byType(d, type, [](auto zero) {
        using T = decltype(zero);
        return lanes<map3<kSad<T>, T, T>>();
    });
    Ref a = d.source(1, type), b = d.source(2, type), c = d.source(3, type);
    d.emit(run, d.target(0, type), a, b, c);
}

void decodeAbsNeg(FunctionDecoder& d, bool negate, Type type) {
    d.needOperands(2);
    Handler run = nullptr;
    switch (type) {
        case Type::s16:
            run = negate ? lanes<map1<kNeg<int16_t>, int16_t, int16_t>>()
                         : lanes<map1<kAbs<int16_t>, int16_t, int16_t>>();
            break;
        case Type::s32:
            run = negate ? lanes<map1<kNeg<int32_t>, int32_t, int32_t>>()
                         : lanes<map1<kAbs<int32_t>, int32_t, int32_t>>();
            break;
        case Type::s64:
            run = negate ? lanes<map1<kNeg<int64_t>, int64_t, int64_t>>()
                         : lanes<map1<kAbs<int64_t>, int64_t, int64_t>>();
            break;
        default:
            d.unsupported("." + std::string(nameOf(type)) + " here");
    }
    Ref a = d.source(1, type);
    d.emit(run, d.target(0, type), a);
}

constexpr std::array<ptx::OpEntry, 4> kOps{{
    {"rem", decodeRem},
    {"sad", decodeSad},
    {"mul24", decode24},
    {"mad24", decode24},
}};

}  // namespace

std::span<const ptx::OpEntry> integerOps() {
    return kOps;
}

void decodeIntegerArithmetic(FunctionDecoder& d, std::string_view op, Type type) {
    if (op == "add") return decodeAddSub(d, false, type);
    if (op == "sub") return decodeAddSub(d, true, type);
    if (op == "mul") return decodeMul(d, type);
    if (op == "mad") {
        for (std::string_view mod : d.instruction().mods) {
            if (mod == "cc") return decodeMadCarry(d, type);
        }
        return decodeMad(d, type);
    }
    if (op == "div") return binary<Div>(d, type);
    if (op == "min" || op == "max") return decodeMinMax(d, op == "min", type);
    if (op == "abs") return decodeAbsNeg(d, false, type);
    if (op == "neg") return decodeAbsNeg(d, true, type);
    d.unsupported();
}

Handler addHandler(Type type) {
    return ptx::sizeOf(type) == 8 ? lanes<map2<kAdd<uint64_t>, uint64_t, uint64_t>>()
                                  : lanes<map2<kAdd<uint32_t>, uint32_t, uint32_t>>();
}

}  // namespace juice::softgpu

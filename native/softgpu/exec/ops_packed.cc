// Integers packed in a word: dot products and sums of absolute differences.
#include <array>

#include "native/softgpu/exec/lanes.h"
#include "native/softgpu/exec/ops.h"

namespace juice::softgpu {
namespace {

using ptx::FunctionDecoder;
using ptx::Type;

/// Part `index` of `bits` bits of a word, extended by its sign where Signed.
template <bool Signed>
int64_t part(uint32_t word, unsigned index, unsigned bits) {
    uint32_t field = word >> (index * bits) & ((1u << bits) - 1);
    if (Signed && (field >> (bits - 1) & 1)) return int64_t{field} - (int64_t{1} << bits);
    return field;
}

template <bool SignedA, bool SignedB>
constexpr auto kDot4 = [](uint32_t a, uint32_t b, uint32_t c) {
    int64_t sum = 0;
    for (unsigned k = 0; k < 4; ++k) sum += part<SignedA>(a, k, 8) * part<SignedB>(b, k, 8);
    return c + static_cast<uint32_t>(sum);
};
/// Halves of a with the lower (or upper) two bytes of b.
template <bool SignedA, bool SignedB, bool High>
constexpr auto kDot2 = [](uint32_t a, uint32_t b, uint32_t c) {
    int64_t sum = 0;
    for (unsigned k = 0; k < 2; ++k) {
        sum += part<SignedA>(a, k, 16) * part<SignedB>(b, k + (High ? 2 : 0), 8);
    }
    return c + static_cast<uint32_t>(sum);
};

template <bool SignedA, bool SignedB>
Handler dotHandler(bool four, bool high) {
    if (four) return lanes<map3<kDot4<SignedA, SignedB>, uint32_t, uint32_t>>();
    return high ? lanes<map3<kDot2<SignedA, SignedB, true>, uint32_t, uint32_t>>()
                : lanes<map3<kDot2<SignedA, SignedB, false>, uint32_t, uint32_t>>();
}

void decodeDot(FunctionDecoder& d) {
    d.needOperands(4);
    bool four = d.instruction().op == "dp4a";
    std::string_view half = four ? "" : d.takeOneOf({"lo", "hi"});
    if (!four && half.empty()) d.refuse("needs .lo or .hi");
    bool signedA = d.takeTypeOf({Type::u32, Type::s32}) == Type::s32;
    bool signedB = d.takeTypeOf({Type::u32, Type::s32}) == Type::s32;
    bool high = half == "hi";
    Handler run = signedA ? (signedB ? dotHandler<true, true>(four, high)
                                     : dotHandler<true, false>(four, high))
                          : (signedB ? dotHandler<false, true>(four, high)
                                     : dotHandler<false, false>(four, high));
    Ref a = d.source(1, Type::b32), b = d.source(2, Type::b32), c = d.source(3, Type::b32);
    d.emit(run, d.target(0, Type::b32), a, b, c);
}

/// vabsdiff2 and vabsdiff4: |a - b| by parts; with .add their sum plus c.
template <bool Signed, unsigned Bits, bool Accumulate>
constexpr auto kDifference = [](uint32_t a, uint32_t b, uint32_t c) {
    uint32_t packed = 0, sum = c;
    for (unsigned k = 0; k < 32 / Bits; ++k) {
        int64_t difference = part<Signed>(a, k, Bits) - part<Signed>(b, k, Bits);
        auto size = static_cast<uint32_t>(difference < 0 ? -difference : difference);
        packed |= (size & ((1u << Bits) - 1)) << (k * Bits);
        sum += size;
    }
    return Accumulate ? sum : packed;
};

template <unsigned Bits>
Handler differenceHandler(bool negative, bool accumulate) {
    if (negative) {
        return accumulate ? lanes<map3<kDifference<true, Bits, true>, uint32_t, uint32_t>>()
                          : lanes<map3<kDifference<true, Bits, false>, uint32_t, uint32_t>>();
    }
    return accumulate ? lanes<map3<kDifference<false, Bits, true>, uint32_t, uint32_t>>()
                      : lanes<map3<kDifference<false, Bits, false>, uint32_t, uint32_t>>();
}

void decodeDifference(FunctionDecoder& d) {
    d.needOperands(4);
    bool accumulate = d.takeMod("add");
    Type to = d.takeTypeOf({Type::u32, Type::s32});
    Type left = d.takeTypeOf({Type::u32, Type::s32}), right = d.takeTypeOf({Type::u32, Type::s32});
    if (left != right || to != Type::u32) d.unsupported("this combination of types");
    Handler run = d.instruction().op == "vabsdiff4"
                      ? differenceHandler<8>(left == Type::s32, accumulate)
                      : differenceHandler<16>(left == Type::s32, accumulate);
    Ref a = d.source(1, Type::b32), b = d.source(2, Type::b32), c = d.source(3, Type::b32);
    d.emit(run, d.target(0, Type::b32), a, b, c);
}

template <class T, auto F>
constexpr auto kByHalves = [](uint32_t a, uint32_t b) {
    uint32_t result = 0;
    for (unsigned shift = 0; shift < 32; shift += 16) {
        T half = F(static_cast<T>(a >> shift), static_cast<T>(b >> shift));
        result |= static_cast<uint32_t>(static_cast<uint16_t>(half)) << shift;
    }
    return result;
};
constexpr auto kSum = [](auto a, auto b) { return static_cast<decltype(a)>(a + b); };
constexpr auto kLeast = [](auto a, auto b) { return a < b ? a : b; };
constexpr auto kGreatest = [](auto a, auto b) { return a > b ? a : b; };
constexpr auto kLeastAboveZero = [](auto a, auto b) { return kGreatest(kLeast(a, b), int16_t{0}); };
constexpr auto kGreatestAboveZero = [](auto a, auto b) {
    return kGreatest(kGreatest(a, b), int16_t{0});
};

template <class T, auto F>
Handler halvesHandler() {
    return lanes<map2<kByHalves<T, F>, uint32_t, uint32_t>>();
}

constexpr std::array<ptx::OpEntry, 4> kOps{{
    {"dp4a", decodeDot},
    {"dp2a", decodeDot},
    {"vabsdiff2", decodeDifference},
    {"vabsdiff4", decodeDifference},
}};

}  // namespace

std::span<const ptx::OpEntry> packedOps() {
    return kOps;
}

void decodePackedArithmetic(FunctionDecoder& d, std::string_view op, Type type) {
    d.needOperands(3);
    bool isSigned = type == Type::s16x2;
    bool aboveZero = isSigned && d.takeMod("relu");
    Handler run = nullptr;
    if (op == "add" && !aboveZero) {
        run = halvesHandler<uint16_t, kSum>();
    } else if (op == "min") {
        run = aboveZero  ? halvesHandler<int16_t, kLeastAboveZero>()
              : isSigned ? halvesHandler<int16_t, kLeast>()
                         : halvesHandler<uint16_t, kLeast>();
    } else if (op == "max") {
        run = aboveZero  ? halvesHandler<int16_t, kGreatestAboveZero>()
              : isSigned ? halvesHandler<int16_t, kGreatest>()
                         : halvesHandler<uint16_t, kGreatest>();
    } else {
        d.unsupported("." + std::string(nameOf(type)) + " here");
    }
    Ref a = d.source(1, type), b = d.source(2, type);
    d.emit(run, d.target(0, type), a, b);
}

}  // namespace juice::softgpu

// f16 and bf16 arithmetic, single and packed in pairs.
#include <array>

#include "native/softgpu/exec/floats.h"
#include "native/softgpu/exec/half.h"
#include "native/softgpu/exec/ops.h"

namespace juice::softgpu {
namespace {

using ptx::FunctionDecoder;
using ptx::Type;

/// Flags of an operation, in Instr::flags.
constexpr uint8_t kFtz = 1, kSat = 2, kRelu = 4, kNan = 8, kXorsign = 16;

/// A subnormal's bits to those of the zero of its sign.
template <bool Brain>
uint16_t flushHalf(uint16_t bits) {
    return (bits & (Brain ? 0x7f80 : 0x7c00)) == 0 ? bits & 0x8000 : bits;
}

template <bool Brain>
float widen(uint16_t bits, uint8_t flags) {
    return Half<Brain>::widen(flags & kFtz ? flushHalf<Brain>(bits) : bits);
}

template <bool Brain>
uint16_t finish(double value, uint8_t flags) {
    if (flags & kSat) value = saturate(value);
    if ((flags & kRelu) && value <= 0) value = 0;
    uint16_t bits = Half<Brain>::narrow(value);
    return flags & kFtz ? flushHalf<Brain>(bits) : bits;
}

/// a * b + c such that rounding it to a half gives what rounding the exact value would: inexact
/// sums end in an odd bit.
double fusedOdd(double a, double b, double c) {
    double product = a * b;  // exact: halves have at most 11 digits
    double sum = product + c;
    if (!std::isfinite(sum)) return sum;
    double back = sum - product;
    double error = (product - (sum - back)) + (c - back);
    auto bits = __builtin_bit_cast(int64_t, sum);
    if (error != 0 && (bits & 1) == 0) bits += (error > 0) == (sum > 0) ? 1 : -1;
    return __builtin_bit_cast(double, bits);
}

double least(double a, double b, bool nan) {
    if (a != a || b != b) return nan || (a != a && b != b) ? a + b : a != a ? b : a;
    if (a == b) return std::signbit(a) ? a : b;
    return a < b ? a : b;
}
double greatest(double a, double b, bool nan) {
    if (a != a || b != b) return nan || (a != a && b != b) ? a + b : a != a ? b : a;
    if (a == b) return std::signbit(a) ? b : a;
    return a > b ? a : b;
}

/// .xorsign.abs: the sizes compare, and the result's sign is the product's of both.
template <double (*Choose)(double, double, bool)>
double ofSizes(double a, double b, bool nan) {
    double size = Choose(std::fabs(a), std::fabs(b), nan);
    return std::signbit(a) != std::signbit(b) && size == size ? -size : size;
}

enum class Op : uint8_t { add, sub, mul, fma, min, max, ex2, tanh };

template <Op O, bool Brain>
uint16_t compute(uint16_t a, uint16_t b, uint16_t c, uint8_t flags) {
    double p = widen<Brain>(a, flags), q = widen<Brain>(b, flags);
    double result;
    if constexpr (O == Op::add) result = fusedOdd(1, p, q);
    if constexpr (O == Op::sub) result = fusedOdd(1, p, -q);
    if constexpr (O == Op::mul) result = p * q;
    if constexpr (O == Op::fma) result = fusedOdd(p, q, widen<Brain>(c, flags));
    if constexpr (O == Op::min) {
        result = flags & kXorsign ? ofSizes<least>(p, q, flags & kNan) : least(p, q, flags & kNan);
    }
    if constexpr (O == Op::max) {
        result =
            flags & kXorsign ? ofSizes<greatest>(p, q, flags & kNan) : greatest(p, q, flags & kNan);
    }
    if constexpr (O == Op::ex2) result = std::exp2(p);
    if constexpr (O == Op::tanh) result = std::tanh(p);
    return finish<Brain>(result, flags);
}

template <Op O, bool Brain>
void singleLoop(Exec& x, const Instr& in, uint32_t m) {
    auto* d = x.to<uint16_t>(in.dst);
    const auto* a = x.from<uint16_t>(in.a);
    const auto* b = in.b == kNoRef ? a : x.from<uint16_t>(in.b);
    const auto* c = in.c == kNoRef ? a : x.from<uint16_t>(in.c);
    eachLane(m, [&](unsigned i) { d[i] = compute<O, Brain>(a[i], b[i], c[i], in.flags); });
}

template <Op O, bool Brain>
void pairLoop(Exec& x, const Instr& in, uint32_t m) {
    auto* d = x.to<uint32_t>(in.dst);
    const auto* a = x.from<uint32_t>(in.a);
    const auto* b = in.b == kNoRef ? a : x.from<uint32_t>(in.b);
    const auto* c = in.c == kNoRef ? a : x.from<uint32_t>(in.c);
    eachLane(m, [&](unsigned i) {
        uint32_t result = 0;
        for (unsigned shift = 0; shift < 32; shift += 16) {
            auto part = [shift](uint32_t pair) { return static_cast<uint16_t>(pair >> shift); };
            result |= static_cast<uint32_t>(
                          compute<O, Brain>(part(a[i]), part(b[i]), part(c[i]), in.flags))
                      << shift;
        }
        d[i] = result;
    });
}

template <Op O>
Handler handlerFor(Type type) {
    switch (type) {
        case Type::f16:
            return singleLoop<O, false>;
        case Type::bf16:
            return singleLoop<O, true>;
        case Type::f16x2:
            return pairLoop<O, false>;
        default:
            return pairLoop<O, true>;
    }
}

/// neg and abs touch the sign bit of numbers: `imm` is the mask to flip, `aux` the one to keep.
template <bool Brain>
uint16_t withSign(uint16_t bits, const Instr& in) {
    constexpr uint16_t kInfinity = Brain ? 0x7f80 : 0x7c00;
    if ((bits & 0x7fff) > kInfinity) return 0x7fff;
    if (in.flags & kFtz) bits = flushHalf<Brain>(bits);
    return static_cast<uint16_t>((bits & in.aux) ^ static_cast<uint32_t>(in.imm));
}

template <bool Brain>
void signLoop(Exec& x, const Instr& in, uint32_t m) {
    auto* d = x.to<uint16_t>(in.dst);
    const auto* a = x.from<uint16_t>(in.a);
    eachLane(m, [&](unsigned i) { d[i] = withSign<Brain>(a[i], in); });
}

template <bool Brain>
void signPairLoop(Exec& x, const Instr& in, uint32_t m) {
    auto* d = x.to<uint32_t>(in.dst);
    const auto* a = x.from<uint32_t>(in.a);
    eachLane(m, [&](unsigned i) {
        uint32_t low = withSign<Brain>(static_cast<uint16_t>(a[i]), in);
        d[i] = low | static_cast<uint32_t>(withSign<Brain>(a[i] >> 16, in)) << 16;
    });
}

void decodeSign(FunctionDecoder& d, bool negate, Type type) {
    bool ftz = d.takeMod("ftz");
    d.needOperands(2);
    Handler run = type == Type::f16     ? signLoop<false>
                  : type == Type::bf16  ? signLoop<true>
                  : type == Type::f16x2 ? signPairLoop<false>
                                        : signPairLoop<true>;
    Ref a = d.source(1, type);
    Instr& in = d.emit(run, d.target(0, type), a);
    in.imm = negate ? 0x8000 : 0;
    in.aux = negate ? 0xffff : 0x7fff;
    if (ftz) in.flags = kFtz;
}

struct Entry {
    std::string_view name;
    unsigned operands;
    Handler (*handler)(Type);
};

constexpr std::array<Entry, 8> kEntries{{
    {"add", 2, handlerFor<Op::add>},
    {"sub", 2, handlerFor<Op::sub>},
    {"mul", 2, handlerFor<Op::mul>},
    {"fma", 3, handlerFor<Op::fma>},
    {"min", 2, handlerFor<Op::min>},
    {"max", 2, handlerFor<Op::max>},
    {"ex2", 1, handlerFor<Op::ex2>},
    {"tanh", 1, handlerFor<Op::tanh>},
}};

}  // namespace

void decodeHalfArithmetic(FunctionDecoder& d, std::string_view op, Type type) {
    if (op == "neg" || op == "abs") return decodeSign(d, op == "neg", type);
    if (type != Type::f16 && type != Type::f16x2 && type != Type::bf16 && type != Type::bf16x2) {
        d.unsupported("." + std::string(nameOf(type)) + " here");
    }
    for (const Entry& entry : kEntries) {
        if (entry.name != op) continue;
        d.needOperands(entry.operands + 1);
        bool ordering = op == "min" || op == "max";
        uint8_t flags = d.takeMod("ftz") ? kFtz : 0;
        if (ordering) {
            if (d.takeMod("NaN")) flags |= kNan;
            if (d.takeMod("xorsign")) {
                if (!d.takeMod("abs")) d.refuse("needs .xorsign.abs");
                flags |= kXorsign;
            }
        } else if (op != "ex2" && op != "tanh") {
            d.takeMod("rn");
            if (d.takeMod("sat")) flags |= kSat;
            if (op == "fma" && d.takeMod("relu")) flags |= kRelu;
        }
        Ref s[3] = {kNoRef, kNoRef, kNoRef};
        for (unsigned i = 0; i < entry.operands; ++i) s[i] = d.source(i + 1, type);
        d.emit(entry.handler(type), d.target(0, type), s[0], s[1], s[2]).flags = flags;
        return;
    }
    d.unsupported();
}

}  // namespace juice::softgpu

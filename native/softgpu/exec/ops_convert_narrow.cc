// cvt to and from types that are narrower than the registers that hold them: tf32, the two formats
// of eight bits, and integers packed by saturation.
#include <algorithm>

#include "native/softgpu/exec/half.h"
#include "native/softgpu/exec/lanes.h"
#include "native/softgpu/exec/ops.h"

namespace juice::softgpu {
namespace {

using ptx::FunctionDecoder;
using ptx::Type;

constexpr uint32_t kNan32 = 0x7fffffff;

/// Flags of a conversion, in Instr::flags.
constexpr uint8_t kRelu = 1, kFinite = 2;

enum class Ties : uint8_t { even, away, drop };

/// f32 with its last 13 digits rounded off.
template <Ties How>
uint32_t toTf32(uint32_t bits, uint8_t flags) {
    constexpr uint32_t kInfinity = 0x7f800000, kDropped = 0x1fff, kLargest = 0x7f7fe000;
    uint32_t size = bits & 0x7fffffff, sign = bits & 0x80000000;
    if (size > kInfinity) return kNan32;
    if ((flags & kRelu) && sign != 0) return 0;
    if (size < kInfinity) {
        if (How == Ties::away) size += 0x1000;
        if (How == Ties::even) size += 0x0fff + (size >> 13 & 1);
    }
    size &= ~kDropped;
    if ((flags & kFinite) && size >= kInfinity) size = kLargest;
    return sign | size;
}

template <Ties How>
void tf32Loop(Exec& x, const Instr& in, uint32_t m) {
    auto* d = x.to<uint32_t>(in.dst);
    const auto* a = x.from<uint32_t>(in.a);
    eachLane(m, [&](unsigned i) { d[i] = toTf32<How>(a[i], in.flags); });
}

/// Rounds to an eight-bit float, beyond the largest to the largest.
template <bool E5m2>
uint32_t toEight(float value, uint8_t flags) {
    if (value != value) return 0x7f;
    if ((flags & kRelu) && !(value > 0)) return 0;
    return narrowToEight<E5m2>(value);
}

template <bool E5m2>
void eightFromSingles(Exec& x, const Instr& in, uint32_t m) {
    auto* d = x.to<uint16_t>(in.dst);
    const auto* high = x.from<float>(in.a);
    const auto* low = x.from<float>(in.b);
    eachLane(m, [&](unsigned i) {
        d[i] = static_cast<uint16_t>(toEight<E5m2>(high[i], in.flags) << 8 |
                                     toEight<E5m2>(low[i], in.flags));
    });
}

template <bool E5m2>
void eightFromHalves(Exec& x, const Instr& in, uint32_t m) {
    auto* d = x.to<uint16_t>(in.dst);
    const auto* a = x.from<uint32_t>(in.a);
    eachLane(m, [&](unsigned i) {
        float low = halfToFloat(static_cast<uint16_t>(a[i]));
        float high = halfToFloat(static_cast<uint16_t>(a[i] >> 16));
        d[i] = static_cast<uint16_t>(toEight<E5m2>(high, in.flags) << 8 |
                                     toEight<E5m2>(low, in.flags));
    });
}

/// Every eight-bit float is a half.
template <bool E5m2>
uint32_t halfOf(uint32_t bits, uint8_t flags) {
    float value = eightToFloat<E5m2>(static_cast<uint8_t>(bits));
    if ((flags & kRelu) && value <= 0) value = 0;
    return Half<false>::narrow(static_cast<double>(value));
}

template <bool E5m2>
void halvesFromEight(Exec& x, const Instr& in, uint32_t m) {
    auto* d = x.to<uint32_t>(in.dst);
    const auto* a = x.from<uint16_t>(in.a);
    eachLane(m, [&](unsigned i) {
        d[i] = halfOf<E5m2>(a[i] >> 8, in.flags) << 16 | halfOf<E5m2>(a[i] & 0xff, in.flags);
    });
}

void decodeTf32(FunctionDecoder& d, uint8_t flags) {
    std::string_view rounding = d.takeOneOf({"rn", "rz", "rna"});
    if (rounding.empty()) d.refuse("needs .rn, .rz or .rna");
    d.takeTypeOf({Type::f32});
    d.needOperands(2);
    Ref a = d.source(1, Type::f32);
    Handler run = rounding == "rna"  ? tf32Loop<Ties::away>
                  : rounding == "rn" ? tf32Loop<Ties::even>
                                     : tf32Loop<Ties::drop>;
    d.emit(run, d.target(0, Type::b32), a).flags = flags;
}

template <bool E5m2>
void decodeToEight(FunctionDecoder& d, uint8_t flags) {
    if (!d.takeMod("rn") || !(flags & kFinite)) d.refuse("needs .rn.satfinite");
    if (d.takeTypeOf({Type::f32, Type::f16x2}) == Type::f32) {
        d.needOperands(3);
        Ref a = d.source(1, Type::f32), b = d.source(2, Type::f32);
        d.emit(eightFromSingles<E5m2>, d.target(0, Type::b16), a, b).flags = flags;
        return;
    }
    d.needOperands(2);
    Ref a = d.source(1, Type::f16x2);
    d.emit(eightFromHalves<E5m2>, d.target(0, Type::b16), a).flags = flags;
}

template <bool E5m2>
void decodeFromEight(FunctionDecoder& d, uint8_t flags) {
    if (!d.takeMod("rn")) d.refuse("needs .rn");
    d.takeTypeOf({Type::f16x2});
    d.needOperands(2);
    Ref a = d.source(1, Type::b16);
    d.emit(halvesFromEight<E5m2>, d.target(0, Type::f16x2), a).flags = flags;
}

template <bool E5m2>
void decodeEight(FunctionDecoder& d, uint8_t flags, bool target) {
    target ? decodeToEight<E5m2>(d, flags) : decodeFromEight<E5m2>(d, flags);
}

/// cvt.pack: a and b clamped to `n` bits, a above b, and above them what c leaves when it is moved
/// up by as much.
void packLoop(Exec& x, const Instr& in, uint32_t m) {
    auto* d = x.to<uint32_t>(in.dst);
    const auto* a = x.from<int32_t>(in.a);
    const auto* b = x.from<int32_t>(in.b);
    const auto* c = in.c == kNoRef ? nullptr : x.from<uint32_t>(in.c);
    unsigned bits = in.n;
    bool isSigned = in.flags != 0;
    int32_t least = isSigned ? -(1 << (bits - 1)) : 0;
    int32_t most = (1 << (isSigned ? bits - 1 : bits)) - 1;
    uint32_t keep = (1u << bits) - 1;
    eachLane(m, [&](unsigned i) {
        uint32_t high = static_cast<uint32_t>(std::clamp(a[i], least, most)) & keep;
        uint32_t low = static_cast<uint32_t>(std::clamp(b[i], least, most)) & keep;
        uint32_t above = c == nullptr ? 0 : c[i] << (2 * bits);
        d[i] = above | high << bits | low;
    });
}

void decodePack(FunctionDecoder& d) {
    if (!d.takeMod("sat")) d.refuse("needs .sat");
    std::string_view type = d.takeOneOf({"u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2"});
    if (type.empty()) d.refuse("needs an integer type of at most 16 bits");
    unsigned bits = type.size() == 3 ? 16u : static_cast<unsigned>(type[1] - '0');
    d.takeTypeOf({Type::s32});
    bool three = d.typeAhead();
    if (three) d.takeTypeOf({Type::b32});
    if (three == (bits == 16)) d.refuse("16 bits go without .b32, fewer with it");
    d.needOperands(three ? 4 : 3);
    Ref a = d.source(1, Type::s32), b = d.source(2, Type::s32);
    Ref c = three ? d.source(3, Type::b32) : kNoRef;
    Instr& in = d.emit(packLoop, d.target(0, Type::b32), a, b, c);
    in.n = static_cast<uint8_t>(bits);
    in.flags = type[0] == 's';
}

}  // namespace

bool decodeNarrowConversion(FunctionDecoder& d) {
    if (d.takeMod("pack")) {
        decodePack(d);
        return true;
    }
    const auto& mods = d.instruction().mods;
    auto at = std::find_if(mods.begin(), mods.end(), [](std::string_view mod) {
        return mod == "tf32" || mod == "e4m3x2" || mod == "e5m2x2";
    });
    if (at == mods.end()) return false;
    std::string_view type = *at;
    d.takeMod(type);
    auto flags = static_cast<uint8_t>((d.takeMod("relu") ? kRelu : 0) |
                                      (d.takeMod("satfinite") ? kFinite : 0));
    bool target = at + 1 != mods.end();
    if (type == "tf32") {
        if (!target) d.unsupported("from .tf32");
        decodeTf32(d, flags);
    } else if (type == "e5m2x2") {
        decodeEight<true>(d, flags, target);
    } else {
        decodeEight<false>(d, flags, target);
    }
    return true;
}

}  // namespace juice::softgpu

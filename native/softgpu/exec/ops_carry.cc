// Arithmetic over several words: the .cc forms and those that take a carry in.
#include <array>

#include "native/softgpu/exec/lanes.h"
#include "native/softgpu/exec/ops.h"

namespace juice::softgpu {
namespace {

using ptx::FunctionDecoder;
using ptx::Type;

/// add.cc and friends. After a subtraction the flag says that there was no borrow, and sub reads it
/// so: a - b is a + ~b + 1 in the hardware.
template <class T, bool Subtract, bool CarryIn, bool CarryOut>
void carryLoop(Exec& x, const Instr& in, uint32_t m) {
    T* d = x.to<T>(in.dst);
    const T* a = x.from<T>(in.a);
    const T* b = x.from<T>(in.b);
    uint32_t carryIn = CarryIn ? x.predicate(in.c) : 0;
    uint32_t carryOut = 0;
    eachLane(m, [&](unsigned i) {
        T extra = CarryIn ? (carryIn >> i & 1) ^ (Subtract ? 1 : 0) : 0;
        bool carry;
        T value;
        if constexpr (Subtract) {
            carry = __builtin_sub_overflow(a[i], b[i], &value);
            carry |= __builtin_sub_overflow(value, extra, &value);
        } else {
            carry = __builtin_add_overflow(a[i], b[i], &value);
            carry |= __builtin_add_overflow(value, extra, &value);
        }
        d[i] = value;
        carryOut |= static_cast<uint32_t>(carry != Subtract) << i;
    });
    if constexpr (CarryOut) x.setPredicate(*x.more(in), m, carryOut);
}

template <class T, bool Subtract>
Handler carryHandler(bool in, bool out) {
    if (in) return out ? carryLoop<T, Subtract, true, true> : carryLoop<T, Subtract, true, false>;
    return carryLoop<T, Subtract, false, true>;
}

void emitCarry(FunctionDecoder& d, bool subtract, bool in, bool out, Type type, Ref dst, Ref a,
               Ref b) {
    bool wide = ptx::sizeOf(type) == 8;
    Handler run = subtract ? (wide ? carryHandler<uint64_t, true>(in, out)
                                   : carryHandler<uint32_t, true>(in, out))
                           : (wide ? carryHandler<uint64_t, false>(in, out)
                                   : carryHandler<uint32_t, false>(in, out));
    Ref carry = d.carry();
    d.emit(run, dst, a, b, in ? carry : kNoRef);
    if (out) d.setMore({carry}, {});
}

template <class T>
constexpr auto kLow = [](T a, T b) { return a * b; };
/// The upper half of the product, in twice the width W.
template <class T, class W>
constexpr auto kHigh = [](T a, T b) { return static_cast<T>((W{a} * b) >> (8 * sizeof(T))); };

Handler productHandler(Type type, bool high) {
    switch (type) {
        case Type::u32:
            return high ? lanes<map2<kHigh<uint32_t, uint64_t>, uint32_t, uint32_t>>()
                        : lanes<map2<kLow<uint32_t>, uint32_t, uint32_t>>();
        case Type::s32:
            return high ? lanes<map2<kHigh<int32_t, int64_t>, int32_t, int32_t>>()
                        : lanes<map2<kLow<uint32_t>, uint32_t, uint32_t>>();
        case Type::u64:
            return high ? lanes<map2<kHigh<uint64_t, unsigned __int128>, uint64_t, uint64_t>>()
                        : lanes<map2<kLow<uint64_t>, uint64_t, uint64_t>>();
        default:
            return high ? lanes<map2<kHigh<int64_t, __int128>, int64_t, int64_t>>()
                        : lanes<map2<kLow<uint64_t>, uint64_t, uint64_t>>();
    }
}

void decodeWithCarry(FunctionDecoder& d) {
    d.needOperands(3);
    bool subtract = d.instruction().op == "subc";
    bool out = d.takeMod("cc");
    Type type = d.takeTypeOf({Type::u32, Type::s32, Type::b32, Type::u64, Type::s64, Type::b64});
    Ref a = d.source(1, type), b = d.source(2, type);
    emitCarry(d, subtract, true, out, type, d.target(0, type), a, b);
}

/// mad{c}.{lo,hi}{.cc}: the product first, then an add with the carry.
void decodeMad(FunctionDecoder& d, bool in, Type type) {
    d.needOperands(4);
    bool out = d.takeMod("cc");
    std::string_view part = d.takeOneOf({"lo", "hi"});
    if (part.empty()) d.refuse("needs .lo or .hi");
    if (ptx::sizeOf(type) < 4) d.refuse("needs 32 or 64 bits");
    Ref a = d.source(1, type), b = d.source(2, type), c = d.source(3, type);
    Ref product = d.temporary(type);
    d.emit(productHandler(type, part == "hi"), product, a, b);
    emitCarry(d, false, in, out, type, d.target(0, type), product, c);
}

void decodeMadc(FunctionDecoder& d) {
    decodeMad(d, true, d.takeTypeOf({Type::u32, Type::s32, Type::u64, Type::s64}));
}

constexpr std::array<ptx::OpEntry, 3> kOps{{
    {"addc", decodeWithCarry},
    {"subc", decodeWithCarry},
    {"madc", decodeMadc},
}};

}  // namespace

std::span<const ptx::OpEntry> carryOps() {
    return kOps;
}

void decodeAddCarry(FunctionDecoder& d, bool subtract, Type type) {
    if (ptx::sizeOf(type) < 4) d.refuse("needs 32 or 64 bits");
    Ref a = d.source(1, type), b = d.source(2, type);
    emitCarry(d, subtract, false, true, type, d.target(0, type), a, b);
}

void decodeMadCarry(FunctionDecoder& d, Type type) {
    decodeMad(d, false, type);
}

}  // namespace juice::softgpu

// Bit operations: logic, shifts, fields, counting.
#include <algorithm>
#include <array>
#include <bit>

#include "native/softgpu/exec/lanes.h"
#include "native/softgpu/exec/ops.h"

namespace juice::softgpu {
namespace {

using ptx::FunctionDecoder;
using ptx::Type;

template <class T>
constexpr auto kAnd = [](T a, T b) { return static_cast<T>(a & b); };
template <class T>
constexpr auto kOr = [](T a, T b) { return static_cast<T>(a | b); };
template <class T>
constexpr auto kXor = [](T a, T b) { return static_cast<T>(a ^ b); };
template <class T>
constexpr auto kNot = [](T a) { return static_cast<T>(~a); };
template <class T>
constexpr auto kCnot = [](T a) { return static_cast<T>(a == 0 ? 1 : 0); };

// Shift counts beyond the width shift everything out; shr of a signed type fills with the sign.
template <class T>
constexpr auto kShl = [](T a, uint32_t b) {
    return static_cast<T>(b < 8 * sizeof(T) ? static_cast<uint64_t>(a) << (b & 63) : 0);
};
template <class T>
constexpr auto kShr = [](T a, uint32_t b) {
    constexpr uint32_t kLast = 8 * sizeof(T) - 1;
    if constexpr (std::is_signed_v<T>)
        return static_cast<T>(a >> std::min(b, kLast));
    else
        return static_cast<T>(b <= kLast ? a >> (b & kLast) : 0);
};

constexpr auto kShfLeftClamp = [](uint32_t lo, uint32_t hi, uint32_t n) {
    uint64_t pair = uint64_t{hi} << 32 | lo;
    return static_cast<uint32_t>((pair << std::min(n, 32u)) >> 32);
};
constexpr auto kShfLeftWrap = [](uint32_t lo, uint32_t hi, uint32_t n) {
    uint64_t pair = uint64_t{hi} << 32 | lo;
    return static_cast<uint32_t>((pair << (n & 31)) >> 32);
};
constexpr auto kShfRightClamp = [](uint32_t lo, uint32_t hi, uint32_t n) {
    uint64_t pair = uint64_t{hi} << 32 | lo;
    return static_cast<uint32_t>(pair >> std::min(n, 32u));
};
constexpr auto kShfRightWrap = [](uint32_t lo, uint32_t hi, uint32_t n) {
    uint64_t pair = uint64_t{hi} << 32 | lo;
    return static_cast<uint32_t>(pair >> (n & 31));
};

// Position and length count modulo 256 in the 32-bit forms, which are one instruction of the
// hardware, and as they are in the 64-bit ones, which are a sequence.
template <class T>
constexpr auto kBfe = [](T a, uint32_t position, uint32_t length) -> T {
    constexpr uint32_t kWidth = 8 * sizeof(T);
    using U = std::make_unsigned_t<T>;
    if constexpr (kWidth == 32) {
        position &= 0xff;
        length &= 0xff;
    } else {
        position = std::min(position, kWidth);
        length = std::min(length, kWidth);
    }
    if (length == 0) return 0;
    bool negative = false;
    if constexpr (std::is_signed_v<T>) {
        negative = (a >> std::min(position + length - 1, kWidth - 1)) & 1;
    }
    U field = position < kWidth ? static_cast<U>(a) >> position : 0;
    uint32_t valid = position < kWidth ? std::min(length, kWidth - position) : 0;
    U keep = valid >= kWidth ? ~U{0} : (U{1} << valid) - 1;
    field &= keep;
    return static_cast<T>(negative ? field | ~keep : field);
};

constexpr auto kBfi = [](auto a, auto b, uint32_t position, uint32_t length) {
    using T = decltype(b);
    constexpr uint32_t kWidth = 8 * sizeof(T);
    if constexpr (kWidth == 32) {
        position &= 0xff;
        length &= 0xff;
    }
    if (position >= kWidth || length == 0) return b;
    T keep = length >= kWidth ? ~T{0} : (T{1} << length) - 1;
    keep = static_cast<T>(keep << position);
    return static_cast<T>((b & ~keep) | ((a << position) & keep));
};

template <class T>
constexpr auto kBrev = [](T a) {
    T result = 0;
    for (unsigned i = 0; i < 8 * sizeof(T); ++i) result |= (a >> i & 1) << (8 * sizeof(T) - 1 - i);
    return result;
};
template <class T>
constexpr auto kClz = [](T a) { return static_cast<uint32_t>(std::countl_zero(a)); };
template <class T>
constexpr auto kPopc = [](T a) { return static_cast<uint32_t>(std::popcount(a)); };

template <class T, bool ShiftAmount>
uint32_t findTop(T a) {
    using U = std::make_unsigned_t<T>;
    U bits = static_cast<U>(a);
    if constexpr (std::is_signed_v<T>) {
        if (a < 0) bits = ~bits;
    }
    if (bits == 0) return ~0u;
    uint32_t zeros = static_cast<uint32_t>(std::countl_zero(bits));
    return ShiftAmount ? zeros : 8 * sizeof(T) - 1 - zeros;
}

template <auto F>
void predicateLoop(Exec& x, const Instr& in, uint32_t m) {
    uint32_t b = in.b == kNoRef ? 0 : x.predicate(in.b) ^ static_cast<uint32_t>(in.imm >> 32);
    x.setPredicate(in.dst, m, F(x.predicate(in.a) ^ static_cast<uint32_t>(in.imm), b));
}

template <template <class> class Pick>
Handler byWidth(const FunctionDecoder& d, Type type) {
    switch (ptx::sizeOf(type)) {
        case 2:
            return Pick<uint16_t>::handler();
        case 4:
            return Pick<uint32_t>::handler();
        case 8:
            return Pick<uint64_t>::handler();
        default:
            d.unsupported("." + std::string(nameOf(type)) + " here");
    }
}

template <class T>
struct And {
    static Handler handler() { return lanes<map2<kAnd<T>, T, T>>(); }
};
template <class T>
struct Or {
    static Handler handler() { return lanes<map2<kOr<T>, T, T>>(); }
};
template <class T>
struct Xor {
    static Handler handler() { return lanes<map2<kXor<T>, T, T>>(); }
};
template <class T>
struct Not {
    static Handler handler() { return lanes<map1<kNot<T>, T, T>>(); }
};
template <class T>
struct Cnot {
    static Handler handler() { return lanes<map1<kCnot<T>, T, T>>(); }
};
template <class T>
struct Shl {
    static Handler handler() { return lanes<map2<kShl<T>, T, T, uint32_t>>(); }
};

Type takeBits(FunctionDecoder& d) {
    Type type = d.takeType();
    if (!ptx::isBits(type) && type != Type::pred) {
        d.unsupported("." + std::string(nameOf(type)) + " here");
    }
    return type;
}

template <template <class> class Pick, auto OnPredicates>
void decodeLogic(FunctionDecoder& d) {
    d.needOperands(3);
    Type type = takeBits(d);
    if (type == Type::pred) {
        bool flipA = false, flipB = false;
        Ref a = d.predicate(d.operand(1), flipA), b = d.predicate(d.operand(2), flipB);
        Instr& in = d.emit(predicateLoop<OnPredicates>, d.target(0, type), a, b);
        in.imm = static_cast<int64_t>((flipA ? 0xffffffffull : 0) | (flipB ? ~0ull << 32 : 0));
        return;
    }
    Ref a = d.source(1, type), b = d.source(2, type);
    d.emit(byWidth<Pick>(d, type), d.target(0, type), a, b);
}

constexpr auto kPredAnd = [](uint32_t a, uint32_t b) { return a & b; };
constexpr auto kPredOr = [](uint32_t a, uint32_t b) { return a | b; };
constexpr auto kPredXor = [](uint32_t a, uint32_t b) { return a ^ b; };
constexpr auto kPredNot = [](uint32_t a, uint32_t) { return ~a; };

void decodeNot(FunctionDecoder& d) {
    d.needOperands(2);
    Type type = takeBits(d);
    Ref a = d.source(1, type);
    Handler run = type == Type::pred ? predicateLoop<kPredNot> : byWidth<Not>(d, type);
    d.emit(run, d.target(0, type), a);
}

void decodeCnot(FunctionDecoder& d) {
    d.needOperands(2);
    Type type = takeBits(d);
    Ref a = d.source(1, type);
    d.emit(byWidth<Cnot>(d, type), d.target(0, type), a);
}

void decodeShl(FunctionDecoder& d) {
    d.needOperands(3);
    Type type = takeBits(d);
    Ref a = d.source(1, type), b = d.source(2, Type::u32);
    d.emit(byWidth<Shl>(d, type), d.target(0, type), a, b);
}

void decodeShr(FunctionDecoder& d) {
    d.needOperands(3);
    Type type = d.takeType();
    Ref a = d.source(1, type), b = d.source(2, Type::u32);
    Handler run = nullptr;
    switch (type) {
        case Type::b16:
        case Type::u16:
            run = lanes<map2<kShr<uint16_t>, uint16_t, uint16_t, uint32_t>>();
            break;
        case Type::b32:
        case Type::u32:
            run = lanes<map2<kShr<uint32_t>, uint32_t, uint32_t, uint32_t>>();
            break;
        case Type::b64:
        case Type::u64:
            run = lanes<map2<kShr<uint64_t>, uint64_t, uint64_t, uint32_t>>();
            break;
        case Type::s16:
            run = lanes<map2<kShr<int16_t>, int16_t, int16_t, uint32_t>>();
            break;
        case Type::s32:
            run = lanes<map2<kShr<int32_t>, int32_t, int32_t, uint32_t>>();
            break;
        case Type::s64:
            run = lanes<map2<kShr<int64_t>, int64_t, int64_t, uint32_t>>();
            break;
        default:
            d.unsupported("." + std::string(nameOf(type)) + " here");
    }
    d.emit(run, d.target(0, type), a, b);
}

void decodeShf(FunctionDecoder& d) {
    d.needOperands(4);
    bool left = d.takeMod("l");
    if (!left && !d.takeMod("r")) d.refuse("needs .l or .r");
    bool clamp = d.takeMod("clamp");
    if (!clamp && !d.takeMod("wrap")) d.refuse("needs .clamp or .wrap");
    Type type = d.takeTypeOf({Type::b32});
    Handler run = left ? (clamp ? lanes<map3<kShfLeftClamp, uint32_t, uint32_t>>()
                                : lanes<map3<kShfLeftWrap, uint32_t, uint32_t>>())
                       : (clamp ? lanes<map3<kShfRightClamp, uint32_t, uint32_t>>()
                                : lanes<map3<kShfRightWrap, uint32_t, uint32_t>>());
    Ref a = d.source(1, type), b = d.source(2, type), c = d.source(3, Type::u32);
    d.emit(run, d.target(0, type), a, b, c);
}

void decodeBfe(FunctionDecoder& d) {
    d.needOperands(4);
    Type type = d.takeTypeOf({Type::u32, Type::s32, Type::u64, Type::s64});
    Handler run =
        type == Type::u32   ? lanes<map3<kBfe<uint32_t>, uint32_t, uint32_t, uint32_t>>()
        : type == Type::s32 ? lanes<map3<kBfe<int32_t>, int32_t, int32_t, uint32_t, uint32_t>>()
        : type == Type::u64 ? lanes<map3<kBfe<uint64_t>, uint64_t, uint64_t, uint32_t, uint32_t>>()
                            : lanes<map3<kBfe<int64_t>, int64_t, int64_t, uint32_t, uint32_t>>();
    Ref a = d.source(1, type), b = d.source(2, Type::u32), c = d.source(3, Type::u32);
    d.emit(run, d.target(0, type), a, b, c);
}

template <class T>
JUICE_LOOP void bfiLoop(Exec& x, const Instr& in, uint32_t m) {
    T* d = x.to<T>(in.dst);
    const T* a = x.from<T>(in.a);
    const T* b = x.from<T>(in.b);
    const auto* c = x.from<uint32_t>(in.c);
    const auto* length = x.from<uint32_t>(*x.more(in));
    forLanes(m, [=](unsigned i) { d[i] = kBfi(a[i], b[i], c[i], length[i]); });
}

void decodeBfi(FunctionDecoder& d) {
    d.needOperands(5);
    Type type = d.takeTypeOf({Type::b32, Type::b64});
    Ref a = d.source(1, type), b = d.source(2, type);
    Ref c = d.source(3, Type::u32), length = d.source(4, Type::u32);
    d.emit(type == Type::b32 ? lanes<bfiLoop<uint32_t>>() : lanes<bfiLoop<uint64_t>>(),
           d.target(0, type), a, b, c);
    d.setMore({}, {length});
}

void decodeCount(FunctionDecoder& d) {
    d.needOperands(2);
    Type type = d.takeTypeOf({Type::b32, Type::b64});
    bool wide = type == Type::b64;
    std::string_view op = d.instruction().op;
    Ref a = d.source(1, type);
    if (op == "brev") {
        d.emit(wide ? lanes<map1<kBrev<uint64_t>, uint64_t, uint64_t>>()
                    : lanes<map1<kBrev<uint32_t>, uint32_t, uint32_t>>(),
               d.target(0, type), a);
        return;
    }
    Handler run = op == "clz" ? (wide ? lanes<map1<kClz<uint64_t>, uint32_t, uint64_t>>()
                                      : lanes<map1<kClz<uint32_t>, uint32_t, uint32_t>>())
                              : (wide ? lanes<map1<kPopc<uint64_t>, uint32_t, uint64_t>>()
                                      : lanes<map1<kPopc<uint32_t>, uint32_t, uint32_t>>());
    d.emit(run, d.target(0, Type::u32), a);
}

template <bool ShiftAmount>
Handler bfindHandler(Type type) {
    switch (type) {
        case Type::u32:
            return lanes<map1<findTop<uint32_t, ShiftAmount>, uint32_t, uint32_t>>();
        case Type::s32:
            return lanes<map1<findTop<int32_t, ShiftAmount>, uint32_t, int32_t>>();
        case Type::u64:
            return lanes<map1<findTop<uint64_t, ShiftAmount>, uint32_t, uint64_t>>();
        default:
            return lanes<map1<findTop<int64_t, ShiftAmount>, uint32_t, int64_t>>();
    }
}

void decodeBfind(FunctionDecoder& d) {
    d.needOperands(2);
    bool shift = d.takeMod("shiftamt");
    Type type = d.takeTypeOf({Type::u32, Type::s32, Type::u64, Type::s64});
    Ref a = d.source(1, type);
    d.emit(shift ? bfindHandler<true>(type) : bfindHandler<false>(type), d.target(0, Type::u32), a);
}

/// The n-th set bit from `base` on, upwards for a positive `offset`, downwards for a negative one.
constexpr auto kFns = [](uint32_t mask, uint32_t base, int32_t offset) -> uint32_t {
    constexpr uint32_t kNone = ~0u;
    if (base > 31) return kNone;
    if (offset == 0) return mask >> base & 1 ? base : kNone;
    int32_t step = offset > 0 ? 1 : -1;
    int64_t left = offset > 0 ? int64_t{offset} : -int64_t{offset};
    for (auto at = static_cast<int32_t>(base); at >= 0 && at < 32; at += step) {
        if ((mask >> at & 1) && --left == 0) return static_cast<uint32_t>(at);
    }
    return kNone;
};

void decodeFns(FunctionDecoder& d) {
    d.needOperands(4);
    d.takeTypeOf({Type::b32});
    Ref mask = d.source(1, Type::b32), base = d.source(2, Type::b32), n = d.source(3, Type::s32);
    d.emit(plainLoop<map3<kFns, uint32_t, uint32_t, uint32_t, int32_t>>, d.target(0, Type::b32),
           mask, base, n);
}

/// A run of `width` ones from bit `start` on.
template <bool Clamp>
constexpr auto kBmsk = [](uint32_t start, uint32_t width) -> uint32_t {
    if (Clamp && start > 31) return 0;
    uint32_t from = start & 31, length = width & 31;
    if ((Clamp && width > 31) || from + length > 31) return ~0u << from;
    return ((1u << length) - 1) << from;
};

/// The low `width` bits, extended by their sign for s32.
template <class T, bool Clamp>
constexpr auto kSzext = [](T a, uint32_t width) -> T {
    if (Clamp && width > 31) return a;
    uint32_t unused = 32 - (width & 31);
    if (unused == 32) return 0;
    return static_cast<T>(static_cast<T>(static_cast<uint32_t>(a) << unused) >> unused);
};

bool takeClamp(FunctionDecoder& d) {
    bool clamp = d.takeMod("clamp");
    if (!clamp && !d.takeMod("wrap")) d.refuse("needs .clamp or .wrap");
    return clamp;
}

void decodeBmsk(FunctionDecoder& d) {
    d.needOperands(3);
    bool clamp = takeClamp(d);
    d.takeTypeOf({Type::b32});
    Ref a = d.source(1, Type::b32), b = d.source(2, Type::b32);
    d.emit(clamp ? lanes<map2<kBmsk<true>, uint32_t, uint32_t>>()
                 : lanes<map2<kBmsk<false>, uint32_t, uint32_t>>(),
           d.target(0, Type::b32), a, b);
}

template <class T>
Handler szextHandler(bool clamp) {
    return clamp ? lanes<map2<kSzext<T, true>, T, T, uint32_t>>()
                 : lanes<map2<kSzext<T, false>, T, T, uint32_t>>();
}

void decodeSzext(FunctionDecoder& d) {
    d.needOperands(3);
    bool clamp = takeClamp(d);
    Type type = d.takeTypeOf({Type::u32, Type::s32});
    Ref a = d.source(1, type), b = d.source(2, Type::u32);
    d.emit(type == Type::s32 ? szextHandler<int32_t>(clamp) : szextHandler<uint32_t>(clamp),
           d.target(0, type), a, b);
}

constexpr std::array<ptx::OpEntry, 17> kOps{{
    {"and", decodeLogic<And, kPredAnd>},
    {"or", decodeLogic<Or, kPredOr>},
    {"xor", decodeLogic<Xor, kPredXor>},
    {"not", decodeNot},
    {"cnot", decodeCnot},
    {"shl", decodeShl},
    {"shr", decodeShr},
    {"shf", decodeShf},
    {"bfe", decodeBfe},
    {"bfi", decodeBfi},
    {"brev", decodeCount},
    {"clz", decodeCount},
    {"popc", decodeCount},
    {"bfind", decodeBfind},
    {"fns", decodeFns},
    {"bmsk", decodeBmsk},
    {"szext", decodeSzext},
}};

}  // namespace

std::span<const ptx::OpEntry> bitOps() {
    return kOps;
}

}  // namespace juice::softgpu

// Bit operations: logic, shifts, fields, counting, permutation.
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

uint32_t selectByte(uint64_t pair, uint32_t selector) {
    uint32_t byte = pair >> (8 * (selector & 7)) & 0xff;
    if (selector & 8) byte = byte & 0x80 ? 0xff : 0;  // replicate the sign
    return byte;
}

constexpr auto kPrmt = [](uint32_t a, uint32_t b, uint32_t c) {
    uint64_t pair = uint64_t{b} << 32 | a;
    uint32_t result = 0;
    for (unsigned i = 0; i < 4; ++i) result |= selectByte(pair, c >> (4 * i) & 15) << (8 * i);
    return result;
};

/// The prmt modes: for each mode and each selector 0-3, the four byte indices.
uint32_t prmtMode(std::string_view mode, uint32_t c) {
    c &= 3;
    if (mode == "f4e") return 0x3210 + 0x1111 * c;
    if (mode == "b4e") {
        constexpr uint32_t kBack[4] = {0x5670, 0x6701, 0x7012, 0x0123};
        return kBack[c];
    }
    if (mode == "rc8") return 0x1111 * c;
    if (mode == "rc16") return c & 1 ? 0x3232 : 0x1010;
    constexpr uint32_t kLeft[4] = {0x3210, 0x3211, 0x3222, 0x3333};
    constexpr uint32_t kRight[4] = {0x0000, 0x1110, 0x2210, 0x3210};
    return mode == "ecl" ? kLeft[c] : kRight[c];
}

constexpr std::array<std::string_view, 6> kPrmtModes{"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"};

void prmtModeLoop(Exec& x, const Instr& in, uint32_t m) {
    auto* d = x.to<uint32_t>(in.dst);
    const auto* a = x.from<uint32_t>(in.a);
    const auto* b = x.from<uint32_t>(in.b);
    const auto* c = x.from<uint32_t>(in.c);
    eachLane(m, [&](unsigned i) { d[i] = kPrmt(a[i], b[i], prmtMode(kPrmtModes[in.aux], c[i])); });
}

/// lop3 as a sum of the minterms that the table names.
JUICE_LOOP void lop3Loop(Exec& x, const Instr& in, uint32_t m) {
    auto* d = x.to<uint32_t>(in.dst);
    const auto* a = x.from<uint32_t>(in.a);
    const auto* b = x.from<uint32_t>(in.b);
    const auto* c = x.from<uint32_t>(in.c);
    uint32_t table[8];
    for (unsigned k = 0; k < 8; ++k) table[k] = in.aux >> k & 1 ? ~0u : 0;
    forLanes(m, [&](unsigned i) {
        uint32_t p = a[i], q = b[i], r = c[i];
        uint32_t high =
            (q & ((r & table[7]) | (~r & table[6]))) | (~q & ((r & table[5]) | (~r & table[4])));
        uint32_t low =
            (q & ((r & table[3]) | (~r & table[2]))) | (~q & ((r & table[1]) | (~r & table[0])));
        d[i] = (p & high) | (~p & low);
    });
}

/// lop3.BoolOp: also p = (result != 0) op q.
template <bool Or>
void lop3PredicateLoop(Exec& x, const Instr& in, uint32_t m) {
    lop3Loop(x, in, m);
    const auto* d = x.from<uint32_t>(in.dst);
    uint32_t nonzero = 0;
    eachLane(m, [&](unsigned i) { nonzero |= static_cast<uint32_t>(d[i] != 0) << i; });
    uint32_t q = x.predicate(x.more(in)[1]) ^ static_cast<uint32_t>(in.imm);
    x.setPredicate(x.more(in)[0], m, Or ? nonzero | q : nonzero & q);
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

void decodePrmt(FunctionDecoder& d) {
    d.needOperands(4);
    d.takeTypeOf({Type::b32});
    Ref a = d.source(1, Type::b32), b = d.source(2, Type::b32), c = d.source(3, Type::b32);
    for (uint32_t mode = 0; mode < kPrmtModes.size(); ++mode) {
        if (!d.takeMod(kPrmtModes[mode])) continue;
        d.emit(prmtModeLoop, d.target(0, Type::b32), a, b, c).aux = mode;
        return;
    }
    d.emit(lanes<map3<kPrmt, uint32_t, uint32_t>>(), d.target(0, Type::b32), a, b, c);
}

void decodeLop3(FunctionDecoder& d) {
    std::string_view boolean = d.takeOneOf({"and", "or"});
    d.takeTypeOf({Type::b32});
    d.needOperands(boolean.empty() ? 5 : 6);
    Ref a = d.source(1, Type::b32), b = d.source(2, Type::b32), c = d.source(3, Type::b32);
    auto table = static_cast<uint32_t>(d.immediate(d.operand(4)));
    if (table > 255) d.refuse("the table must be 0 to 255");
    if (boolean.empty()) {
        d.emit(lanes<lop3Loop>(), d.target(0, Type::b32), a, b, c).aux = table;
        return;
    }
    const ptx::Operand& results = d.operand(0);
    if (results.kind != ptx::Operand::Kind::pair) d.refuse("needs d|p");
    bool flip = false;
    Ref q = d.predicate(d.operand(5), flip);
    Ref value = d.target(results.items[0], Type::b32);
    Ref p = d.target(results.items[1], Type::pred);
    Instr& in = d.emit(boolean == "or" ? lop3PredicateLoop<true> : lop3PredicateLoop<false>, value,
                       a, b, c);
    in.aux = table;
    in.imm = flip ? 0xffffffffll : 0;
    d.setMore({p}, {q});
}

constexpr std::array<ptx::OpEntry, 16> kOps{{
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
    {"prmt", decodePrmt},
    {"lop3", decodeLop3},
}};

}  // namespace

std::span<const ptx::OpEntry> bitOps() {
    return kOps;
}

}  // namespace juice::softgpu

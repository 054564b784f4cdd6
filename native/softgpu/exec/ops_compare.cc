// Comparison: setp and set.
#include <array>

#include "native/softgpu/exec/floats.h"
#include "native/softgpu/exec/half.h"
#include "native/softgpu/exec/ops.h"

namespace juice::softgpu {
namespace {

using ptx::FunctionDecoder;
using ptx::Operand;
using ptx::Type;

struct Eq {
    template <class T>
    JUICE_LOOP bool operator()(T a, T b) const {
        return a == b;
    }
};
struct Ne {  // ordered: false if either is a NaN
    template <class T>
    JUICE_LOOP bool operator()(T a, T b) const {
        return a < b || a > b;
    }
};
struct Lt {
    template <class T>
    JUICE_LOOP bool operator()(T a, T b) const {
        return a < b;
    }
};
struct Le {
    template <class T>
    JUICE_LOOP bool operator()(T a, T b) const {
        return a <= b;
    }
};
struct Gt {
    template <class T>
    JUICE_LOOP bool operator()(T a, T b) const {
        return a > b;
    }
};
struct Ge {
    template <class T>
    JUICE_LOOP bool operator()(T a, T b) const {
        return a >= b;
    }
};
struct Number {
    template <class T>
    JUICE_LOOP bool operator()(T a, T b) const {
        return !isNan(a) && !isNan(b);
    }
};
/// "unordered or ...": the negation of the opposite ordered test.
template <class F>
struct Not {
    template <class T>
    JUICE_LOOP bool operator()(T a, T b) const {
        return !F{}(a, b);
    }
};
template <class F>
struct Flushed {
    JUICE_LOOP bool operator()(float a, float b) const { return F{}(flush(a), flush(b)); }
};
template <class F, bool Brain>
struct Halves {
    bool operator()(uint16_t a, uint16_t b) const {
        return F{}(Half<Brain>::widen(a), Half<Brain>::widen(b));
    }
};
template <class F>
struct FlushedHalves {
    static uint16_t flushed(uint16_t bits) { return (bits & 0x7c00) == 0 ? bits & 0x8000 : bits; }
    bool operator()(uint16_t a, uint16_t b) const {
        return Halves<F, false>{}(flushed(a), flushed(b));
    }
};
/// One half of a packed pair.
template <class Compare, unsigned Shift>
struct PairPart {
    bool operator()(uint32_t a, uint32_t b) const {
        return Compare{}(static_cast<uint16_t>(a >> Shift), static_cast<uint16_t>(b >> Shift));
    }
};

enum Combine : uint8_t { kAlone, kAnd, kOr, kXor };

uint32_t combine(uint8_t how, uint32_t held, uint32_t c) {
    switch (how) {
        case kAnd:
            return held & c;
        case kOr:
            return held | c;
        case kXor:
            return held ^ c;
        default:
            return held;
    }
}

template <auto F, class A>
JUICE_LOOP uint32_t compared(Exec& x, const Instr& in, uint32_t& negated) {
    uint32_t held = test2<F, A>(x.from<A>(in.a), x.from<A>(in.b));
    uint32_t c = in.n == kAlone ? 0 : x.predicate(in.c) ^ static_cast<uint32_t>(in.imm);
    negated = combine(in.n, ~held, c);
    return combine(in.n, held, c);
}

template <auto F, class A>
JUICE_LOOP void setpLoop(Exec& x, const Instr& in, uint32_t m) {
    uint32_t other;
    uint32_t held = compared<F, A>(x, in, other);
    x.setPredicate(in.dst, m, held);
    if (in.flags) x.setPredicate(*x.more(in), m, other);
}

/// A comparison as a predicate; `high` is that of a pair's upper half.
struct Handlers {
    Handler setp = nullptr, high = nullptr;
};

template <auto F, class A>
Handlers one() {
    return {lanes<setpLoop<F, A>>(), nullptr};
}

/// For comparisons that are rare: without the second copy for wide registers.
template <auto F, class A>
Handlers rare() {
    return {plainLoop<setpLoop<F, A>>, nullptr};
}

template <class Compare>
Handlers pair() {
    return {setpLoop<PairPart<Compare, 0>{}, uint32_t>,
            setpLoop<PairPart<Compare, 16>{}, uint32_t>};
}

/// set, after its comparison: `aux` where the predicate holds, else 0. The upper half of a pair
/// comes from the predicate b.
template <class T>
void setLoop(Exec& x, const Instr& in, uint32_t m) {
    T* d = x.to<T>(in.dst);
    uint32_t low = x.predicate(in.a), high = in.b == kNoRef ? low : x.predicate(in.b);
    eachLane(m, [&](unsigned i) {
        uint32_t keep = (low >> i & 1 ? 0x0000ffff : 0) | (high >> i & 1 ? 0xffff0000 : 0);
        d[i] = static_cast<T>(in.aux & (sizeof(T) == 2 ? keep | keep >> 16 : keep));
    });
}

template <class F>
Handlers forInteger(const FunctionDecoder& d, Type type) {
    switch (type) {
        case Type::u16:
        case Type::b16:
            return one<F{}, uint16_t>();
        case Type::u32:
        case Type::b32:
            return one<F{}, uint32_t>();
        case Type::u64:
        case Type::b64:
            return one<F{}, uint64_t>();
        case Type::s16:
            return one<F{}, int16_t>();
        case Type::s32:
            return one<F{}, int32_t>();
        case Type::s64:
            return one<F{}, int64_t>();
        default:
            d.unsupported("." + std::string(nameOf(type)) + " here");
    }
}

template <class F>
Handlers forFloat(const FunctionDecoder& d, Type type, bool ftz) {
    switch (type) {
        case Type::f32:
            return ftz ? rare<Flushed<F>{}, float>() : one<F{}, float>();
        case Type::f64:
            return one<F{}, double>();
        case Type::f16:
            return ftz ? rare<FlushedHalves<F>{}, uint16_t>()
                       : rare<Halves<F, false>{}, uint16_t>();
        case Type::bf16:
            return rare<Halves<F, true>{}, uint16_t>();
        case Type::f16x2:
            return ftz ? pair<FlushedHalves<F>>() : pair<Halves<F, false>>();
        case Type::bf16x2:
            return pair<Halves<F, true>>();
        default:
            d.unsupported("." + std::string(nameOf(type)) + " here");
    }
}

Handlers floatHandlers(FunctionDecoder& d, Type type, bool ftz) {
    if (d.takeMod("eq")) return forFloat<Eq>(d, type, ftz);
    if (d.takeMod("ne")) return forFloat<Ne>(d, type, ftz);
    if (d.takeMod("lt")) return forFloat<Lt>(d, type, ftz);
    if (d.takeMod("le")) return forFloat<Le>(d, type, ftz);
    if (d.takeMod("gt")) return forFloat<Gt>(d, type, ftz);
    if (d.takeMod("ge")) return forFloat<Ge>(d, type, ftz);
    if (d.takeMod("equ")) return forFloat<Not<Ne>>(d, type, ftz);
    if (d.takeMod("neu")) return forFloat<Not<Eq>>(d, type, ftz);
    if (d.takeMod("ltu")) return forFloat<Not<Ge>>(d, type, ftz);
    if (d.takeMod("leu")) return forFloat<Not<Gt>>(d, type, ftz);
    if (d.takeMod("gtu")) return forFloat<Not<Le>>(d, type, ftz);
    if (d.takeMod("geu")) return forFloat<Not<Lt>>(d, type, ftz);
    if (d.takeMod("num")) return forFloat<Number>(d, type, ftz);
    if (d.takeMod("nan")) return forFloat<Not<Number>>(d, type, ftz);
    d.refuse("needs a comparison");
}

Handlers integerHandlers(FunctionDecoder& d, Type type) {
    bool bits = ptx::isBits(type);
    if (d.takeMod("eq")) return forInteger<Eq>(d, type);
    if (d.takeMod("ne")) return forInteger<Ne>(d, type);
    if (bits) d.refuse("bits compare with .eq and .ne only");
    if (d.takeMod("lt") || d.takeMod("lo")) return forInteger<Lt>(d, type);
    if (d.takeMod("le") || d.takeMod("ls")) return forInteger<Le>(d, type);
    if (d.takeMod("gt") || d.takeMod("hi")) return forInteger<Gt>(d, type);
    if (d.takeMod("ge") || d.takeMod("hs")) return forInteger<Ge>(d, type);
    d.refuse("needs a comparison");
}

uint8_t takeCombine(FunctionDecoder& d) {
    if (d.takeMod("and")) return kAnd;
    if (d.takeMod("or")) return kOr;
    if (d.takeMod("xor")) return kXor;
    return kAlone;
}

Handlers handlersFor(FunctionDecoder& d, Type type) {
    bool ftz = d.takeMod("ftz");
    if (ptx::isFloat(type)) return floatHandlers(d, type, ftz);
    if (ftz) d.unsupported(".ftz on integers");
    return integerHandlers(d, type);
}

struct Comparison {
    uint8_t how = kAlone;
    Type type = Type::none;
    Handlers handlers;
    Ref a = kNoRef, b = kNoRef, c = kNoRef;
    bool flip = false;

    Instr& emit(FunctionDecoder& d, Handler run, Ref p) const {
        Instr& in = d.emit(run, p, a, b, c);
        in.n = how;
        in.imm = flip ? 0xffffffffll : 0;
        return in;
    }
};

/// Everything but the destination. `how` is taken first: set has its result type before the other.
Comparison takeComparison(FunctionDecoder& d, uint8_t how) {
    Comparison comparison;
    comparison.how = how;
    comparison.type = d.takeType();
    comparison.handlers = handlersFor(d, comparison.type);
    d.needOperands(how == kAlone ? 3 : 4);
    comparison.a = d.source(1, comparison.type);
    comparison.b = d.source(2, comparison.type);
    if (how != kAlone) comparison.c = d.predicate(d.operand(3), comparison.flip);
    return comparison;
}

void decodeSetp(FunctionDecoder& d) {
    Comparison comparison = takeComparison(d, takeCombine(d));
    const Operand& result = d.operand(0);
    bool pair = result.kind == Operand::Kind::pair;
    Ref p = d.target(pair ? result.items[0] : result, Type::pred);
    Ref q = pair ? d.target(result.items[1], Type::pred) : kNoRef;
    if (comparison.handlers.high != nullptr) {
        if (!pair) d.refuse("needs two predicates");
        // The result that replaces the predicate operand comes last.
        bool lowLast = p == comparison.c;
        if (lowLast) comparison.emit(d, comparison.handlers.high, q);
        comparison.emit(d, comparison.handlers.setp, p);
        if (!lowLast) comparison.emit(d, comparison.handlers.high, q);
        return;
    }
    comparison.emit(d, comparison.handlers.setp, p).flags = pair;
    if (pair) d.setMore({q}, {});
}

void decodeSet(FunctionDecoder& d) {
    uint8_t how = takeCombine(d);
    Type to = d.takeType();
    Comparison comparison = takeComparison(d, how);
    bool pairs = comparison.handlers.high != nullptr;
    uint32_t one = 0;
    switch (to) {
        case Type::u32:
        case Type::s32:
            one = ~0u;
            break;
        case Type::u16:
        case Type::s16:
            one = 0xffff;
            break;
        case Type::f32:
            one = 0x3f800000;
            break;
        case Type::f16:
            one = 0x3c00;
            break;
        case Type::bf16:
            one = 0x3f80;
            break;
        case Type::f16x2:
            one = 0x3c003c00;
            break;
        case Type::bf16x2:
            one = 0x3f803f80;
            break;
        default:
            d.unsupported("." + std::string(nameOf(to)) + " here");
    }
    bool pairResult = to == Type::f16x2 || to == Type::bf16x2;
    bool wordResult = to == Type::u32 || to == Type::s32;
    if (pairs ? !pairResult && !wordResult : pairResult) {
        d.unsupported("this combination of types");
    }
    Ref low = d.temporary(Type::pred), high = pairs ? d.temporary(Type::pred) : kNoRef;
    comparison.emit(d, comparison.handlers.setp, low);
    if (pairs) comparison.emit(d, comparison.handlers.high, high);
    Handler run = ptx::sizeOf(to) == 2 ? setLoop<uint16_t> : setLoop<uint32_t>;
    d.emit(run, d.target(0, to), low, high).aux = one;
}

constexpr std::array<ptx::OpEntry, 2> kOps{{
    {"setp", decodeSetp},
    {"set", decodeSet},
}};

}  // namespace

std::span<const ptx::OpEntry> compareOps() {
    return kOps;
}

}  // namespace juice::softgpu

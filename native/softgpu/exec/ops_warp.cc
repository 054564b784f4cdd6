// Exchange between the lanes of a warp: shfl, vote, match, redux, activemask, elect.
#include <algorithm>
#include <array>
#include <cstring>

#include "native/softgpu/exec/control.h"
#include "native/softgpu/exec/lanes.h"
#include "native/softgpu/exec/ops.h"

namespace juice::softgpu {
namespace {

using ptx::FunctionDecoder;
using ptx::Operand;
using ptx::Type;

/// Brings the lanes of a .sync instruction together. `in.c` holds the member masks, kNoRef for the
/// old forms without one. False if the handler must return; else m is who takes part.
bool together(Exec& x, const Instr& in, uint32_t& m) {
    if (in.c == kNoRef) return true;
    const auto* members = x.from<uint32_t>(in.c);
    auto first = static_cast<unsigned>(std::countr_zero(m));
    uint32_t same = 0;
    eachLane(m,
             [&](unsigned i) { same |= static_cast<uint32_t>(members[i] == members[first]) << i; });
    // Lanes with another mask execute the instruction for themselves, later.
    if (same != m) x.leave(m & ~same, x.pc - 1);
    m = same;
    return gather(x, m, members[first]);
}

enum Shuffle : uint32_t { kUp, kDown, kButterfly, kIndex };

struct Pick {
    unsigned lane;
    bool inRange;
};

Pick pick(uint32_t mode, unsigned lane, uint32_t b, uint32_t c) {
    uint32_t segment = c >> 8 & 31, clamp = c & 31;
    b &= 31;
    int most = static_cast<int>((lane & segment) | (clamp & ~segment & 31));
    int from;
    bool inRange;
    if (mode == kUp) {
        from = static_cast<int>(lane) - static_cast<int>(b);
        inRange = from >= most;
    } else {
        from = mode == kDown        ? static_cast<int>(lane + b)
               : mode == kButterfly ? static_cast<int>(lane ^ b)
                                    : static_cast<int>((lane & segment) | (b & ~segment & 31));
        inRange = from <= most;
    }
    return {inRange ? static_cast<unsigned>(from) & 31 : lane, inRange};
}

/// Operands: a the value, b the lane or distance, c the member mask; more: {p, clamp}.
void shuffleLoop(Exec& x, const Instr& in, uint32_t m) {
    if (!together(x, in, m)) return;
    auto* d = x.to<uint32_t>(in.dst);
    uint32_t a[kLanes];
    std::memcpy(a, x.from<uint32_t>(in.a), sizeof a);
    const auto* b = x.from<uint32_t>(in.b);
    const auto* c = x.from<uint32_t>(x.more(in)[1]);
    uint32_t inRange = 0;
    eachLane(m, [&](unsigned i) {
        Pick from = pick(in.aux, i, b[i], c[i]);
        d[i] = a[from.lane];
        inRange |= static_cast<uint32_t>(from.inRange) << i;
    });
    x.setPredicate(x.more(in)[0], m, inRange);
}

enum Vote : uint32_t { kAll, kAny, kUniform, kBallot };

void voteLoop(Exec& x, const Instr& in, uint32_t m) {
    if (!together(x, in, m)) return;
    uint32_t held = (x.predicate(in.a) ^ static_cast<uint32_t>(in.imm)) & m;
    if (in.aux == kBallot) {
        auto* d = x.to<uint32_t>(in.dst);
        eachLane(m, [&](unsigned i) { d[i] = held; });
        return;
    }
    bool result = in.aux == kAll ? held == m : in.aux == kAny ? held != 0 : held == m || held == 0;
    x.setPredicate(in.dst, m, result ? kAllLanes : 0);
}

template <class T>
void matchAnyLoop(Exec& x, const Instr& in, uint32_t m) {
    if (!together(x, in, m)) return;
    const T* a = x.from<T>(in.a);
    auto* d = x.to<uint32_t>(in.dst);
    uint32_t result[kLanes];
    eachLane(m, [&](unsigned i) {
        result[i] = 0;
        eachLane(m, [&](unsigned k) { result[i] |= static_cast<uint32_t>(a[k] == a[i]) << k; });
    });
    eachLane(m, [&](unsigned i) { d[i] = result[i]; });
}

template <class T>
void matchAllLoop(Exec& x, const Instr& in, uint32_t m) {
    if (!together(x, in, m)) return;
    const T* a = x.from<T>(in.a);
    auto* d = x.to<uint32_t>(in.dst);
    T first = a[std::countr_zero(m)];
    bool all = true;
    eachLane(m, [&](unsigned i) { all &= a[i] == first; });
    eachLane(m, [&](unsigned i) { d[i] = all ? m : 0; });
    x.setPredicate(x.more(in)[0], m, all ? kAllLanes : 0);
}

template <class T, class F>
void reduce(Exec& x, const Instr& in, uint32_t m, F f) {
    if (!together(x, in, m)) return;
    const T* a = x.from<T>(in.a);
    T* d = x.to<T>(in.dst);
    T result = a[std::countr_zero(m)];
    eachLane(m & (m - 1), [&](unsigned i) { result = f(result, a[i]); });
    eachLane(m, [&](unsigned i) { d[i] = result; });
}

using U = uint32_t;
using S = int32_t;
void sumLoop(Exec& x, const Instr& in, uint32_t m) {
    reduce<U>(x, in, m, [](U a, U b) { return a + b; });
}
void andLoop(Exec& x, const Instr& in, uint32_t m) {
    reduce<U>(x, in, m, [](U a, U b) { return a & b; });
}
void orLoop(Exec& x, const Instr& in, uint32_t m) {
    reduce<U>(x, in, m, [](U a, U b) { return a | b; });
}
void xorLoop(Exec& x, const Instr& in, uint32_t m) {
    reduce<U>(x, in, m, [](U a, U b) { return a ^ b; });
}
template <class T>
void minLoop(Exec& x, const Instr& in, uint32_t m) {
    reduce<T>(x, in, m, [](T a, T b) { return std::min(a, b); });
}
template <class T>
void maxLoop(Exec& x, const Instr& in, uint32_t m) {
    reduce<T>(x, in, m, [](T a, T b) { return std::max(a, b); });
}

void activeLoop(Exec& x, const Instr& in, uint32_t m) {
    auto* d = x.to<uint32_t>(in.dst);
    eachLane(m, [&](unsigned i) { d[i] = m; });
}

void electLoop(Exec& x, const Instr& in, uint32_t m) {
    if (!together(x, in, m)) return;
    auto* d = x.to<uint32_t>(in.dst);
    auto leader = static_cast<uint32_t>(std::countr_zero(m));
    eachLane(m, [&](unsigned i) { d[i] = leader; });
    x.setPredicate(x.more(in)[0], m, 1u << leader);
}

/// "d|p" or "d": the two results, a fresh register for what the program does not want.
std::pair<Ref, Ref> results(FunctionDecoder& d) {
    const Operand& operand = d.operand(0);
    if (operand.kind == Operand::Kind::pair) {
        return {d.target(operand.items[0], Type::b32), d.target(operand.items[1], Type::pred)};
    }
    return {d.target(operand, Type::b32), d.temporary(Type::pred)};
}

void decodeShuffle(FunctionDecoder& d) {
    bool sync = d.takeMod("sync");
    uint32_t mode;
    if (d.takeMod("up")) {
        mode = kUp;
    } else if (d.takeMod("down")) {
        mode = kDown;
    } else if (d.takeMod("bfly")) {
        mode = kButterfly;
    } else if (d.takeMod("idx")) {
        mode = kIndex;
    } else {
        d.refuse("needs .up, .down, .bfly or .idx");
    }
    d.takeTypeOf({Type::b32});
    d.needOperands(sync ? 5 : 4);
    Ref a = d.source(1, Type::b32), b = d.source(2, Type::b32), clamp = d.source(3, Type::b32);
    Ref members = sync ? d.source(4, Type::b32) : kNoRef;
    auto [value, p] = results(d);
    d.emit(shuffleLoop, value, a, b, members).aux = mode;
    d.setMore({p}, {clamp});
}

void decodeVote(FunctionDecoder& d) {
    bool sync = d.takeMod("sync");
    uint32_t mode;
    if (d.takeMod("all")) {
        mode = kAll;
    } else if (d.takeMod("any")) {
        mode = kAny;
    } else if (d.takeMod("uni")) {
        mode = kUniform;
    } else if (d.takeMod("ballot")) {
        mode = kBallot;
    } else {
        d.refuse("needs .all, .any, .uni or .ballot");
    }
    Type type = d.takeTypeOf({mode == kBallot ? Type::b32 : Type::pred});
    d.needOperands(sync ? 3 : 2);
    bool flip = false;
    Ref a = d.predicate(d.operand(1), flip);
    Ref members = sync ? d.source(2, Type::b32) : kNoRef;
    Instr& in = d.emit(voteLoop, d.target(0, type), a, kNoRef, members);
    in.aux = mode;
    in.imm = flip ? 0xffffffffll : 0;
}

void decodeMatch(FunctionDecoder& d) {
    if (!d.takeMod("sync")) d.refuse("needs .sync");
    bool any = d.takeMod("any");
    if (!any && !d.takeMod("all")) d.refuse("needs .any or .all");
    Type type = d.takeTypeOf({Type::b32, Type::b64});
    d.needOperands(3);
    bool wide = type == Type::b64;
    Ref a = d.source(1, type), members = d.source(2, Type::b32);
    if (any) {
        d.emit(wide ? matchAnyLoop<uint64_t> : matchAnyLoop<uint32_t>, d.target(0, Type::b32), a,
               kNoRef, members);
        return;
    }
    auto [value, p] = results(d);
    d.emit(wide ? matchAllLoop<uint64_t> : matchAllLoop<uint32_t>, value, a, kNoRef, members);
    d.setMore({p}, {});
}

void decodeRedux(FunctionDecoder& d) {
    if (!d.takeMod("sync")) d.refuse("needs .sync");
    std::string_view op = d.takeOneOf({"add", "min", "max", "and", "or", "xor"});
    bool bits = op == "and" || op == "or" || op == "xor";
    Type type = bits ? d.takeTypeOf({Type::b32}) : d.takeTypeOf({Type::u32, Type::s32});
    d.needOperands(3);
    bool negative = type == Type::s32;
    Handler run = op == "add"   ? sumLoop
                  : op == "and" ? andLoop
                  : op == "or"  ? orLoop
                  : op == "xor" ? xorLoop
                  : op == "min" ? (negative ? minLoop<S> : minLoop<U>)
                  : op == "max" ? (negative ? maxLoop<S> : maxLoop<U>)
                                : nullptr;
    if (run == nullptr) d.refuse("needs an operation");
    Ref a = d.source(1, type), members = d.source(2, Type::b32);
    d.emit(run, d.target(0, type), a, kNoRef, members);
}

void decodeActive(FunctionDecoder& d) {
    d.takeTypeOf({Type::b32});
    d.needOperands(1);
    d.emit(activeLoop, d.target(0, Type::b32));
}

void decodeElect(FunctionDecoder& d) {
    if (!d.takeMod("sync")) d.refuse("needs .sync");
    d.needOperands(2);
    Ref members = d.source(1, Type::b32);
    auto [value, p] = results(d);
    d.emit(electLoop, value, kNoRef, kNoRef, members);
    d.setMore({p}, {});
}

constexpr std::array<ptx::OpEntry, 6> kOps{{
    {"shfl", decodeShuffle},
    {"vote", decodeVote},
    {"match", decodeMatch},
    {"redux", decodeRedux},
    {"activemask", decodeActive},
    {"elect", decodeElect},
}};

}  // namespace

std::span<const ptx::OpEntry> warpOps() {
    return kOps;
}

}  // namespace juice::softgpu

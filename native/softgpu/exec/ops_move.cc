// mov with packing and unpacking, address conversions, copies between register widths.
#include <array>

#include "native/softgpu/exec/lanes.h"
#include "native/softgpu/exec/ops.h"

namespace juice::softgpu {
namespace {

using ptx::FunctionDecoder;
using ptx::Operand;
using ptx::Space;
using ptx::Type;

template <class T>
constexpr auto kCopy = [](T a) { return a; };

void copyPredicate(Exec& x, const Instr& in, uint32_t m) {
    x.setPredicate(in.dst, m, x.predicate(in.a) ^ static_cast<uint32_t>(in.imm));
}

/// {a, b, ...} to one wide register: `n` parts of Part in a Whole.
template <class Whole, class Part>
void packLoop(Exec& x, const Instr& in, uint32_t m) {
    Whole* d = x.to<Whole>(in.dst);
    const Ref* parts = x.more(in);
    constexpr unsigned kCount = sizeof(Whole) / sizeof(Part);
    const Part* from[kCount];
    for (unsigned k = 0; k < kCount; ++k) from[k] = x.from<Part>(parts[k]);
    eachLane(m, [&](unsigned i) {
        Whole whole = 0;
        for (unsigned k = 0; k < kCount; ++k) {
            whole |= static_cast<Whole>(from[k][i]) << (8 * sizeof(Part) * k);
        }
        d[i] = whole;
    });
}

template <class Whole, class Part>
void unpackLoop(Exec& x, const Instr& in, uint32_t m) {
    const Whole* a = x.from<Whole>(in.a);
    const Ref* parts = x.more(in);
    constexpr unsigned kCount = sizeof(Whole) / sizeof(Part);
    for (unsigned k = 0; k < kCount; ++k) {
        Part* d = x.to<Part>(parts[k]);
        eachLane(m, [&](unsigned i) { d[i] = static_cast<Part>(a[i] >> (8 * sizeof(Part) * k)); });
    }
}

struct Packing {
    Type part;
    Handler pack, unpack;
};

Packing packingOf(const FunctionDecoder& d, Type whole, size_t parts) {
    unsigned size = ptx::sizeOf(whole);
    if (size == 4 && parts == 2) {
        return {Type::b16, packLoop<uint32_t, uint16_t>, unpackLoop<uint32_t, uint16_t>};
    }
    if (size == 8 && parts == 2) {
        return {Type::b32, packLoop<uint64_t, uint32_t>, unpackLoop<uint64_t, uint32_t>};
    }
    if (size == 8 && parts == 4) {
        return {Type::b16, packLoop<uint64_t, uint16_t>, unpackLoop<uint64_t, uint16_t>};
    }
    if (size == 2 && parts == 2) {
        return {Type::b8, packLoop<uint16_t, uint8_t>, unpackLoop<uint16_t, uint8_t>};
    }
    if (size == 4 && parts == 4) {
        return {Type::b8, packLoop<uint32_t, uint8_t>, unpackLoop<uint32_t, uint8_t>};
    }
    if (size == 16 && parts == 2) {
        return {Type::b64, packLoop<Wide128, uint64_t>, unpackLoop<Wide128, uint64_t>};
    }
    if (size == 16 && parts == 4) {
        return {Type::b32, packLoop<Wide128, uint32_t>, unpackLoop<Wide128, uint32_t>};
    }
    d.unsupported("packing these parts");
}

/// mov.v4.u32 {x, y, z, w}, %tid: the parts of a special register.
void decodeSpecialVector(FunctionDecoder& d) {
    Type type = d.takeType();
    const Operand& to = d.operand(0);
    const Operand& from = d.operand(1);
    if (to.kind != Operand::Kind::vector || to.items.size() != 4 ||
        from.kind != Operand::Kind::name || !isSpecial(from.name)) {
        d.unsupported();
    }
    constexpr std::string_view kParts = "xyzw";
    for (size_t i = 0; i < 4; ++i) {
        std::string part = std::string(from.name) + "." + kParts[i];
        Ref value = emitSpecial(d, part, type);
        d.emit(copyHandler(type), d.target(to.items[i], type), value);
    }
}

void decodeMov(FunctionDecoder& d) {
    d.needOperands(2);
    if (d.takeMod("v4")) return decodeSpecialVector(d);
    Type type = d.takeType();
    const Operand& to = d.operand(0);
    const Operand& from = d.operand(1);
    if (from.kind == Operand::Kind::vector) {
        Packing packing = packingOf(d, type, from.items.size());
        std::vector<Ref> parts;
        for (const Operand& item : from.items) parts.push_back(d.source(item, packing.part));
        d.emit(packing.pack, d.target(to, type));
        return d.setMore({}, parts);
    }
    if (to.kind == Operand::Kind::vector) {
        Packing packing = packingOf(d, type, to.items.size());
        Ref whole = d.source(from, type);
        std::vector<Ref> parts;
        for (const Operand& item : to.items) parts.push_back(d.target(item, packing.part));
        d.emit(packing.unpack, kNoRef, whole);
        return d.setMore(parts, {});
    }
    if (type == Type::pred) {
        bool flip = false;
        Ref source = d.predicate(from, flip);
        d.emit(copyPredicate, d.target(to, type), source).imm = flip ? 0xffffffffll : 0;
        return;
    }
    Ref source = d.source(from, type);
    d.emit(copyHandler(type), d.target(to, type), source);
}

Space takeSpace(FunctionDecoder& d) {
    if (d.takeMod("global")) return Space::global;
    // A block that is in no cluster is a cluster of its own.
    if (!d.takeOneOf({"shared", "shared::cta", "shared::cluster"}).empty()) return Space::shared;
    if (d.takeMod("local")) return Space::local;
    if (d.takeMod("const")) return Space::constant;
    if (!d.takeOneOf({"param", "param::entry", "param::func"}).empty()) return Space::param;
    d.unsupported("this state space");
}

uint64_t windowOf(const Exec& x, Space space) {
    switch (space) {
        case Space::shared:
            return kSharedWindow;
        case Space::local:
            return kLocalWindow;
        case Space::param:
            return reinterpret_cast<uint64_t>(x.grid->params.data());
        default:
            return 0;
    }
}

/// cvta and cvta.to: adds or subtracts the window of the space in `aux`.
template <bool To>
void windowLoop(Exec& x, const Instr& in, uint32_t m) {
    auto* d = x.to<uint64_t>(in.dst);
    const auto* a = x.from<uint64_t>(in.a);
    uint64_t window = windowOf(x, static_cast<Space>(in.aux));
    forLanes(m, [=](unsigned i) { d[i] = To ? a[i] - window : a[i] + window; });
}

void decodeCvta(FunctionDecoder& d) {
    d.needOperands(2);
    bool to = d.takeMod("to");
    Space space = takeSpace(d);
    d.takeTypeOf({Type::u64});
    Ref a = d.source(1, Type::u64);
    Ref dst = d.target(0, Type::u64);
    // Parameters of a called function live in its local memory.
    if (space == Space::param && !d.isEntry()) space = Space::local;
    if (space == Space::global || space == Space::constant) {
        d.emit(copyHandler(Type::u64), dst, a);
    } else {
        d.emit(to ? windowLoop<true> : windowLoop<false>, dst, a).aux =
            static_cast<uint32_t>(space);
    }
}

bool inWindow(const Exec& x, Space space, uint64_t address) {
    switch (space) {
        case Space::shared:
            return address - kSharedWindow < kWindowSize;
        case Space::local:
            return address - kLocalWindow < kWindowSize;
        case Space::constant:
            return false;
        case Space::param:
            return address - reinterpret_cast<uint64_t>(x.grid->params.data()) <
                   x.grid->params.size();
        default:
            return address < kSharedWindow;
    }
}

void isspacepLoop(Exec& x, const Instr& in, uint32_t m) {
    const auto* a = x.from<uint64_t>(in.a);
    uint32_t held = 0;
    eachLane(m, [&](unsigned i) {
        held |= static_cast<uint32_t>(inWindow(x, static_cast<Space>(in.aux), a[i])) << i;
    });
    x.setPredicate(in.dst, m, held);
}

void decodeIsspacep(FunctionDecoder& d) {
    d.needOperands(2);
    Space space = takeSpace(d);
    Ref a = d.source(1, Type::u64);
    d.emit(isspacepLoop, d.target(0, Type::pred), a).aux = static_cast<uint32_t>(space);
}

void localBaseLoop(Exec& x, const Instr& in, uint32_t m) {
    auto* d = x.to<uint64_t>(in.dst);
    const auto* base = x.from<uint32_t>(kLocalBase);
    eachLane(m, [&](unsigned i) { d[i] = base[i]; });
}

void dynamicSharedLoop(Exec& x, const Instr& in, uint32_t m) {
    auto* d = x.to<uint64_t>(in.dst);
    uint64_t base = (x.grid->kernel->staticShared + 15) & ~15ull;
    eachLane(m, [&](unsigned i) { d[i] = base; });
}

template <class To, class From>
constexpr auto kResize = [](From a) { return static_cast<To>(a); };

template <class From>
Handler resizeFrom(Type to) {
    switch (ptx::sizeOf(to)) {
        case 1:
            return lanes<map1<kResize<uint8_t, From>, uint8_t, From>>();
        case 2:
            return lanes<map1<kResize<uint16_t, From>, uint16_t, From>>();
        case 4:
            return lanes<map1<kResize<uint32_t, From>, uint32_t, From>>();
        default:
            return lanes<map1<kResize<uint64_t, From>, uint64_t, From>>();
    }
}

constexpr std::array<ptx::OpEntry, 3> kOps{{
    {"mov", decodeMov},
    {"cvta", decodeCvta},
    {"isspacep", decodeIsspacep},
}};

}  // namespace

std::span<const ptx::OpEntry> moveOps() {
    return kOps;
}

Handler copyHandler(Type type) {
    switch (ptx::sizeOf(type)) {
        case 1:
            return lanes<map1<kCopy<uint8_t>, uint8_t, uint8_t>>();
        case 2:
            return lanes<map1<kCopy<uint16_t>, uint16_t, uint16_t>>();
        case 4:
            return lanes<map1<kCopy<uint32_t>, uint32_t, uint32_t>>();
        case 16:
            return lanes<map1<kCopy<Wide128>, Wide128, Wide128>>();
        default:
            return lanes<map1<kCopy<uint64_t>, uint64_t, uint64_t>>();
    }
}

Handler resizeHandler(Type from, Type to) {
    switch (from) {
        case Type::s8:
            return resizeFrom<int8_t>(to);
        case Type::s16:
            return resizeFrom<int16_t>(to);
        case Type::s32:
            return resizeFrom<int32_t>(to);
        case Type::s64:
            return resizeFrom<int64_t>(to);
        default:
            switch (ptx::sizeOf(from)) {
                case 1:
                    return resizeFrom<uint8_t>(to);
                case 2:
                    return resizeFrom<uint16_t>(to);
                case 4:
                    return resizeFrom<uint32_t>(to);
                default:
                    return resizeFrom<uint64_t>(to);
            }
    }
}

Handler localBaseHandler() {
    return localBaseLoop;
}
Handler dynamicSharedHandler() {
    return dynamicSharedLoop;
}

}  // namespace juice::softgpu

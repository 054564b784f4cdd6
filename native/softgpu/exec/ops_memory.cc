// Loads, stores and prefetches.
#include <array>
#include <cstring>

#include "native/softgpu/exec/memory.h"
#include "native/softgpu/exec/ops.h"

namespace juice::softgpu {
namespace {

using ptx::FunctionDecoder;
using ptx::Operand;
using ptx::Space;
using ptx::Type;

/// One value of M in memory to a register of R, extended by M's sign.
template <class M, class R>
JUICE_LOOP void loadOne(Exec& x, const Instr& in, uint32_t m) {
    R* d = x.to<R>(in.dst);
    Row<M> rows[2];
    if (m == kAllLanes && reachRows<M>(x, in, rows)) {
        for (unsigned k = 0; k < 2; ++k) {
            const M* from = rows[k].first;
            R* to = d + k * kRow;
            if (rows[k].same) {
                fillRow(to, static_cast<R>(*from));
            } else {
                copyRow(to, from);
            }
        }
        return;
    }
    if (in.aux & kUniformAddress) {
        auto address = static_cast<uint64_t>(in.imm);
        const uint8_t* at = nullptr;
        if (address % sizeof(M) == 0) {
            at = reachRowQuickly(x, static_cast<Space>(in.aux & 0xff), address, sizeof(M));
        }
        if (at != nullptr) {
            R value = static_cast<R>(*reinterpret_cast<const M*>(at));
            forLanes(m, [=](unsigned i) { d[i] = value; });
            return;
        }
    }
    uint8_t* at[kLanes];
    if (!reach(x, in, m, sizeof(M), at)) return;
    if (m == kAllLanes) {
        for (unsigned i = 0; i < kLanes; ++i) {
            d[i] = static_cast<R>(*reinterpret_cast<const M*>(at[i]));
        }
    } else {
        eachLane(m, [&](unsigned i) { d[i] = static_cast<R>(*reinterpret_cast<const M*>(at[i])); });
    }
}

/// N values of M in memory to N registers of R, extended by M's sign.
template <class M, class R, unsigned N>
void loadLoop(Exec& x, const Instr& in, uint32_t m) {
    uint8_t* at[kLanes];
    if (!reach(x, in, m, sizeof(M) * N, at)) return;
    R* d[N];
    for (unsigned k = 0; k < N; ++k) d[k] = x.to<R>(x.more(in)[k]);
    eachLane(m, [&](unsigned i) {
        const M* from = reinterpret_cast<const M*>(at[i]);
        for (unsigned k = 0; k < N; ++k) d[k][i] = static_cast<R>(from[k]);
    });
}

template <class M, class R>
JUICE_LOOP void storeOne(Exec& x, const Instr& in, uint32_t m) {
    const R* s = x.from<R>(*x.more(in));
    Row<M> rows[2];
    if (m == kAllLanes && reachRows<M>(x, in, rows)) {
        for (unsigned k = 0; k < 2; ++k) {
            M* to = rows[k].first;
            const R* from = s + k * kRow;
            if (rows[k].same) {
                *to = static_cast<M>(from[kRow - 1]);  // as if in the order of the lanes
            } else {
                copyRow(to, from);
            }
        }
        return;
    }
    uint8_t* at[kLanes];
    if (!reach(x, in, m, sizeof(M), at)) return;
    eachLane(m, [&](unsigned i) { *reinterpret_cast<M*>(at[i]) = static_cast<M>(s[i]); });
}

template <class M, class R, unsigned N>
void storeLoop(Exec& x, const Instr& in, uint32_t m) {
    uint8_t* at[kLanes];
    if (!reach(x, in, m, sizeof(M) * N, at)) return;
    const R* s[N];
    for (unsigned k = 0; k < N; ++k) s[k] = x.from<R>(x.more(in)[k]);
    eachLane(m, [&](unsigned i) {
        M* to = reinterpret_cast<M*>(at[i]);
        for (unsigned k = 0; k < N; ++k) to[k] = static_cast<M>(s[k][i]);
    });
}

template <class M, class R>
Handler loadOf(unsigned n) {
    if constexpr (sizeof(M) > sizeof(R))
        return nullptr;
    else
        return n == 1   ? lanes<loadOne<M, R>>()
               : n == 2 ? loadLoop<M, R, 2>
               : n == 4 ? loadLoop<M, R, 4>
                        : loadLoop<M, R, 8>;
}

template <class M>
Handler loadInto(unsigned registerBytes, unsigned n) {
    switch (registerBytes) {
        case 1:
            return loadOf<M, uint8_t>(n);
        case 2:
            return loadOf<M, uint16_t>(n);
        case 4:
            return loadOf<M, uint32_t>(n);
        case 8:
            return loadOf<M, uint64_t>(n);
        default:
            return nullptr;
    }
}

Handler loadHandler(Type type, unsigned registerBytes, unsigned n) {
    switch (ptx::sizeOf(type)) {
        case 1:
            return type == Type::s8 ? loadInto<int8_t>(registerBytes, n)
                                    : loadInto<uint8_t>(registerBytes, n);
        case 2:
            return type == Type::s16 ? loadInto<int16_t>(registerBytes, n)
                                     : loadInto<uint16_t>(registerBytes, n);
        case 4:
            return type == Type::s32 ? loadInto<int32_t>(registerBytes, n)
                                     : loadInto<uint32_t>(registerBytes, n);
        case 8:
            return loadInto<uint64_t>(registerBytes, n);
        case 16:
            return registerBytes == 16 && n == 1 ? lanes<loadOne<Wide128, Wide128>>() : nullptr;
        default:
            return nullptr;
    }
}

template <class M, class R>
Handler storeOf(unsigned n) {
    if constexpr (sizeof(M) > sizeof(R))
        return nullptr;
    else
        return n == 1   ? lanes<storeOne<M, R>>()
               : n == 2 ? storeLoop<M, R, 2>
               : n == 4 ? storeLoop<M, R, 4>
                        : storeLoop<M, R, 8>;
}

template <class M>
Handler storeFrom(unsigned registerBytes, unsigned n) {
    switch (registerBytes) {
        case 1:
            return storeOf<M, uint8_t>(n);
        case 2:
            return storeOf<M, uint16_t>(n);
        case 4:
            return storeOf<M, uint32_t>(n);
        case 8:
            return storeOf<M, uint64_t>(n);
        default:
            return nullptr;
    }
}

Handler storeHandler(Type type, unsigned registerBytes, unsigned n) {
    switch (ptx::sizeOf(type)) {
        case 1:
            return storeFrom<uint8_t>(registerBytes, n);
        case 2:
            return storeFrom<uint16_t>(registerBytes, n);
        case 4:
            return storeFrom<uint32_t>(registerBytes, n);
        case 8:
            return storeFrom<uint64_t>(registerBytes, n);
        case 16:
            return registerBytes == 16 && n == 1 ? storeLoop<Wide128, Wide128, 1> : nullptr;
        default:
            return nullptr;
    }
}

unsigned takeVector(FunctionDecoder& d) {
    if (d.takeMod("v2")) return 2;
    if (d.takeMod("v4")) return 4;
    if (d.takeMod("v8")) return 8;
    return 1;
}

std::vector<Operand> elements(const FunctionDecoder& d, const Operand& operand, unsigned n) {
    if (n == 1 && operand.kind != Operand::Kind::vector) return {operand};
    if (operand.kind != Operand::Kind::vector || operand.items.size() != n) {
        d.refuse("expected a vector of " + std::to_string(n));
    }
    return operand.items;
}

/// The common width of the registers among `items`; at least the type's own.
unsigned registerBytes(const FunctionDecoder& d, const std::vector<Operand>& items, Type type) {
    unsigned bytes = 0;
    for (const Operand& item : items) {
        if (!d.isRegister(item)) continue;
        unsigned size = ptx::sizeOf(d.registerType(item));
        if (bytes != 0 && size != bytes) d.refuse("the registers differ in width");
        bytes = size;
    }
    return bytes != 0 ? bytes : std::max(2u, ptx::sizeOf(type));
}

Type bitsType(unsigned bytes) {
    return bytes == 1   ? Type::b8
           : bytes == 2 ? Type::b16
           : bytes == 4 ? Type::b32
           : bytes == 8 ? Type::b64
                        : Type::b128;
}

/// A cache policy operand after .L2::cache_hint has no meaning here.
void checkHint(FunctionDecoder& d, size_t operands) {
    d.needOperands(d.takeMod("L2::cache_hint") ? operands + 1 : operands);
}

void decodeLoad(FunctionDecoder& d) {
    if (d.operandCount() < 2) d.needOperands(2);
    Ordering ordering = takeOrdering(d);
    checkHint(d, 2);
    Space space = takeMemorySpace(d, d.operand(1));
    unsigned n = takeVector(d);
    Type type = d.takeType();
    std::vector<Operand> items = elements(d, d.operand(0), n);
    unsigned width = registerBytes(d, items, type);
    Handler run = loadHandler(type, width, n);
    if (run == nullptr) d.unsupported("a register of this width");
    FunctionDecoder::Address address = d.address(d.operand(1), space);
    std::vector<Ref> results;
    results.reserve(items.size());
    for (const Operand& item : items) results.push_back(d.target(item, bitsType(width)));
    setAddress(d.emit(run, n == 1 ? results[0] : kNoRef, address.base), address);
    if (n > 1) d.setMore(results, {});
    if (ordering.acquire) d.emit(fenceLoop);
}

void decodeStore(FunctionDecoder& d) {
    if (d.operandCount() < 2) d.needOperands(2);
    Ordering ordering = takeOrdering(d);
    checkHint(d, 2);
    Space space = takeMemorySpace(d, d.operand(0));
    unsigned n = takeVector(d);
    Type type = d.takeType();
    std::vector<Operand> items = elements(d, d.operand(1), n);
    unsigned width = registerBytes(d, items, type);
    Handler run = storeHandler(type, width, n);
    if (run == nullptr) d.unsupported("a register of this width");
    FunctionDecoder::Address address = d.address(d.operand(0), space);
    std::vector<Ref> sources;
    for (const Operand& item : items) {
        bool floats = item.kind == Operand::Kind::real;
        sources.push_back(d.source(item, floats ? type : bitsType(width)));
    }
    if (ordering.release) d.emit(fenceLoop);
    setAddress(d.emit(run, kNoRef, address.base), address);
    d.setMore({}, sources);
}

void decodeLdu(FunctionDecoder& d) {
    decodeLoad(d);
}

/// Prefetches and priorities change nothing that a program can see.
void decodePrefetch(FunctionDecoder& d) {
    if (d.operandCount() == 0) d.needOperands(1);
    takeMemorySpace(d, d.operand(0));
    takeOrdering(d);
    d.takeOneOf({"L1", "L2"});
    d.takeMod("tensormap") ? d.unsupported() : void();
}

constexpr std::array<ptx::OpEntry, 7> kOps{{
    {"ld", decodeLoad},
    {"ldu", decodeLdu},
    {"st", decodeStore},
    {"prefetch", decodePrefetch},
    {"prefetchu", decodePrefetch},
    {"applypriority", decodePrefetch},
    {"discard", decodePrefetch},
}};

}  // namespace

std::span<const ptx::OpEntry> memoryOps() {
    return kOps;
}

}  // namespace juice::softgpu

// Atomics and reductions. Lanes of a warp act in the order of their numbers; across warps and
// blocks the host's own atomic instructions order them.
#include <algorithm>
#include <array>

#include "native/softgpu/exec/floats.h"
#include "native/softgpu/exec/half.h"
#include "native/softgpu/exec/memory.h"
#include "native/softgpu/exec/ops.h"

namespace juice::softgpu {
namespace {

using ptx::FunctionDecoder;
using ptx::Space;
using ptx::Type;

template <class T>
struct Exchange {
    static T next(T, T b, T) { return b; }
};
template <class T>
struct CompareSwap {
    static T next(T old, T b, T c) { return old == b ? c : old; }
};
template <class T>
struct Add {
    static T next(T old, T b, T) { return static_cast<T>(old + b); }
};
template <class T>
struct And {
    static T next(T old, T b, T) { return old & b; }
};
template <class T>
struct Or {
    static T next(T old, T b, T) { return old | b; }
};
template <class T>
struct Xor {
    static T next(T old, T b, T) { return old ^ b; }
};
template <class T>
struct Min {
    static T next(T old, T b, T) { return std::min(old, b); }
};
template <class T>
struct Max {
    static T next(T old, T b, T) { return std::max(old, b); }
};
template <class T>
struct Increment {
    static T next(T old, T b, T) { return old >= b ? 0 : old + 1; }
};
template <class T>
struct Decrement {
    static T next(T old, T b, T) { return old == 0 || old > b ? b : old - 1; }
};

// Floating-point sums on the bits; f32 flushes subnormals, as the manual has it for atom.
struct AddF32 {
    static uint32_t next(uint32_t old, uint32_t b, uint32_t) {
        float sum = flush(__builtin_bit_cast(float, old)) + flush(__builtin_bit_cast(float, b));
        return __builtin_bit_cast(uint32_t, canonical(flush(sum)));
    }
};
/// In shared memory f32 sums keep subnormals.
struct AddF32Shared {
    static uint32_t next(uint32_t old, uint32_t b, uint32_t) {
        float sum = __builtin_bit_cast(float, old) + __builtin_bit_cast(float, b);
        return __builtin_bit_cast(uint32_t, canonical(sum));
    }
};
struct AddF64 {
    static uint64_t next(uint64_t old, uint64_t b, uint64_t) {
        double sum = __builtin_bit_cast(double, old) + __builtin_bit_cast(double, b);
        return __builtin_bit_cast(uint64_t, sum);
    }
};
template <bool Brain>
struct AddHalf {
    static uint16_t next(uint16_t old, uint16_t b, uint16_t) {
        return Half<Brain>::narrow(static_cast<double>(Half<Brain>::widen(old)) +
                                   Half<Brain>::widen(b));
    }
};
template <bool Brain>
struct AddHalfPair {
    static uint32_t next(uint32_t old, uint32_t b, uint32_t) {
        auto low = AddHalf<Brain>::next(static_cast<uint16_t>(old), static_cast<uint16_t>(b), 0);
        auto high = AddHalf<Brain>::next(old >> 16, b >> 16, 0);
        return static_cast<uint32_t>(high) << 16 | low;
    }
};

/// min and max of halves: the number wins over a NaN.
template <bool Brain, bool Greatest>
struct ExtremeHalf {
    static uint16_t next(uint16_t old, uint16_t b, uint16_t) {
        float p = Half<Brain>::widen(old), q = Half<Brain>::widen(b);
        if (p != p) return q != q ? 0x7fff : b;
        if (q != q) return old;
        bool first = p == q ? std::signbit(p) != Greatest : (p < q) != Greatest;
        return first ? old : b;
    }
};
template <bool Brain, bool Greatest>
struct ExtremeHalfPair {
    static uint32_t next(uint32_t old, uint32_t b, uint32_t) {
        using One = ExtremeHalf<Brain, Greatest>;
        auto low = One::next(static_cast<uint16_t>(old), static_cast<uint16_t>(b), 0);
        return static_cast<uint32_t>(One::next(old >> 16, b >> 16, 0)) << 16 | low;
    }
};

Wide128 swapIf(Wide128* place, Wide128 expected, Wide128 wanted) {
    return __sync_val_compare_and_swap(place, expected, wanted);
}

/// Words of 128 bits: exch, or cas where there is a third operand.
void wideLoop(Exec& x, const Instr& in, uint32_t m) {
    uint8_t* at[kLanes];
    if (!reach(x, in, m, sizeof(Wide128), at)) return;
    auto* d = x.to<Wide128>(in.dst);
    const auto* b = x.from<Wide128>(in.b);
    const auto* c = in.c == kNoRef ? nullptr : x.from<Wide128>(in.c);
    eachLane(m, [&](unsigned i) {
        auto* place = reinterpret_cast<Wide128*>(at[i]);
        if (c != nullptr) {
            d[i] = swapIf(place, b[i], c[i]);
            return;
        }
        Wide128 wanted = b[i], seen = 0;
        for (;;) {
            Wide128 old = swapIf(place, seen, wanted);
            if (old == seen) break;
            seen = old;
        }
        d[i] = seen;
    });
}

template <class T, class Op>
T apply(T* place, T b, T c) {
    T old = __atomic_load_n(place, __ATOMIC_RELAXED);
    for (;;) {
        T next = Op::next(old, b, c);
        if (__atomic_compare_exchange_n(place, &old, next, true, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED)) {
            return old;
        }
    }
}

template <class T, class Op>
void atomicLoop(Exec& x, const Instr& in, uint32_t m) {
    uint8_t* at[kLanes];
    if (!reach(x, in, m, sizeof(T), at)) return;
    T* d = x.to<T>(in.dst);
    const T* b = x.from<T>(in.b);
    const T* c = in.c == kNoRef ? b : x.from<T>(in.c);
    eachLane(m, [&](unsigned i) { d[i] = apply<T, Op>(reinterpret_cast<T*>(at[i]), b[i], c[i]); });
}

template <template <class> class Op>
Handler bitsHandler(Type type) {
    switch (type) {
        case Type::b32:
            return atomicLoop<uint32_t, Op<uint32_t>>;
        case Type::b64:
            return atomicLoop<uint64_t, Op<uint64_t>>;
        default:
            return nullptr;
    }
}

template <template <class> class Op>
Handler orderedHandler(Type type) {
    switch (type) {
        case Type::u32:
            return atomicLoop<uint32_t, Op<uint32_t>>;
        case Type::s32:
            return atomicLoop<int32_t, Op<int32_t>>;
        case Type::u64:
            return atomicLoop<uint64_t, Op<uint64_t>>;
        case Type::s64:
            return atomicLoop<int64_t, Op<int64_t>>;
        default:
            return nullptr;
    }
}

Handler addHandlerOf(Type type, Space space) {
    switch (type) {
        case Type::u32:
        case Type::s32:
            return atomicLoop<uint32_t, Add<uint32_t>>;
        case Type::u64:
        case Type::s64:
            return atomicLoop<uint64_t, Add<uint64_t>>;
        case Type::f32:
            return space == Space::shared ? atomicLoop<uint32_t, AddF32Shared>
                                          : atomicLoop<uint32_t, AddF32>;
        case Type::f64:
            return atomicLoop<uint64_t, AddF64>;
        case Type::f16:
            return atomicLoop<uint16_t, AddHalf<false>>;
        case Type::bf16:
            return atomicLoop<uint16_t, AddHalf<true>>;
        case Type::f16x2:
            return atomicLoop<uint32_t, AddHalfPair<false>>;
        case Type::bf16x2:
            return atomicLoop<uint32_t, AddHalfPair<true>>;
        default:
            return nullptr;
    }
}

template <bool Greatest>
Handler extremeHandler(Type type) {
    switch (type) {
        case Type::f16:
            return atomicLoop<uint16_t, ExtremeHalf<false, Greatest>>;
        case Type::bf16:
            return atomicLoop<uint16_t, ExtremeHalf<true, Greatest>>;
        case Type::f16x2:
            return atomicLoop<uint32_t, ExtremeHalfPair<false, Greatest>>;
        case Type::bf16x2:
            return atomicLoop<uint32_t, ExtremeHalfPair<true, Greatest>>;
        default:
            return Greatest ? orderedHandler<Max>(type) : orderedHandler<Min>(type);
    }
}

Handler handlerFor(std::string_view op, Type type, Space space) {
    if (type == Type::b128) return op == "exch" || op == "cas" ? wideLoop : nullptr;
    if (op == "exch") return bitsHandler<Exchange>(type);
    if (op == "cas") {
        if (type == Type::b16) return atomicLoop<uint16_t, CompareSwap<uint16_t>>;
        return bitsHandler<CompareSwap>(type);
    }
    if (op == "and") return bitsHandler<And>(type);
    if (op == "or") return bitsHandler<Or>(type);
    if (op == "xor") return bitsHandler<Xor>(type);
    if (op == "add") return addHandlerOf(type, space);
    if (op == "min") return extremeHandler<false>(type);
    if (op == "max") return extremeHandler<true>(type);
    if (type != Type::u32) return nullptr;
    return op == "inc" ? atomicLoop<uint32_t, Increment<uint32_t>>
                       : atomicLoop<uint32_t, Decrement<uint32_t>>;
}

/// The vector forms are atomic element by element: an instruction for each. The results come last,
/// since they may replace operands.
void emitVector(FunctionDecoder& d, Handler run, Type type, FunctionDecoder::Address address,
                size_t n, bool reduction) {
    const ptx::Operand& from = d.operand(reduction ? 1 : 2);
    auto isVector = [&](const ptx::Operand& operand) {
        return operand.kind == ptx::Operand::Kind::vector && operand.items.size() == n;
    };
    if (!isVector(from) || (!reduction && !isVector(d.operand(0)))) {
        d.refuse("needs vectors of " + std::to_string(n));
    }
    std::vector<Ref> results;
    for (size_t i = 0; i < n; ++i) {
        Ref b = d.source(from.items[i], type);
        results.push_back(d.temporary(type));
        setAddress(d.emit(run, results[i], address.base, b), address);
        address.offset += ptx::sizeOf(type);
    }
    for (size_t i = 0; !reduction && i < n; ++i) {
        d.emit(copyHandler(type), d.target(d.operand(0).items[i], type), results[i]);
    }
}

void decode(FunctionDecoder& d, bool reduction) {
    size_t first = reduction ? 0 : 1;  // the address operand
    if (d.operandCount() < first + 2) d.needOperands(first + 2);
    std::string_view op =
        d.takeOneOf({"exch", "cas", "and", "or", "xor", "add", "inc", "dec", "min", "max"});
    if (op.empty()) d.refuse("needs an operation");
    Space space = takeMemorySpace(d, d.operand(first));
    Ordering ordering = takeOrdering(d);
    d.takeMod("noftz");
    std::string_view vector = d.takeOneOf({"v2", "v4", "v8"});
    Type type = d.takeType();
    bool hint = d.takeMod("L2::cache_hint");
    size_t sources = op == "cas" ? 2 : 1;
    d.needOperands(first + 1 + sources + hint);
    Handler run = handlerFor(op, type, space);
    if (run == nullptr || space == Space::local || space == Space::param) d.unsupported();
    FunctionDecoder::Address address = d.address(d.operand(first), space);
    if (!vector.empty()) {
        if (ordering.release) d.emit(fenceLoop);
        emitVector(d, run, type, address, static_cast<size_t>(vector[1] - '0'), reduction);
        if (ordering.acquire) d.emit(fenceLoop);
        return;
    }
    Ref b = d.source(first + 1, type);
    Ref c = sources == 2 ? d.source(first + 2, type) : kNoRef;
    Ref result = reduction ? d.temporary(type) : d.target(0, type);
    if (ordering.release) d.emit(fenceLoop);
    Instr& in = d.emit(run, result, address.base, b, c);
    setAddress(in, address);
    in.aux |= kNotLocal;
    if (ordering.acquire) d.emit(fenceLoop);
}

void decodeAtom(FunctionDecoder& d) {
    decode(d, false);
}
void decodeRed(FunctionDecoder& d) {
    decode(d, true);
}

constexpr std::array<ptx::OpEntry, 2> kOps{{{"atom", decodeAtom}, {"red", decodeRed}}};

}  // namespace

std::span<const ptx::OpEntry> atomicOps() {
    return kOps;
}

}  // namespace juice::softgpu

// From the address operands of an instruction to host pointers, checked.
#pragma once

#include <type_traits>

#include "native/softgpu/exec/lanes.h"
#include "native/softgpu/ptx/decoder.h"

namespace juice::softgpu {

/// Bits of Instr::aux of a memory instruction; the low byte is the ptx::Space.
inline constexpr uint32_t kWideAddress = 1u << 8;     // the base register has 64 bits
inline constexpr uint32_t kUniformAddress = 1u << 9;  // no base register: `imm` is the address
inline constexpr uint32_t kNotLocal = 1u << 10;       // local memory will not do: 717

/// Host pointers of `bytes` bytes for the lanes in m. False if one of them may not be accessed:
/// the launch has then failed with 700 or 716. Pointers of other lanes are meaningless.
extern bool (*const reach)(Exec& x, const Instr& in, uint32_t m, unsigned bytes,
                           uint8_t* (&at)[kLanes]);

/// The pointer of `bytes` bytes in a row from `address` on, which is in `space`; null if not all of
/// them may be accessed, or if lanes see different memory there, or perhaps otherwise: reach() is
/// who decides.
uint8_t* reachRow(Exec& x, ptx::Space space, uint64_t address, uint64_t bytes);

/// The same, with the memory that was used last looked at first.
JUICE_LOOP uint8_t* reachRowQuickly(Exec& x, ptx::Space space, uint64_t address, uint64_t bytes) {
    if (space == ptx::Space::shared) {
        bool inside = address <= x.block->sharedBytes && x.block->sharedBytes - address >= bytes;
        return inside ? x.block->shared.data() + address : nullptr;
    }
    const RangeCache::Range& last = x.ranges.ways[0];
    bool known = space != ptx::Space::local && space != ptx::Space::param;
    if (known && address - last.begin < last.end - last.begin && last.end - address >= bytes) {
        return reinterpret_cast<uint8_t*>(address);
    }
    return reachRow(x, space, address, bytes);
}

/// Half of a warp's words: one after another, or all the same one.
template <class M>
struct Row {
    M* first = nullptr;
    bool same = false;
};
inline constexpr unsigned kRow = kLanes / 2;

/// Loops of so few rounds are unrolled and then not vectorised: hence vectors by hand.
template <class T>
struct Vector {
    using Type [[gnu::vector_size(32)]] = T;
    static constexpr unsigned kCount = 32 / sizeof(T);
};

/// What half a warp's addresses have to do with the first of them.
struct Shape {
    bool row = false, same = false;
};
template <class A>
JUICE_LOOP Shape shapeOf(const A* half, unsigned step) {
    using V = typename Vector<A>::Type;
    constexpr unsigned kCount = Vector<A>::kCount;
    V wanted, apart = {}, unlike = {};
    for (unsigned i = 0; i < kCount; ++i) wanted[i] = A{i} * A{step};
    for (unsigned i = 0; i < kRow; i += kCount) {
        V distance;
        __builtin_memcpy(&distance, half + i, sizeof distance);
        distance -= half[0];
        apart |= distance;
        unlike |= distance - wanted;
        wanted += static_cast<A>(kCount * step);
    }
    uint64_t bits[2][4];
    __builtin_memcpy(bits[0], &unlike, sizeof unlike);
    __builtin_memcpy(bits[1], &apart, sizeof apart);
    const auto none = [](const uint64_t(&of)[4]) { return (of[0] | of[1] | of[2] | of[3]) == 0; };
    return {none(bits[0]), none(bits[1])};
}

template <class T>
JUICE_LOOP void fillRow(T* to, T value) {
    if constexpr (std::is_integral_v<T> && sizeof(T) > 1 && sizeof(T) <= 8) {
        typename Vector<T>::Type all = {};
        all += value;
        for (unsigned i = 0; i < kRow; i += Vector<T>::kCount) __builtin_memcpy(to + i, &all, 32);
    } else {
        for (unsigned i = 0; i < kRow; ++i) to[i] = value;
    }
}

/// Converts half a warp's values from one width to another.
template <class To, class From>
JUICE_LOOP void copyRow(To* to, const From* from) {
    if constexpr (sizeof(To) == sizeof(From)) {
        __builtin_memcpy(to, from, kRow * sizeof(To));
    } else {
        for (unsigned i = 0; i < kRow; ++i) to[i] = static_cast<To>(from[i]);
    }
}

/// Whole warps mostly access rows of words, or two halves each do. False if they do not, or if
/// reachRow() will not have it.
template <class M, class A>
JUICE_LOOP bool reachRowsFrom(Exec& x, const Instr& in, const A* a, Row<M> (&rows)[2]) {
    for (unsigned k = 0; k < 2; ++k) {
        const A* half = a + k * kRow;
        const Shape shape = shapeOf(half, sizeof(M));
        if (!shape.row && !shape.same) return false;
        uint64_t address = half[0] + static_cast<uint64_t>(in.imm);
        if (address % sizeof(M) != 0) return false;
        auto space = static_cast<ptx::Space>(in.aux & 0xff);
        unsigned words = shape.same ? 1 : kRow;
        auto* first = reinterpret_cast<M*>(reachRowQuickly(x, space, address, words * sizeof(M)));
        if (first == nullptr) return false;
        rows[k] = {first, shape.same};
    }
    return true;
}

template <class M>
JUICE_LOOP bool reachRows(Exec& x, const Instr& in, Row<M> (&rows)[2]) {
    if (in.aux & kUniformAddress) return false;
    if (in.aux & kWideAddress) return reachRowsFrom(x, in, x.from<uint64_t>(in.a), rows);
    return reachRowsFrom(x, in, x.from<uint32_t>(in.a), rows);
}

/// One lane's pointer for an access of any alignment through a generic address, or null if it may
/// not be accessed. For the built-in functions.
uint8_t* reachGeneric(Exec& x, unsigned lane, uint64_t address, uint64_t bytes);

/// Bytes that may be read from `address` on, through a generic address; 0 if none may.
uint64_t reachableBytes(Exec& x, unsigned lane, uint64_t address);

/// Puts an address into the fields of a memory instruction; `a` must be passed to emit().
inline void setAddress(Instr& in, const ptx::FunctionDecoder::Address& address) {
    in.imm = address.offset;
    in.aux = static_cast<uint32_t>(address.space) | (address.wide ? kWideAddress : 0) |
             (address.uniform ? kUniformAddress : 0);
}

/// Takes the state space modifier of a load, store or atomic; generic if there is none. `.param`
/// of a variable in a function body is that function's local memory.
ptx::Space takeMemorySpace(ptx::FunctionDecoder& d, const ptx::Operand& address);

/// Takes the modifiers that do not change what a memory instruction does here: weak, volatile,
/// relaxed, scopes, cache operators and hints. Returns whether it is an acquire and a release.
struct Ordering {
    bool acquire = false, release = false;
};
Ordering takeOrdering(ptx::FunctionDecoder& d);

/// A memory fence of the host.
void fenceLoop(Exec& x, const Instr& in, uint32_t m);

}  // namespace juice::softgpu

// Loops over the lanes of a warp, and the choice of instruction set for them.
//
// Each loop is compiled twice, for the baseline and for AVX2 with FMA; lanes<loop>() gives the
// handler that suits this processor.
#pragma once

#include <bit>
#include <cstdint>

#include "native/softgpu/exec/state.h"

#define JUICE_LOOP [[gnu::always_inline]] inline

#if defined(__x86_64__) && defined(__GNUC__)
#define JUICE_WIDE __attribute__((target("avx2,fma,bmi,bmi2,lzcnt,popcnt")))
#endif

namespace juice::softgpu {

/// The contents of a .b128 register.
using Wide128 = unsigned __int128;

inline bool cpuIsWide() {
#ifdef JUICE_WIDE
    static const bool wide = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                             __builtin_cpu_supports("bmi2");
    return wide;
#else
    return false;
#endif
}

template <auto Loop>
void plainLoop(Exec& x, const Instr& in, uint32_t m) {
    Loop(x, in, m);
}

#ifdef JUICE_WIDE
template <auto Loop>
JUICE_WIDE void wideLoop(Exec& x, const Instr& in, uint32_t m) {
    Loop(x, in, m);
}
template <auto Loop>
Handler lanes() {
    return cpuIsWide() ? &wideLoop<Loop> : &plainLoop<Loop>;
}
#else
template <auto Loop>
Handler lanes() {
    return &plainLoop<Loop>;
}
#endif

/// Calls f(lane) for each set bit.
template <class F>
JUICE_LOOP void eachLane(uint32_t m, F f) {
    for (; m != 0; m &= m - 1) f(static_cast<unsigned>(std::countr_zero(m)));
}

/// Calls f(lane) for the lanes in m; all 32 in a loop that the compiler can vectorise. Operands
/// and result are the same lane vector or do not overlap, hence ivdep.
template <class F>
JUICE_LOOP void forLanes(uint32_t m, F f) {
    if (m == kAllLanes) {
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC ivdep
#endif
        for (unsigned i = 0; i < kLanes; ++i) f(i);
    } else {
        eachLane(m, f);
    }
}

template <auto F, class D, class A>
JUICE_LOOP void map1(Exec& x, const Instr& in, uint32_t m) {
    D* d = x.to<D>(in.dst);
    const A* a = x.from<A>(in.a);
    forLanes(m, [=](unsigned i) { d[i] = static_cast<D>(F(a[i])); });
}

template <auto F, class D, class A, class B = A>
JUICE_LOOP void map2(Exec& x, const Instr& in, uint32_t m) {
    D* d = x.to<D>(in.dst);
    const A* a = x.from<A>(in.a);
    const B* b = x.from<B>(in.b);
    forLanes(m, [=](unsigned i) { d[i] = static_cast<D>(F(a[i], b[i])); });
}

template <auto F, class D, class A, class B = A, class C = A>
JUICE_LOOP void map3(Exec& x, const Instr& in, uint32_t m) {
    D* d = x.to<D>(in.dst);
    const A* a = x.from<A>(in.a);
    const B* b = x.from<B>(in.b);
    const C* c = x.from<C>(in.c);
    forLanes(m, [=](unsigned i) { d[i] = static_cast<D>(F(a[i], b[i], c[i])); });
}

/// The lanes of m for which F(a, b) holds, as bits. Always evaluates all 32 lanes, so F must be
/// free of faults.
template <auto F, class A, class B = A>
JUICE_LOOP uint32_t test2(const A* a, const B* b) {
    alignas(32) uint8_t held[kLanes];
    for (unsigned i = 0; i < kLanes; ++i) held[i] = F(a[i], b[i]) ? 1 : 0;
    uint32_t bits = 0;
    for (unsigned part = 0; part < 4; ++part) {
        uint64_t eight;
        __builtin_memcpy(&eight, held + 8 * part, 8);
        bits |= static_cast<uint32_t>((eight * 0x0102040810204080ull) >> 56) << (8 * part);
    }
    return bits;
}

}  // namespace juice::softgpu

// The compact code that the interpreter runs: one fixed-size record per instruction, its operands
// resolved to byte offsets of lane vectors.
//
// A lane vector holds one register of all 32 lanes of a warp, lane 0 first; predicates are one
// 32-bit word, bit n for lane n. An operand is the offset of its lane vector from the frame of the
// running function, or, with kConstant set, from the program's constants (immediates, broadcast).
#pragma once

#include <cstdint>

namespace juice::softgpu {

struct Exec;
struct Instr;

inline constexpr unsigned kLanes = 32;
inline constexpr uint32_t kAllLanes = ~0u;

using Ref = uint32_t;
inline constexpr Ref kConstant = 1u << 31;
inline constexpr Ref kNoRef = kConstant - 1;

/// Executes one instruction for the lanes in `mask`, which is never 0.
using Handler = void (*)(Exec&, const Instr&, uint32_t mask);

struct Instr {
    Handler run = nullptr;
    Ref dst = kNoRef, a = kNoRef, b = kNoRef, c = kNoRef;
    int64_t imm = 0;
    Ref guard = kNoRef;      // predicate that must hold, or kNoRef
    uint32_t guardFlip = 0;  // ~0 for @!p
    uint32_t more = 0;       // first of the further operands in Code::more, where there are some
    uint32_t aux = 0;        // handler's own: lengths, spaces, branch target
    uint8_t n = 0;           // handler's own: count of vector elements
    uint8_t flags = 0;       // handler's own
};

/// Every function's frame begins with these lane vectors of u32: where to return to, the caller's
/// frame, and the base of the function's local memory.
inline constexpr Ref kReturnPc = 0;
inline constexpr Ref kReturnFrame = kLanes * 4;
inline constexpr Ref kLocalBase = 2 * kLanes * 4;
inline constexpr uint32_t kFrameHead = 3 * kLanes * 4;

}  // namespace juice::softgpu

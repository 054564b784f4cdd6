// From the address operands of an instruction to host pointers, checked.
#pragma once

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

// Register allocation: virtual registers to slots of a frame, so that a warp's working set stays
// in the processor's cache.
#pragma once

#include <cstdint>
#include <vector>

#include "native/softgpu/exec/code.h"
#include "native/softgpu/ptx/decoder.h"

namespace juice::softgpu::ptx {

struct Allocation {
    std::vector<Ref> slots;  // by virtual register: offset in the frame
    uint32_t frameBytes = 0;
};

/// Liveness over the instructions [base, code.instrs.size()) whose operands are virtual register
/// numbers and whose branch targets are resolved; then a linear scan. Lanes may be anywhere in the
/// function at once, which is sound: liveness is per lane, and so are the cells of a slot.
Allocation allocateSlots(const Code& code, uint32_t base, const std::vector<Meta>& metas,
                         const std::vector<Type>& registers);

}  // namespace juice::softgpu::ptx

// The part of a block's shared memory that CUDA's own device libraries use (cooperative groups
// keep barriers of several warps there), at %reserved_smem_offset_1. It stands behind the kernel's
// static part, and only in modules that ask for it: elsewhere what is beyond a kernel's own is a
// fault.
#pragma once

#include <cstddef>

namespace juice::softgpu {

inline constexpr size_t kReservedShared = 1024;

/// Where it begins behind `own` bytes of the kernel's.
constexpr size_t reservedSharedAt(size_t own) {
    return (own + 127) & ~size_t{127};
}

}  // namespace juice::softgpu

// Copies and fills of any shape, as work for a stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "native/abi/cuda_abi.h"
#include "native/softgpu/driver/stream.h"

namespace juice::softgpu {

/// One side of a copy: rows of bytes, `pitch` apart, in slices `slice` bytes apart.
struct Side {
    uint64_t address = 0;
    size_t pitch = 0;
    size_t slice = 0;
    /// The entry point said that this is device memory; otherwise it may also be the program's own.
    bool device = false;
};

/// `width` bytes of each row, `height` rows, `depth` slices.
struct Extent {
    size_t width = 0, height = 1, depth = 1;
};

/// Waits for the end or not.
enum class Wait : uint8_t { no, yes };

/// A copy in the stream's order. Device memory must be known to the driver, else 1. An asynchronous
/// copy from the program's pageable memory takes the source at the call, one into pageable memory
/// ends before the call returns; both as a real driver may do.
CUresult copy(Stream& stream, const Side& to, const Side& from, const Extent& extent, Wait wait);

/// Fills with a value of 1, 2 or 4 bytes; `extent.width` counts elements. 1 when the memory is not
/// the driver's, or not aligned to the element.
CUresult fill(Stream& stream, uint64_t address, size_t pitch, uint32_t value, size_t elementSize,
              const Extent& extent);

}  // namespace juice::softgpu

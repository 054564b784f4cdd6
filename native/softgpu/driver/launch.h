// Launches: what a real driver checks at the call is checked here, at the call; the rest happens in
// the stream.
#pragma once

#include "native/abi/cuda_abi.h"
#include "native/softgpu/driver/module.h"
#include "native/softgpu/driver/stream.h"

namespace juice::softgpu {

struct LaunchShape {
    Dim3 grid, block;
    unsigned dynamicShared = 0;  // bytes
    bool cooperative = false;
    Dim3 cluster;  // blocks; more than one is refused, as a real device refuses or as not supported
};

/// Results at the call: 1 for geometry, shared memory or parameters that cannot be, 701 for more
/// parameter bytes than the kernel takes, 720 for a cooperative grid that does not fit at once.
CUresult launch(Stream& stream, const Function& function, const LaunchShape& shape,
                void* const* parameters, void* const* extra);

/// How many blocks of this size one multiprocessor holds; 0 when not even one fits, or when the
/// function may not use so much dynamic shared memory.
int activeBlocks(const Function& function, unsigned threads, size_t dynamicShared);

}  // namespace juice::softgpu

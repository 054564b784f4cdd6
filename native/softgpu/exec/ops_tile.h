// The instruction families of kernels that work on tiles of data: products of small matrices, their
// way from and to shared memory, copies in the background and the barriers that these arrive at.
#pragma once

#include "native/softgpu/exec/ops.h"

namespace juice::softgpu {

std::span<const ptx::OpEntry> mmaOps();
std::span<const ptx::OpEntry> wmmaOps();
std::span<const ptx::OpEntry> fragmentOps();
std::span<const ptx::OpEntry> asyncOps();
std::span<const ptx::OpEntry> mbarrierOps();

/// cp.async.mbarrier.arrive, its first two words taken.
void decodeCopyArrival(ptx::FunctionDecoder& d);

}  // namespace juice::softgpu

// Blocks: setting one up and running it for a while.
#pragma once

#include "native/softgpu/exec/state.h"

namespace juice::softgpu {

enum class BlockState : uint8_t { finished, yielded, stopped };

/// Makes `block` the linear-th block of the grid, its threads at the kernel's entry. Reuses the
/// memory that it already has.
void startBlock(Block& block, Grid& grid, uint64_t linear);

/// Gives every warp of the block turns until the block ends, the launch stops, or `turns` turns
/// have been used up. A block whose threads wait for each other in vain fails the launch.
BlockState runBlock(Exec& x, Block& block, unsigned turns);

}  // namespace juice::softgpu

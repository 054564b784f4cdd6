// Functions that the CUDA runtime of the device provides to kernels: vprintf, __assertfail, malloc,
// free and cudaGraphSetConditional.
#pragma once

#include <string_view>

#include "native/softgpu/exec/state.h"

namespace juice::softgpu {

/// The handler of an extern function, or null. It finds the arguments, laid out as the callee's
/// results and formals, at the lane's local base plus `aux`.
Handler findBuiltin(std::string_view name);

}  // namespace juice::softgpu

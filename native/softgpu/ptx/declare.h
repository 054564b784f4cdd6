// Declarations that stand both at module scope and inside functions: variables and parameters.
#pragma once

#include "native/softgpu/ptx/ast.h"
#include "native/softgpu/ptx/cursor.h"

namespace juice::softgpu::ptx {

/// Largest variable, in bytes: what a text may make the loader allocate.
inline constexpr uint64_t kMaxVariable = 1ull << 31;

/// Reads ".align 4 .b8 a[16] = {...}, b;" after its state space, up to and with the semicolon.
std::vector<Variable> parseVariables(Cursor& at, Space space, bool isExtern);

/// Reads one ".param .align 8 .b8 name[24]" without the leading ".param"; `_` is a name here.
Formal parseFormal(Cursor& at);

}  // namespace juice::softgpu::ptx

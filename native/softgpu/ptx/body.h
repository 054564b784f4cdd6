// The body of a function: scopes, registers, labels and instructions.
#pragma once

#include "native/softgpu/ptx/ast.h"
#include "native/softgpu/ptx/cursor.h"

namespace juice::softgpu::ptx {

/// Reads from the opening brace to the closing one. `function` already has its formals; those
/// that are registers have been given ids.
void parseBody(Cursor& at, Function& function);

}  // namespace juice::softgpu::ptx

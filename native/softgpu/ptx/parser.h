// PTX text to a Module. Throws Refusal, which names the line, on anything malformed.
#pragma once

#include "native/softgpu/ptx/ast.h"

namespace juice::softgpu::ptx {

/// Newest PTX ISA and architecture that the software GPU takes.
inline constexpr uint32_t kNewestVersion = 90;
inline constexpr uint32_t kNewestTarget = 90;

Module parse(std::string_view source);

}  // namespace juice::softgpu::ptx

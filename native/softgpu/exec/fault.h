// What went wrong in a launch, in words: the report that the driver writes to stderr.
#pragma once

#include <string>

#include "native/softgpu/exec/state.h"

namespace juice::softgpu {

/// "(1,0,0)"
std::string coordinates(const Dim3& place);
std::string hex(uint64_t value);

/// The kernel of a launch as its source has it: "saxpy(int, float*) (_Z5saxpyiPf)".
std::string kernelName(const Grid& grid);
/// An instruction by its source file and line, if the PTX has them, its PTX line and its text:
/// "saxpy.cu:12, PTX line 34: ld.global.f32 %f1, [%rd4]".
std::string placeOf(const Code& code, uint32_t pc);
/// What the instruction does to memory: "read", "write", "atomic operation" or "access".
const char* attemptOf(const Code& code, uint32_t pc);
/// Where an address lies that belongs to no live allocation: ", 16 bytes past the end of the
/// 1024-byte allocation at 0x7f0000000000", or something else that begins with a comma, or nothing.
std::string whereabouts(const Grid& grid, uint64_t address);

/// All that is known of the grid's fault: the text for LaunchResult::report.
std::string report(const Grid& grid);

}  // namespace juice::softgpu

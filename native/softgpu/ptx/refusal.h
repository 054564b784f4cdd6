// How the parser and the decoder turn a program down. Thrown only inside Program::load, which
// catches it and answers with a LoadError.
#pragma once

#include <cstdint>
#include <string>

namespace juice::softgpu::ptx {

inline constexpr int kInvalidPtx = 218;          // CUDA_ERROR_INVALID_PTX
inline constexpr int kUnsupportedVersion = 222;  // CUDA_ERROR_UNSUPPORTED_PTX_VERSION
inline constexpr int kInvalidImage = 200;        // CUDA_ERROR_INVALID_IMAGE

struct Refusal {
    int curesult;
    std::string message;
};

/// "line 41: ..." with CUDA_ERROR_INVALID_PTX.
[[noreturn]] inline void refuse(uint32_t line, const std::string& what) {
    throw Refusal{kInvalidPtx, "line " + std::to_string(line) + ": " + what};
}

}  // namespace juice::softgpu::ptx

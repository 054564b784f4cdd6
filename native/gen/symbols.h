// What a library that exports the driver API (juice_add_driver_exports) or NVML
// (juice_add_nvml_exports) defines, and what it gets.
#pragma once

#include "native/abi/cuda_result.h"

/// Defined by each library: names the entry point once on stderr and returns
/// CUDA_ERROR_NOT_SUPPORTED. Called by every entry point that the library does not implement.
extern "C" CUresult juice_unsupported(const char* name);

/// The same for NVML; returns NVML_ERROR_NOT_SUPPORTED (3).
extern "C" int juice_nvml_unsupported(const char* name);

namespace juice {

/// The library's own definition of an exported function of the driver API, by its exact exported
/// name; null for anything else. Never another library's, whatever was loaded before.
void* symbolAddress(const char* name);

}  // namespace juice

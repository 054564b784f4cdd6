// cuGetProcAddress as a real driver of CUDA 13.0 answers it: by base name, CUDA version and flags,
// because one name may stand for several ABIs.
#pragma once

#include <cstdint>

#include "native/abi/cuda_abi.h"

namespace juice {

/// The driver version that the answers were recorded from; a request for a newer one is invalid.
constexpr int kProcAddressVersion = 13000;

/// Finds the exported symbol that stands for `name` in CUDA `cudaVersion` (1000 * major + 10 *
/// minor). `flags`: 0 and 1 legacy default stream, 2 per-thread default stream
/// (CUdriverProcAddress_flags).
///
/// Answers as cuGetProcAddress_v2 does: the return value is its result, `*symbol` the exported name
/// or null, `*status` its CUdriverProcAddressQueryResult. The first version of the entry point has
/// no status: it turns one that is not 0 into CUDA_ERROR_NOT_FOUND and leaves its output alone.
CUresult resolveProc(const char* name, int cudaVersion, uint64_t flags, const char** symbol,
                     int* status);

}  // namespace juice

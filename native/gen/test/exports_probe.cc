// A driver that implements two entries and nothing else, to see what the generated exports add.
#include <string>

#include "native/gen/cuda_api.h"
#include "native/gen/symbols.h"

namespace {
std::string lastUnsupported;  // NOLINT: read by the test through probe's cuGetErrorName
}

CUresult cuDriverGetVersion(int* version) {
    *version = 4242;
    return CUDA_SUCCESS;
}

// Gives the test what it cannot see from outside: the last name that was refused, and for code 1
// the library's own address of cuDriverGetVersion.
CUresult cuGetErrorName(CUresult code, const char** out) {
#ifndef JUICE_NVML_PROBE
    if (code == CUDA_ERROR_INVALID_VALUE) {
        *out = static_cast<const char*>(juice::symbolAddress("cuDriverGetVersion"));
        return CUDA_SUCCESS;
    }
#endif
    *out = lastUnsupported.c_str();
    return CUDA_SUCCESS;
}

extern "C" CUresult juice_unsupported(const char* name) {
    lastUnsupported = name;
    return CUDA_ERROR_NOT_SUPPORTED;
}

extern "C" int juice_nvml_unsupported(const char*) {
    return 3;
}

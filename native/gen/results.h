// Names and sentences of the driver API's results, as cuGetErrorName and cuGetErrorString answer.
#pragma once

#include "native/abi/cuda_result.h"

namespace juice {

/// "CUDA_ERROR_INVALID_VALUE"; null for a code that CUDA 13.0 does not define.
const char* resultName(CUresult code);

/// "invalid argument"; null for a code that CUDA 13.0 does not define.
const char* resultSentence(CUresult code);

}  // namespace juice

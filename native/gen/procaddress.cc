#include "native/gen/procaddress.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace juice {
namespace {

struct Row {
    int version;
    const char* symbol;
    int status;
};
struct Range {
    uint16_t first, count;
};
struct Name {
    const char* name;
    Range normal, perThread;
};

#include "native/gen/procaddress.inc"

const Name* find(const char* name) {
    const auto* found = std::lower_bound(
        std::begin(kNames), std::end(kNames), name,
        [](const Name& row, const char* wanted) { return std::strcmp(row.name, wanted) < 0; });
    return found != std::end(kNames) && std::strcmp(found->name, name) == 0 ? found : nullptr;
}

}  // namespace

CUresult resolveProc(const char* name, int cudaVersion, uint64_t flags, const char** symbol,
                     int* status) {
    *symbol = nullptr;
    *status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    if (name == nullptr || cudaVersion > kProcAddressVersion ||
        flags > CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const Name* row = find(name);
    if (row == nullptr) return CUDA_SUCCESS;
    const Range range =
        flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM ? row->perThread : row->normal;
    // Each row holds until the next; before the first the version is too old for the name.
    *status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    for (const Row* at = kRows + range.first; at != kRows + range.first + range.count; ++at) {
        if (cudaVersion < at->version) break;
        *symbol = at->symbol;
        *status = at->status;
    }
    return CUDA_SUCCESS;
}

}  // namespace juice

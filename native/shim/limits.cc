// Limits and preferences of a context.
#include "native/gen/cuda_api.h"
#include "native/shim/send.h"

namespace juice::shim {
namespace {

constexpr int kLastLimit = CU_LIMIT_PERSISTING_L2_CACHE_SIZE;

/// What the device says for a limit nobody has set; false when it has no such limit.
bool fromDevice(const Context& context, int limit, size_t& value) {
    const auto& limits = session::device(context.device)->limits;
    const auto found = limits.find(limit);
    if (found == limits.end()) return false;
    value = found->second;
    return true;
}

/// The error for a limit that is not, or success.
CUresult check(const Context& context, CUlimit limit, size_t& value) {
    if (limit < 0 || limit > kLastLimit) {
        // A newer device may have limits that this release has no name for.
        return fromDevice(context, limit, value) && limit < kLimits ? CUDA_SUCCESS
                                                                    : CUDA_ERROR_INVALID_VALUE;
    }
    return fromDevice(context, limit, value) ? CUDA_SUCCESS : CUDA_ERROR_UNSUPPORTED_LIMIT;
}

}  // namespace
}  // namespace juice::shim

using namespace juice::shim;  // NOLINT: every definition below is an entry point
namespace session = juice::shim::session;
using juice::Op;

CUresult cuCtxGetLimit(size_t* pvalue, CUlimit limit) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    if (pvalue == nullptr) return CUDA_ERROR_INVALID_VALUE;
    size_t value = 0;
    if (const CUresult result = check(*context, limit, value)) return result;
    const int64_t set = context->limits[static_cast<size_t>(limit)];
    *pvalue = set >= 0 ? static_cast<size_t>(set) : value;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    size_t ignored = 0;
    if (const CUresult result = check(*context, limit, ignored)) return result;
    Outgoing call(Op::cuCtxSetLimit);
    call.put(limit).put(value);
    const CUresult result = call.wait().result();
    if (result != CUDA_SUCCESS) return result;
    // Stacks come in units of sixteen bytes.
    if (limit == CU_LIMIT_STACK_SIZE) value = (value + 15) & ~size_t{15};
    context->limits[static_cast<size_t>(limit)] = static_cast<int64_t>(value);
    forgetCached();
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache* pconfig) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    if (pconfig == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *pconfig = static_cast<CUfunc_cache>(context->cacheConfig.load());
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    if (config < CU_FUNC_CACHE_PREFER_NONE || config > CU_FUNC_CACHE_PREFER_EQUAL)
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = Outgoing(Op::cuCtxSetCacheConfig).put(config).post();
    if (result == CUDA_SUCCESS) context->cacheConfig = static_cast<int>(config);
    return result;
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig* pConfig) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    if (pConfig == nullptr) return CUDA_ERROR_INVALID_VALUE;
    // Banks of four bytes: no device since Maxwell has others.
    *pConfig = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    if (config < CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE ||
        config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
        return CUDA_ERROR_INVALID_VALUE;
    return Outgoing(Op::cuCtxSetSharedMemConfig).put(config).post();
}

CUresult cuCtxGetStreamPriorityRange(int* leastPriority, int* greatestPriority) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    const auto* const device = session::device(context->device);
    if (leastPriority != nullptr) *leastPriority = device->leastPriority;
    if (greatestPriority != nullptr) *greatestPriority = device->greatestPriority;
    return CUDA_SUCCESS;
}

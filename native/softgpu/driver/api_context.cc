// Contexts: the stack of each thread, limits, synchronisation.
#include "native/softgpu/driver/guard.h"
#include "native/tables/tables.h"

using namespace juice::softgpu;

namespace {

constexpr unsigned kSchedulings[] = {CU_CTX_SCHED_AUTO, CU_CTX_SCHED_SPIN, CU_CTX_SCHED_YIELD,
                                     CU_CTX_SCHED_BLOCKING_SYNC};

bool validFlags(unsigned flags) {
    if ((flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) != 0) return false;
    for (const unsigned scheduling : kSchedulings) {
        if ((flags & CU_CTX_SCHED_MASK) == scheduling) return true;
    }
    return false;
}

/// What a real driver answers for contexts of the second ABI on.
constexpr unsigned kContextApiVersion = 3020;

/// Priorities as a real device has them: 0 is the least, -5 the greatest.
constexpr int kLeastPriority = 0;
constexpr int kGreatestPriority = -5;

}  // namespace

CUresult cuCtxCreate_v2(CUcontext* out, unsigned int flags, CUdevice ordinal) {
    return withDevice(ordinal, [&](Device& device) -> CUresult {
        if (out == nullptr || !validFlags(flags)) return CUDA_ERROR_INVALID_VALUE;
        if (const CUresult failed = device.failure()) return failed;
        auto context = Context::create(device, flags);
        *out = handleOf(*context);
        ContextStack::ofThread().push(std::move(context));
        return CUDA_SUCCESS;
    });
}

CUresult cuCtxCreate(CUcontext* out, unsigned int flags, CUdevice ordinal) {
    return cuCtxCreate_v2(out, flags, ordinal);
}

CUresult cuCtxCreate_v3(CUcontext* out, CUexecAffinityParam*, int affinities, unsigned int flags,
                        CUdevice ordinal) {
    if (affinities != 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    return cuCtxCreate_v2(out, flags, ordinal);
}

CUresult cuCtxCreate_v4(CUcontext* out, CUctxCreateParams* parameters, unsigned int flags,
                        CUdevice ordinal) {
    if (parameters != nullptr) {
        if (parameters->numExecAffinityParams != 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
        if (parameters->cigParams != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    }
    return cuCtxCreate_v2(out, flags, ordinal);
}

CUresult cuCtxDestroy_v2(CUcontext handle) {
    return withDriver([&] {
        if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
        const auto context = find<Context>(handle);
        if (!context || context->primary()) return CUDA_ERROR_INVALID_CONTEXT;
        if (!context->active()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
        context->reset();
        ContextStack::ofThread().drop(*context);
        return CUDA_SUCCESS;
    });
}

CUresult cuCtxDestroy(CUcontext handle) {
    return cuCtxDestroy_v2(handle);
}

CUresult cuCtxAttach(CUcontext* out, unsigned int flags) {
    return withContext([&](Context& context) {
        if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
        context.attach(1);
        *out = handleOf(context);
        return CUDA_SUCCESS;
    });
}

CUresult cuCtxDetach(CUcontext handle) {
    return withContext([&](Context& context) -> CUresult {
        // Only the current context may be detached from.
        if (handle != handleOf(context)) return CUDA_ERROR_INVALID_CONTEXT;
        return context.attach(-1) > 0 ? CUDA_SUCCESS : cuCtxDestroy_v2(handle);
    });
}

CUresult cuCtxPushCurrent_v2(CUcontext handle) {
    return withDriver([&] {
        if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
        auto context = find<Context>(handle);
        if (!context) return CUDA_ERROR_INVALID_CONTEXT;
        ContextStack::ofThread().push(std::move(context));
        return CUDA_SUCCESS;
    });
}

CUresult cuCtxPushCurrent(CUcontext handle) {
    return cuCtxPushCurrent_v2(handle);
}

CUresult cuCtxPopCurrent_v2(CUcontext* out) {
    return withDriver([&] {
        const auto context = ContextStack::ofThread().pop();
        if (!context) return CUDA_ERROR_INVALID_CONTEXT;
        if (out != nullptr) *out = handleOf(*context);
        return CUDA_SUCCESS;
    });
}

CUresult cuCtxPopCurrent(CUcontext* out) {
    return cuCtxPopCurrent_v2(out);
}

CUresult cuCtxSetCurrent(CUcontext handle) {
    return withDriver([&] {
        auto context = find<Context>(handle);
        if (handle != nullptr && !context) return CUDA_ERROR_INVALID_CONTEXT;
        ContextStack::ofThread().set(std::move(context));
        return CUDA_SUCCESS;
    });
}

CUresult cuCtxGetCurrent(CUcontext* out) {
    return withDriver([&] {
        if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
        const auto context = ContextStack::ofThread().current();
        *out = context ? handleOf(*context) : nullptr;
        return CUDA_SUCCESS;
    });
}

CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext handle) {
    return withDriver([&] {
        const auto context =
            handle == nullptr ? ContextStack::ofThread().current() : find<Context>(handle);
        if (!context) return CUDA_ERROR_INVALID_CONTEXT;
        if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
        *device = context->device().ordinal();
        return CUDA_SUCCESS;
    });
}

CUresult cuCtxGetDevice(CUdevice* device) {
    return cuCtxGetDevice_v2(device, nullptr);
}

CUresult cuCtxGetFlags(unsigned int* flags) {
    return withContext([&](Context& context) {
        if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
        // Host memory can be mapped in any context; primary ones say so.
        *flags = context.flags() | (context.primary() ? unsigned{CU_CTX_MAP_HOST} : 0U);
        return CUDA_SUCCESS;
    });
}

CUresult cuCtxSetFlags(unsigned int flags) {
    return withContext([&](Context& context) {
        if (!validFlags(flags)) return CUDA_ERROR_INVALID_VALUE;
        context.flags() = flags;
        return CUDA_SUCCESS;
    });
}

CUresult cuCtxGetId(CUcontext handle, unsigned long long* id) {
    return withContextOr(handle, [&](Context& context) {
        if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
        *id = context.id();
        return CUDA_SUCCESS;
    });
}

CUresult cuCtxGetApiVersion(CUcontext handle, unsigned int* version) {
    return withContextOr(handle, [&](Context&) {
        if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
        *version = kContextApiVersion;
        return CUDA_SUCCESS;
    });
}

CUresult cuCtxSynchronize_v2(CUcontext handle) {
    return withContextOr(handle, [](Context& context) -> CUresult {
        if (const CUresult refused = refuseSynchronize(context)) return refused;
        context.synchronize();
        return context.failure();
    });
}

CUresult cuCtxSynchronize() {
    return cuCtxSynchronize_v2(nullptr);
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
    return withContext([&](Context& context) { return context.setLimit(limit, value); });
}

CUresult cuCtxGetLimit(size_t* value, CUlimit limit) {
    return withContext([&](Context& context) {
        return value == nullptr ? CUDA_ERROR_INVALID_VALUE : context.limit(limit, *value);
    });
}

CUresult cuCtxGetCacheConfig(CUfunc_cache* config) {
    return withContext([&](Context& context) {
        if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
        *config = context.cacheConfig;
        return CUDA_SUCCESS;
    });
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
    return withContext([&](Context& context) {
        if (config < CU_FUNC_CACHE_PREFER_NONE || config > CU_FUNC_CACHE_PREFER_EQUAL) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        context.cacheConfig = config;
        return CUDA_SUCCESS;
    });
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig* config) {
    return withContext([&](Context& context) {
        if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
        *config = context.sharedConfig;
        return CUDA_SUCCESS;
    });
}

/// Bank sizes are fixed, as on every device of today; the wish is accepted and changes nothing.
CUresult cuCtxSetSharedMemConfig(CUsharedconfig config) {
    return withContext([&](Context&) {
        const bool known = config >= CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE &&
                           config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE;
        return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    });
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    return withContext([&](Context&) {
        if (least != nullptr) *least = kLeastPriority;
        if (greatest != nullptr) *greatest = kGreatestPriority;
        return CUDA_SUCCESS;
    });
}

CUresult cuCtxResetPersistingL2Cache() {
    return withContext([](Context&) { return CUDA_SUCCESS; });
}

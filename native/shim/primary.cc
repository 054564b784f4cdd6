// Primary contexts: one for each device, counted here; the worker hears of the first retain and of
// the end.
#include <array>
#include <mutex>

#include "native/gen/cuda_api.h"
#include "native/shim/context.h"
#include "native/shim/send.h"

namespace juice::shim {
namespace {

struct Primary {
    // Recursive: what the runtime keeps for a context is destroyed with it, and calls back.
    std::recursive_mutex mutex;
    Context* context = nullptr;
    int retains = 0;
};
Primary& primaryOf(int ordinal) {
    static auto& all = *new std::array<Primary, kMaxDevices>;
    return all[static_cast<size_t>(ordinal)];
}

constexpr unsigned kPrimaryFlags = 0xff;

/// A device of the program, or the error that says there is none.
CUresult checkDevice(int ordinal) {
    if (const CUresult result = session::initialised()) return result;
    const bool known = session::device(ordinal) != nullptr && ordinal < kMaxDevices;
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

/// Under the lock.
Context* handleOf(Primary& primary, int ordinal) {
    if (primary.context != nullptr) return primary.context;
    auto* const context = new Context;
    context->kind = ObjectKind::context;
    context->device = ordinal;
    context->primary = true;
    for (auto& limit : context->limits) limit = -1;
    if (handles::mint(*context) == nullptr) return nullptr;
    return primary.context = context;
}

/// Under the lock.
CUresult activate(Primary& primary, int ordinal) {
    if (const CUresult result = session::connect()) return result;
    Context& context = *primary.context;
    const int32_t device = session::workerOrdinal(ordinal);
    if (context.flags != 0) {
        const CUresult result = post(Op::cuDevicePrimaryCtxSetFlags_v2, nullptr,
                                     bytesOfCall(custom::PrimaryFlags{device, context.flags}));
        if (result != CUDA_SUCCESS) return result;
    }
    Reply reply;
    const CUresult result =
        call(Op::cuDevicePrimaryCtxRetain, nullptr,
             bytesOfCall(custom::PrimaryRetain{context.id, device, 0}), reply, Deferred::keep);
    if (result == CUDA_SUCCESS) context.alive = true;
    return result;
}

/// Under the lock. The results of the last calls are not the program's concern any more: as with a
/// real driver a release or a reset succeeds even after the context has died of an error.
void end(Primary& primary, Op op) {
    Context& context = *primary.context;
    endContext(context);
    context.alive = false;
    context.flags = 0;
    post(op, nullptr, bytesOfCall(custom::PrimaryEnd{session::workerOrdinal(context.device), 0}));
}

CUresult release(int ordinal) {
    if (const CUresult result = checkDevice(ordinal)) return result;
    Primary& primary = primaryOf(ordinal);
    const std::lock_guard lock(primary.mutex);
    if (primary.retains == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (--primary.retains == 0 && primary.context->alive)
        end(primary, Op::cuDevicePrimaryCtxRelease_v2);
    return CUDA_SUCCESS;
}

CUresult reset(int ordinal) {
    if (const CUresult result = checkDevice(ordinal)) return result;
    Primary& primary = primaryOf(ordinal);
    const std::lock_guard lock(primary.mutex);
    // Retains stay counted, but only a new one makes the context live again.
    if (primary.context != nullptr && primary.context->alive)
        end(primary, Op::cuDevicePrimaryCtxReset_v2);
    return CUDA_SUCCESS;
}

CUresult setFlags(int ordinal, unsigned flags) {
    if (const CUresult result = checkDevice(ordinal)) return result;
    if ((flags & ~kPrimaryFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    Primary& primary = primaryOf(ordinal);
    const std::lock_guard lock(primary.mutex);
    if (handleOf(primary, ordinal) == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    primary.context->flags = flags;
    if (!primary.context->alive) return CUDA_SUCCESS;
    return post(Op::cuDevicePrimaryCtxSetFlags_v2, nullptr,
                bytesOfCall(custom::PrimaryFlags{session::workerOrdinal(ordinal), flags}));
}

}  // namespace

Context* primaryContext(int ordinal) {
    Primary& primary = primaryOf(ordinal);
    const std::lock_guard lock(primary.mutex);
    return handleOf(primary, ordinal);
}

}  // namespace juice::shim

using namespace juice::shim;  // NOLINT: every definition below is an entry point

CUresult cuDevicePrimaryCtxRetain(CUcontext* pctx, CUdevice dev) {
    if (const CUresult result = checkDevice(dev)) return result;
    if (pctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Primary& primary = primaryOf(dev);
    const std::lock_guard lock(primary.mutex);
    if (handleOf(primary, dev) == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    if (!primary.context->alive)
        if (const CUresult result = activate(primary, dev)) return result;
    ++primary.retains;
    *pctx = static_cast<CUcontext>(handles::of(*primary.context));
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice dev) {
    return release(dev);
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev) {
    return release(dev);
}
CUresult cuDevicePrimaryCtxReset(CUdevice dev) {
    return reset(dev);
}
CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev) {
    return reset(dev);
}
CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags) {
    return setFlags(dev, flags);
}
CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags) {
    return setFlags(dev, flags);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int* flags, int* active) {
    if (const CUresult result = checkDevice(dev)) return result;
    if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
    // Asked thousands of times a second: no lock once there is something to tell.
    const Context* const context = primaryContext(dev);
    *flags = context == nullptr ? 0 : context->flags.load();
    *active = context != nullptr && context->alive ? 1 : 0;
    return CUDA_SUCCESS;
}

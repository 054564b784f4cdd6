// Contexts of a program's own, and what all contexts answer.
#include "native/shim/context.h"

#include <atomic>

#include "native/gen/cuda_api.h"
#include "native/gen/symbols.h"
#include "native/shim/event.h"
#include "native/shim/graph_objects.h"
#include "native/shim/host_memory.h"
#include "native/shim/image_load.h"
#include "native/shim/say.h"
#include "native/shim/send.h"
#include "native/tables/tables.h"

namespace juice::shim {
namespace {

/// CU_CTX_SCHED_*, MAP_HOST, LMEM_RESIZE_TO_MAX, COREDUMP_ENABLE, USER_COREDUMP_ENABLE, SYNC_MEMOPS
constexpr unsigned kContextFlags = 0xff;

/// Streams, events and executable graphs of the context given as `argument`; modules and functions
/// are image_load's.
void forgetIfOf(Object& object, void* argument) {
    if (object.kind == ObjectKind::stream && static_cast<Stream&>(object).context == argument) {
        handles::drop(object);
        Recycler<Stream>::get().give(static_cast<Stream*>(&object));
    } else if (object.kind == ObjectKind::event &&
               static_cast<Event&>(object).context == argument) {
        handles::drop(object);
        Recycler<Event>::get().give(static_cast<Event*>(&object));
    } else if (object.kind == ObjectKind::graphExec &&
               static_cast<GraphExec&>(object).context == argument) {
        handles::drop(object);
        Recycler<GraphExec>::get().give(static_cast<GraphExec*>(&object));
    }
}

CUresult createContext(CUcontext* pctx, unsigned flags, CUdevice device) {
    if (const CUresult result = session::initialised()) return result;
    if (pctx == nullptr || (flags & ~kContextFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    if (session::device(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (const CUresult result = session::connect()) return result;
    auto* const context = new Context;  // never freed: threads may have it current for ever
    context->kind = ObjectKind::context;
    context->device = device;
    context->flags = flags;
    for (auto& limit : context->limits) limit = -1;
    if (handles::mint(*context) == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    const custom::ContextCreate create{context->id, flags, session::workerOrdinal(device)};
    Reply reply;
    const CUresult result =
        call(Op::cuCtxCreate_v2, nullptr, bytesOfCall(create), reply, Deferred::keep);
    if (result != CUDA_SUCCESS) {
        handles::drop(*context);
        return result;
    }
    context->alive = true;
    thread().contexts.push_back(context);
    *pctx = static_cast<CUcontext>(handles::of(*context));
    return CUDA_SUCCESS;
}

CUresult destroyContext(CUcontext handle) {
    if (const CUresult result = session::initialised()) return result;
    if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Context* const context = find<Context>(handle);
    if (context == nullptr || context->primary) return CUDA_ERROR_INVALID_CONTEXT;
    if (const CUresult result = session::sticky()) return result;
    if (!context->alive.exchange(false)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (thread().current() == context) thread().contexts.pop_back();
    endContext(*context);
    // The handle stays: it names a destroyed context, which is another error than none at all.
    return post(Op::cuCtxDestroy_v2, nullptr, bytesOfCall(custom::ContextDestroy{context->id}));
}

}  // namespace

void endContext(Context& context) {
    tables::contextGone(handles::of(context));
    for (const Range& range : ranges::removeOf(&context))
        if (range.onHost()) forgetHostRange(range);
    forgetModulesOf(context);
    handles::forEach(forgetIfOf, &context);
    for (auto& limit : context.limits) limit = -1;
    context.cacheConfig = 0;
    forgetCached();
}

CUresult contextOf(CUcontext handle, Context*& context) {
    if (const CUresult result = session::initialised()) return result;
    context = handle == nullptr ? thread().current() : find<Context>(handle);
    return context == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

}  // namespace juice::shim

using namespace juice::shim;  // NOLINT: every definition below is an entry point
namespace session = juice::shim::session;
using juice::Op;
using juice::Reply;

CUresult cuCtxCreate_v2(CUcontext* pctx, unsigned int flags, CUdevice dev) {
    return createContext(pctx, flags, dev);
}

CUresult cuCtxCreate_v3(CUcontext* pctx, CUexecAffinityParam* paramsArray, int numParams,
                        unsigned int flags, CUdevice dev) {
    if (numParams != 0) return juice_unsupported("cuCtxCreate_v3 with execution affinity");
    return createContext(pctx, flags, dev);
}

CUresult cuCtxCreate_v4(CUcontext* pctx, CUctxCreateParams* ctxCreateParams, unsigned int flags,
                        CUdevice dev) {
    if (ctxCreateParams != nullptr &&
        (ctxCreateParams->numExecAffinityParams != 0 || ctxCreateParams->cigParams != nullptr))
        return juice_unsupported("cuCtxCreate_v4 with execution affinity or graphics");
    return createContext(pctx, flags, dev);
}

CUresult cuCtxDestroy(CUcontext ctx) {
    return destroyContext(ctx);
}
CUresult cuCtxDestroy_v2(CUcontext ctx) {
    return destroyContext(ctx);
}

// The stack of contexts of each thread is the shim's alone: the worker makes a frame's context
// current before the call.

CUresult cuCtxPushCurrent_v2(CUcontext ctx) {
    if (const CUresult result = session::initialised()) return result;
    if (ctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Context* const context = find<Context>(ctx);
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    thread().contexts.push_back(context);
    return CUDA_SUCCESS;
}
CUresult cuCtxPushCurrent(CUcontext ctx) {
    return cuCtxPushCurrent_v2(ctx);
}

CUresult cuCtxPopCurrent_v2(CUcontext* pctx) {
    if (const CUresult result = session::initialised()) return result;
    Context* const context = thread().current();
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    thread().contexts.pop_back();
    if (pctx != nullptr) *pctx = static_cast<CUcontext>(handles::of(*context));
    return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent(CUcontext* pctx) {
    return cuCtxPopCurrent_v2(pctx);
}

CUresult cuCtxSetCurrent(CUcontext ctx) {
    if (const CUresult result = session::initialised()) return result;
    auto& stack = thread().contexts;
    Context* const context = ctx == nullptr ? nullptr : find<Context>(ctx);
    if (ctx != nullptr && context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (!stack.empty()) stack.pop_back();
    if (context != nullptr) stack.push_back(context);
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* pctx) {
    if (const CUresult result = session::initialised()) return result;
    if (pctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Context* const context = thread().current();
    *pctx = context == nullptr ? nullptr : static_cast<CUcontext>(handles::of(*context));
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext ctx) {
    Context* context = nullptr;
    if (const CUresult result = contextOf(ctx, context)) return result;
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *device = context->device;
    return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice* device) {
    return cuCtxGetDevice_v2(device, nullptr);
}

CUresult cuCtxGetFlags(unsigned int* flags) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    // A primary context always maps host memory, and says so here, though not in its state.
    constexpr unsigned kMapHost = 8;
    *flags = context->flags | (context->primary ? kMapHost : 0);
    return CUDA_SUCCESS;
}

/// How the driver waits is the worker's affair; the program reads back what it has set.
CUresult cuCtxSetFlags(unsigned int flags) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    if ((flags & ~kContextFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    context->flags = flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext ctx, unsigned long long* ctxId) {
    Context* context = nullptr;
    if (const CUresult result = contextOf(ctx, context)) return result;
    if (ctxId == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *ctxId = context->id;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int* version) {
    Context* context = nullptr;
    if (const CUresult result = contextOf(ctx, context)) return result;
    if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *version = 3020;  // what drivers have said ever since
    return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize_v2(CUcontext ctx) {
    Context* context = nullptr;
    if (const CUresult result = contextOf(ctx, context)) return result;
    if (const CUresult result = session::sticky()) return result;
    if (!context->alive) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    const uint64_t before = lastTicket();
    Reply reply;
    const CUresult result = call(Op::cuCtxSynchronize, context, {}, reply);
    if (result == CUDA_SUCCESS) raise(context->completed, before);
    return result;
}
CUresult cuCtxSynchronize() {
    return cuCtxSynchronize_v2(nullptr);
}

CUresult cuCtxAttach(CUcontext* pctx, unsigned int flags) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    if (pctx == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    ++context->attached;
    *pctx = static_cast<CUcontext>(handles::of(*context));
    return CUDA_SUCCESS;
}

CUresult cuCtxDetach(CUcontext ctx) {
    Context* context = nullptr;
    if (const CUresult result = contextOf(ctx, context)) return result;
    if (context != thread().current()) return CUDA_ERROR_INVALID_CONTEXT;
    if (--context->attached > 0) return CUDA_SUCCESS;
    return destroyContext(static_cast<CUcontext>(handles::of(*context)));
}

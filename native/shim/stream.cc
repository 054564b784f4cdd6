// Streams: life, facts, waiting.
#include <algorithm>

#include "native/gen/cuda_api.h"
#include "native/shim/event.h"
#include "native/shim/send.h"

namespace juice::shim {
namespace {

constexpr unsigned kNonBlocking = 1;

/// A stream that is asked about: its wire form, its object when it was minted, and its context: its
/// own, or the thread's current one for a default stream.
struct Asked {
    uint64_t wire = 0;
    Stream* stream = nullptr;
    Context* context = nullptr;
};

CUresult streamOf(CUstream handle, bool perThread, Asked& asked) {
    if (const CUresult result = session::initialised()) return result;
    const CUresult known = wireStream(handle, perThread, asked.wire, &asked.stream);
    if (asked.stream == nullptr) {
        if (const CUresult result = enter(asked.context)) return result;
        return known;
    }
    asked.context = asked.stream->context;
    return session::sticky();
}

CUresult create(CUstream* out, unsigned flags, int priority, bool withPriority) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    if (out == nullptr || (flags & ~kNonBlocking) != 0) return CUDA_ERROR_INVALID_VALUE;
    const DeviceSnapshot* const device = session::device(context->device);
    Stream* const stream = Recycler<Stream>::get().take();
    stream->kind = ObjectKind::stream;
    stream->context = context;
    stream->flags = flags;
    // Numerically lower is more urgent: greatest <= least. Others are moved to the nearest.
    stream->priority =
        std::max(device->greatestPriority, std::min(device->leastPriority, priority));
    stream->completed = 0;
    stream->capture = 0;
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    if (void* const handle = handles::mint(*stream)) {
        Writer payload;
        payload.put(stream->id).put(flags);
        if (withPriority) payload.put(stream->priority);
        result = post(withPriority ? Op::cuStreamCreateWithPriority : Op::cuStreamCreate, context,
                      payload.view());
        if (result == CUDA_SUCCESS) {
            *out = static_cast<CUstream>(handle);
            return result;
        }
        handles::drop(*stream);
    }
    Recycler<Stream>::get().give(stream);
    return result;
}

CUresult flagsOf(CUstream handle, bool perThread, unsigned* flags) {
    Asked asked;
    if (const CUresult result = streamOf(handle, perThread, asked)) return result;
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = asked.stream == nullptr ? 0 : asked.stream->flags;
    return CUDA_SUCCESS;
}

CUresult priorityOf(CUstream handle, bool perThread, int* priority) {
    Asked asked;
    if (const CUresult result = streamOf(handle, perThread, asked)) return result;
    if (priority == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *priority = asked.stream == nullptr ? 0 : asked.stream->priority;
    return CUDA_SUCCESS;
}

/// Unique in the process: default streams belong to a context, per-thread ones to a thread as well.
CUresult idOf(CUstream handle, bool perThread, unsigned long long* id) {
    Asked asked;
    if (const CUresult result = streamOf(handle, perThread, asked)) return result;
    if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const uint64_t mine = asked.wire == kWirePerThread ? thread().number : 0;
    *id = asked.stream != nullptr ? asked.wire : asked.context->id << 48 | mine << 1 | 1;
    return CUDA_SUCCESS;
}

CUresult contextOfStream(CUstream handle, bool perThread, CUcontext* context) {
    Asked asked;
    if (const CUresult result = streamOf(handle, perThread, asked)) return result;
    if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *context = static_cast<CUcontext>(handles::of(*asked.context));
    return CUDA_SUCCESS;
}

CUresult deviceOfStream(CUstream handle, bool perThread, CUdevice* device) {
    Asked asked;
    if (const CUresult result = streamOf(handle, perThread, asked)) return result;
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *device = asked.context->device;
    return CUDA_SUCCESS;
}

/// cuStreamQuery and cuStreamSynchronize.
CUresult ask(Op op, CUstream handle, bool perThread) {
    // A real driver lets functions of streams ask, though not wait.
    const session::EvenInFunction even(op == Op::cuStreamQuery);
    Asked asked;
    if (const CUresult result = streamOf(handle, perThread, asked)) return result;
    const uint64_t before = lastTicket();
    Reply reply;
    const CUresult result = call(op, asked.context, bytesOfCall(asked.wire), reply);
    if (result == CUDA_SUCCESS && asked.stream != nullptr) raise(asked.stream->completed, before);
    return result;
}

}  // namespace
}  // namespace juice::shim

using namespace juice::shim;  // NOLINT: every definition below is an entry point
namespace session = juice::shim::session;
using juice::Op;

CUresult cuStreamCreate(CUstream* phStream, unsigned int Flags) {
    return create(phStream, Flags, 0, false);
}
CUresult cuStreamCreateWithPriority(CUstream* phStream, unsigned int flags, int priority) {
    return create(phStream, flags, priority, true);
}

CUresult cuStreamDestroy_v2(CUstream hStream) {
    if (const CUresult result = session::initialised()) return result;
    if (const CUresult result = session::sticky()) return result;
    Stream* const stream = find<Stream>(hStream);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const CUresult result = post(Op::cuStreamDestroy_v2, stream->context, bytesOfCall(stream->id));
    handles::drop(*stream);
    Recycler<Stream>::get().give(stream);
    return result;
}
CUresult cuStreamDestroy(CUstream hStream) {
    return cuStreamDestroy_v2(hStream);
}

CUresult cuStreamGetFlags(CUstream hStream, unsigned int* flags) {
    return flagsOf(hStream, false, flags);
}
CUresult cuStreamGetFlags_ptsz(CUstream hStream, unsigned int* flags) {
    return flagsOf(hStream, true, flags);
}
CUresult cuStreamGetPriority(CUstream hStream, int* priority) {
    return priorityOf(hStream, false, priority);
}
CUresult cuStreamGetPriority_ptsz(CUstream hStream, int* priority) {
    return priorityOf(hStream, true, priority);
}
CUresult cuStreamGetId(CUstream hStream, unsigned long long* streamId) {
    return idOf(hStream, false, streamId);
}
CUresult cuStreamGetId_ptsz(CUstream hStream, unsigned long long* streamId) {
    return idOf(hStream, true, streamId);
}
CUresult cuStreamGetCtx(CUstream hStream, CUcontext* pctx) {
    return contextOfStream(hStream, false, pctx);
}
CUresult cuStreamGetCtx_ptsz(CUstream hStream, CUcontext* pctx) {
    return contextOfStream(hStream, true, pctx);
}
CUresult cuStreamGetCtx_v2(CUstream hStream, CUcontext* pCtx, CUgreenCtx* pGreenCtx) {
    if (pGreenCtx != nullptr) *pGreenCtx = nullptr;
    return contextOfStream(hStream, false, pCtx);
}
CUresult cuStreamGetCtx_v2_ptsz(CUstream hStream, CUcontext* pCtx, CUgreenCtx* pGreenCtx) {
    if (pGreenCtx != nullptr) *pGreenCtx = nullptr;
    return contextOfStream(hStream, true, pCtx);
}
CUresult cuStreamGetDevice(CUstream hStream, CUdevice* device) {
    return deviceOfStream(hStream, false, device);
}
CUresult cuStreamGetDevice_ptsz(CUstream hStream, CUdevice* device) {
    return deviceOfStream(hStream, true, device);
}

CUresult cuStreamQuery(CUstream hStream) {
    return ask(Op::cuStreamQuery, hStream, false);
}
CUresult cuStreamQuery_ptsz(CUstream hStream) {
    return ask(Op::cuStreamQuery, hStream, true);
}
CUresult cuStreamSynchronize(CUstream hStream) {
    return ask(Op::cuStreamSynchronize, hStream, false);
}
CUresult cuStreamSynchronize_ptsz(CUstream hStream) {
    return ask(Op::cuStreamSynchronize, hStream, true);
}

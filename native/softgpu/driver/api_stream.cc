// Streams: life, order, host functions.
#include <algorithm>
#include <utility>

#include "native/softgpu/driver/event.h"
#include "native/softgpu/driver/guard.h"

namespace juice::softgpu {

std::shared_ptr<Stream> streamOf(Context& current, CUstream handle, DefaultStream meaning) {
    if (handle == nullptr) {
        handle = meaning == DefaultStream::legacy ? CU_STREAM_LEGACY : CU_STREAM_PER_THREAD;
    }
    if (handle == CU_STREAM_LEGACY) return current.legacyStream().shared_from_this();
    if (handle == CU_STREAM_PER_THREAD) return current.threadStream();
    return find<Stream>(handle);
}

}  // namespace juice::softgpu

using namespace juice::softgpu;

namespace {

constexpr DefaultStream kLegacy = DefaultStream::legacy;
constexpr DefaultStream kPerThread = DefaultStream::perThread;
constexpr int kLeastPriority = 0;
constexpr int kGreatestPriority = -5;

CUstream handleOf(Stream& stream) {
    return reinterpret_cast<CUstream>(&stream);
}

/// A captured stream has no state that could be asked for, and others only where the thread may.
CUresult refuseWaiting(Stream& stream) {
    const CUresult refused = refuseCaptured(stream);
    return refused != CUDA_SUCCESS ? refused : refuseUnsafe();
}

CUresult query(CUstream handle, DefaultStream meaning) {
    // A real driver lets host functions ask, though not wait.
    const bool inside = std::exchange(insideHostFunction(), false);
    const CUresult result = askStream(handle, meaning, [](Stream& stream) -> CUresult {
        if (const CUresult refused = refuseWaiting(stream)) return refused;
        return stream.idle() ? stream.context().failure() : CUDA_ERROR_NOT_READY;
    });
    insideHostFunction() = inside;
    return result;
}

CUresult synchronize(CUstream handle, DefaultStream meaning) {
    return askStream(handle, meaning, [](Stream& stream) -> CUresult {
        if (const CUresult refused = refuseWaiting(stream)) return refused;
        stream.synchronize();
        return stream.context().failure();
    });
}

CUresult wait(CUstream handle, CUevent event, unsigned flags, DefaultStream meaning) {
    return withAnyStream(handle, meaning, [&](Stream& stream) -> CUresult {
        const auto waited = find<Event>(event);
        if (!waited) return CUDA_ERROR_INVALID_HANDLE;
        if ((flags & ~static_cast<unsigned>(CU_EVENT_WAIT_EXTERNAL)) != 0) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        return waitEvent(stream, waited, (flags & CU_EVENT_WAIT_EXTERNAL) != 0);
    });
}

CUresult hostFunction(CUstream handle, CUhostFn function, void* data, DefaultStream meaning) {
    return withCapturable(handle, meaning, [&](Stream& stream) -> CUresult {
        if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
        return submit(stream,
                      std::make_shared<HostOperation>(CUDA_HOST_NODE_PARAMS{function, data}));
    });
}

CUresult callback(CUstream handle, CUstreamCallback function, void* data, unsigned flags,
                  DefaultStream meaning) {
    return withStream(handle, meaning, [&](Stream& stream) {
        if (function == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
        Context& context = stream.context();
        const auto call = [=, &context] {
            callHost([&] { function(handle, context.failure(), data); });
        };
        stream.submit({call, {}, true});
        return CUDA_SUCCESS;
    });
}

template <typename T, typename Get>
CUresult ask(CUstream handle, DefaultStream meaning, T* out, const Get& get) {
    return askStream(handle, meaning, [&](Stream& stream) {
        if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
        *out = get(stream);
        return CUDA_SUCCESS;
    });
}

int priorityOf(const Stream& stream) {
    return stream.priority();
}

unsigned flagsOf(const Stream& stream) {
    return stream.kind() == StreamKind::nonBlocking ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT;
}

CUdevice deviceOf(const Stream& stream) {
    return stream.context().device().ordinal();
}

CUcontext ownerOf(const Stream& stream) {
    return juice::softgpu::handleOf(stream.context());
}

unsigned long long idOf(const Stream& stream) {
    return stream.id();
}

}  // namespace

CUresult cuStreamCreateWithPriority(CUstream* out, unsigned int flags, int priority) {
    return withContext([&](Context& context) {
        if (out == nullptr || (flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) != 0) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        const auto kind =
            flags == CU_STREAM_NON_BLOCKING ? StreamKind::nonBlocking : StreamKind::blocking;
        const int clamped = std::max(kGreatestPriority, std::min(kLeastPriority, priority));
        *out = handleOf(*context.createStream(kind, clamped));
        return CUDA_SUCCESS;
    });
}

CUresult cuStreamCreate(CUstream* out, unsigned int flags) {
    return cuStreamCreateWithPriority(out, flags, kLeastPriority);
}

CUresult cuStreamDestroy_v2(CUstream handle) {
    return withContext([&](Context&) {
        const auto stream = Registry<Stream>::instance().take(handle);
        if (!stream) return CUDA_ERROR_INVALID_HANDLE;
        captureForgets(*stream);
        stream->context().closeStream(*stream);
        return CUDA_SUCCESS;
    });
}
CUresult cuStreamDestroy(CUstream handle) {
    return cuStreamDestroy_v2(handle);
}

CUresult cuStreamQuery(CUstream handle) {
    return query(handle, kLegacy);
}
CUresult cuStreamQuery_ptsz(CUstream handle) {
    return query(handle, kPerThread);
}

CUresult cuStreamSynchronize(CUstream handle) {
    return synchronize(handle, kLegacy);
}
CUresult cuStreamSynchronize_ptsz(CUstream handle) {
    return synchronize(handle, kPerThread);
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned int flags) {
    return wait(handle, event, flags, kLegacy);
}
CUresult cuStreamWaitEvent_ptsz(CUstream handle, CUevent event, unsigned int flags) {
    return wait(handle, event, flags, kPerThread);
}

CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void* data) {
    return hostFunction(handle, function, data, kLegacy);
}
CUresult cuLaunchHostFunc_ptsz(CUstream handle, CUhostFn function, void* data) {
    return hostFunction(handle, function, data, kPerThread);
}

CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback function, void* data,
                             unsigned int flags) {
    return callback(handle, function, data, flags, kLegacy);
}
CUresult cuStreamAddCallback_ptsz(CUstream handle, CUstreamCallback function, void* data,
                                  unsigned int flags) {
    return callback(handle, function, data, flags, kPerThread);
}

CUresult cuStreamGetPriority(CUstream handle, int* priority) {
    return ask(handle, kLegacy, priority, priorityOf);
}
CUresult cuStreamGetPriority_ptsz(CUstream handle, int* priority) {
    return ask(handle, kPerThread, priority, priorityOf);
}
CUresult cuStreamGetFlags(CUstream handle, unsigned int* flags) {
    return ask(handle, kLegacy, flags, flagsOf);
}
CUresult cuStreamGetFlags_ptsz(CUstream handle, unsigned int* flags) {
    return ask(handle, kPerThread, flags, flagsOf);
}
CUresult cuStreamGetDevice(CUstream handle, CUdevice* device) {
    return ask(handle, kLegacy, device, deviceOf);
}
CUresult cuStreamGetDevice_ptsz(CUstream handle, CUdevice* device) {
    return ask(handle, kPerThread, device, deviceOf);
}
CUresult cuStreamGetCtx(CUstream handle, CUcontext* context) {
    return ask(handle, kLegacy, context, ownerOf);
}
CUresult cuStreamGetCtx_ptsz(CUstream handle, CUcontext* context) {
    return ask(handle, kPerThread, context, ownerOf);
}
CUresult cuStreamGetCtx_v2(CUstream handle, CUcontext* context, CUgreenCtx* green) {
    if (green != nullptr) *green = nullptr;
    return ask(handle, kLegacy, context, ownerOf);
}
CUresult cuStreamGetCtx_v2_ptsz(CUstream handle, CUcontext* context, CUgreenCtx* green) {
    if (green != nullptr) *green = nullptr;
    return ask(handle, kPerThread, context, ownerOf);
}
CUresult cuStreamGetId(CUstream handle, unsigned long long* id) {
    return ask(handle, kLegacy, id, idOf);
}
CUresult cuStreamGetId_ptsz(CUstream handle, unsigned long long* id) {
    return ask(handle, kPerThread, id, idOf);
}

// What every entry point does first: is the driver initialised, is there a context, does it live.
// And what it does last: no C++ exception leaves.
#pragma once

#include <new>

#include "native/gen/cuda_api.h"
#include "native/softgpu/driver/capture.h"
#include "native/softgpu/driver/context.h"
#include "native/softgpu/driver/device.h"
#include "native/softgpu/driver/registry.h"

namespace juice::softgpu {

/// What cuInit has come to.
enum class DriverState : int { fresh, ready, forked };

/// forked: the process was forked after cuInit; CUDA is not usable in the child.
DriverState driverState();

/// True on a thread that is executing a host function of a stream: it may not call CUDA.
bool& insideHostFunction();

/// For entry points that answer before cuInit as well.
template <typename Body>
CUresult plainly(const Body& body) {
    try {
        return body();
    } catch (const std::bad_alloc&) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    } catch (...) {
        return CUDA_ERROR_UNKNOWN;
    }
}

/// For entry points that need cuInit but no context.
template <typename Body>
CUresult withDriver(const Body& body) {
    if (driverState() != DriverState::ready) return CUDA_ERROR_NOT_INITIALIZED;
    if (insideHostFunction()) return CUDA_ERROR_NOT_PERMITTED;
    return plainly(body);
}

/// For entry points about a device: `body(device)`.
template <typename Body>
CUresult withDevice(CUdevice ordinal, const Body& body) {
    return withDriver([&]() -> CUresult {
        Device* const device = deviceAt(ordinal);
        return device == nullptr ? CUDA_ERROR_INVALID_DEVICE : body(*device);
    });
}

/// May the context be used? 709 when it is destroyed or not yet active, else its own failure.
inline CUresult usable(const Context& context) {
    return context.active() ? context.failure() : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

/// For entry points that act in the current context: `body(context)`. What waits for work must ask
/// for the context's failure afterwards; what only submits must not, or a launch would answer for
/// its own kernel's fault whenever that happens to be quick.
template <typename Body>
CUresult withContext(const Body& body) {
    return withDriver([&]() -> CUresult {
        const auto context = ContextStack::ofThread().current();
        if (!context) return CUDA_ERROR_INVALID_CONTEXT;
        if (const CUresult failed = usable(*context)) return failed;
        return body(*context);
    });
}

/// The same for a context given by its handle; null means the current one.
template <typename Body>
CUresult withContextOr(CUcontext handle, const Body& body) {
    if (handle == nullptr) return withContext(body);
    return withDriver([&]() -> CUresult {
        const auto context = find<Context>(handle);
        if (!context) return CUDA_ERROR_INVALID_CONTEXT;
        if (const CUresult failed = usable(*context)) return failed;
        return body(*context);
    });
}

/// What a null stream means: the entry points without suffix take the legacy default stream, those
/// with _ptds or _ptsz the calling thread's own.
enum class DefaultStream : uint8_t { legacy, perThread };

/// The stream behind a handle, in its own context; null for an invalid one (400).
std::shared_ptr<Stream> streamOf(Context& current, CUstream handle, DefaultStream meaning);

/// For entry points whose effect no capture would notice: they are refused while one objects.
template <typename Body>
CUresult withContextUncaptured(const Body& body) {
    return withContext([&](Context& context) -> CUresult {
        const CUresult refused = refuseUnsafe();
        return refused != CUDA_SUCCESS ? refused : body(context);
    });
}

/// What withStream and withCapturable share: `body(stream)` in whatever state of capture.
template <typename Body>
CUresult withAnyStream(CUstream handle, DefaultStream meaning, const Body& body) {
    return withContext([&](Context& current) -> CUresult {
        const auto stream = streamOf(current, handle, meaning);
        if (!stream) return CUDA_ERROR_INVALID_HANDLE;
        if (const CUresult failed = usable(stream->context())) return failed;
        return body(*stream);
    });
}

/// For entry points that give work to a stream which cannot be captured: `body(stream)`. The
/// stream's context may be another one than the current.
template <typename Body>
CUresult withStream(CUstream handle, DefaultStream meaning, const Body& body) {
    return withAnyStream(handle, meaning, [&](Stream& stream) -> CUresult {
        const CUresult refused = refuseCaptured(stream);
        return refused != CUDA_SUCCESS ? refused : body(stream);
    });
}

/// The same for entry points whose work can be captured: all of it must go through submit().
template <typename Body>
CUresult withCapturable(CUstream handle, DefaultStream meaning, const Body& body) {
    return withAnyStream(handle, meaning, [&](Stream& stream) -> CUresult {
        const CUresult refused = refuseUse(stream);
        return refused != CUDA_SUCCESS ? refused : body(stream);
    });
}

/// For entry points that only ask a stream, or wait for it: a stream that has a handle of its own
/// needs no current context.
template <typename Body>
CUresult askStream(CUstream handle, DefaultStream meaning, const Body& body) {
    const auto value = reinterpret_cast<uintptr_t>(handle);
    const bool isDefault = value <= reinterpret_cast<uintptr_t>(CU_STREAM_PER_THREAD);
    if (isDefault) return withAnyStream(handle, meaning, body);
    return withDriver([&]() -> CUresult {
        const auto stream = find<Stream>(handle);
        if (!stream) return CUDA_ERROR_INVALID_HANDLE;
        if (const CUresult failed = usable(stream->context())) return failed;
        return body(*stream);
    });
}

}  // namespace juice::softgpu

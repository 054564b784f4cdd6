// Events.
#include "native/softgpu/driver/event.h"
#include "native/softgpu/driver/guard.h"

using namespace juice::softgpu;

namespace {

constexpr unsigned kEventFlags =
    CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;

/// An event needs no current context: it has its own.
template <typename Body>
CUresult withEvent(CUevent handle, const Body& body) {
    return withDriver([&]() -> CUresult {
        const auto event = find<Event>(handle);
        if (!event) return CUDA_ERROR_INVALID_HANDLE;
        if (const CUresult failed = usable(event->context())) return failed;
        return body(*event);
    });
}

CUresult record(CUevent handle, CUstream stream, unsigned flags, DefaultStream meaning) {
    return askStream(stream, meaning, [&](Stream& on) -> CUresult {
        const auto event = find<Event>(handle);
        if (!event || &event->context() != &on.context()) return CUDA_ERROR_INVALID_HANDLE;
        if ((flags & ~static_cast<unsigned>(CU_EVENT_RECORD_EXTERNAL)) != 0) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        return recordEvent(on, event, (flags & CU_EVENT_RECORD_EXTERNAL) != 0);
    });
}

constexpr DefaultStream kLegacy = DefaultStream::legacy;
constexpr DefaultStream kPerThread = DefaultStream::perThread;

}  // namespace

CUresult cuEventCreate(CUevent* out, unsigned int flags) {
    return withContext([&](Context& context) -> CUresult {
        if (out == nullptr || (flags & ~kEventFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
        std::shared_ptr<SharedEvent> shared;
        if ((flags & CU_EVENT_INTERPROCESS) != 0) {
            // The clocks of two processes are not compared.
            if ((flags & CU_EVENT_DISABLE_TIMING) == 0) return CUDA_ERROR_INVALID_VALUE;
            shared = SharedEvent::create(context.device().uuid());
            if (!shared) return CUDA_ERROR_OUT_OF_MEMORY;
        }
        auto* event = Registry<Event>::instance().add(
            std::make_shared<Event>(context, flags, std::move(shared)));
        *out = reinterpret_cast<CUevent>(event);
        return CUDA_SUCCESS;
    });
}

CUresult cuEventDestroy_v2(CUevent handle) {
    return withEvent(handle, [&](Event&) {
        Registry<Event>::instance().take(handle);
        return CUDA_SUCCESS;
    });
}
CUresult cuEventDestroy(CUevent handle) {
    return cuEventDestroy_v2(handle);
}

CUresult cuEventRecord(CUevent handle, CUstream stream) {
    return record(handle, stream, 0, kLegacy);
}
CUresult cuEventRecord_ptsz(CUevent handle, CUstream stream) {
    return record(handle, stream, 0, kPerThread);
}
CUresult cuEventRecordWithFlags(CUevent handle, CUstream stream, unsigned int flags) {
    return record(handle, stream, flags, kLegacy);
}
CUresult cuEventRecordWithFlags_ptsz(CUevent handle, CUstream stream, unsigned int flags) {
    return record(handle, stream, flags, kPerThread);
}

CUresult cuEventQuery(CUevent handle) {
    return withEvent(handle, [](Event& event) -> CUresult {
        if (const CUresult refused = refuseQuestion(event)) return refused;
        const Fence last = event.last();
        return !last || last->done() ? event.context().failure() : CUDA_ERROR_NOT_READY;
    });
}

CUresult cuEventSynchronize(CUevent handle) {
    return withEvent(handle, [](Event& event) -> CUresult {
        if (const CUresult refused = refuseQuestion(event)) return refused;
        if (const Fence last = event.last()) last->wait();
        return event.context().failure();
    });
}

CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent startHandle, CUevent endHandle) {
    return withEvent(startHandle, [&](Event& start) -> CUresult {
        const auto end = find<Event>(endHandle);
        if (!end || !start.timed() || !end->timed()) return CUDA_ERROR_INVALID_HANDLE;
        if (start.captured() || end->captured()) return CUDA_ERROR_CAPTURED_EVENT;
        const Fence from = start.last();
        const Fence to = end->last();
        if (!from || !to || milliseconds == nullptr) return CUDA_ERROR_INVALID_HANDLE;
        if (!from->done() || !to->done()) return CUDA_ERROR_NOT_READY;
        *milliseconds = static_cast<float>(static_cast<double>(to->at() - from->at()) / 1e6);
        return CUDA_SUCCESS;
    });
}
CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
    return cuEventElapsedTime_v2(milliseconds, start, end);
}

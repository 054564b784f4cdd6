#include "native/shim/event.h"

#include "native/gen/cuda_api.h"
#include "native/shim/capture.h"
#include "native/shim/send.h"

namespace juice::shim {
namespace {

/// CU_EVENT_BLOCKING_SYNC, DISABLE_TIMING, INTERPROCESS
constexpr unsigned kEventFlags = 7, kDisableTiming = 2, kInterprocess = 4;
/// CU_EVENT_RECORD_EXTERNAL
constexpr unsigned kRecordFlags = 1;
/// CU_EVENT_WAIT_EXTERNAL
constexpr unsigned kWaitFlags = 1;

std::atomic<uint64_t> tickets{0};

/// An event that may be used, or the error. Events need no current context: they have their own.
CUresult eventOf(CUevent handle, Event*& event) {
    if (const CUresult result = session::initialised()) return result;
    if (const CUresult result = session::sticky()) return result;
    event = find<Event>(handle);
    return event == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

bool complete(const Event& event, uint64_t ticket) {
    if (ticket <= event.completed.load(std::memory_order_acquire)) return true;
    if (ticket <= event.context->completed.load(std::memory_order_acquire)) return true;
    const Stream* const stream = event.stream.load(std::memory_order_relaxed);
    return stream != nullptr && stream->id == event.streamId.load(std::memory_order_relaxed) &&
           ticket <= stream->completed.load(std::memory_order_acquire);
}

CUresult record(CUevent handle, CUstream stream, bool perThread, unsigned flags) {
    Event* event = nullptr;
    if (const CUresult result = eventOf(handle, event)) return result;
    if ((flags & ~kRecordFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    uint64_t wire = 0;
    Stream* of = nullptr;
    if (const CUresult result = wireStream(stream, perThread, wire, &of)) return result;
    Context* context = of == nullptr ? thread().current() : of->context;
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    noteRecord(*event, of);
    // External ones become nodes, which record them at every launch.
    const uint64_t captured = capture::of(wire, of);
    event->capture = flags == 0 ? captured : 0;
    if (flags != 0 && captured != 0) event->inGraph = true;
    Writer payload;
    payload.put(event->id).put(wire);
    if (flags == 0) return post(Op::cuEventRecord, context, payload.view(), wire);
    payload.put(flags);
    return post(Op::cuEventRecordWithFlags, context, payload.view(), wire);
}

/// cuEventQuery and cuEventSynchronize.
CUresult ask(Op op, CUevent handle) {
    Event* event = nullptr;
    if (const CUresult result = eventOf(handle, event)) return result;
    const uint64_t ticket = event->recorded.load(std::memory_order_acquire);
    // One that was never recorded counts as complete; what other processes do with one is not
    // known here.
    const bool shared = (event->flags & kInterprocess) != 0;
    const bool unseen = shared || event->capture != 0 || event->inGraph;
    if (!unseen && complete(*event, ticket)) return CUDA_SUCCESS;
    Reply reply;
    const CUresult result = call(op, event->context, bytesOfCall(event->id), reply);
    if (result == CUDA_SUCCESS) raise(event->completed, ticket);
    return result;
}

CUresult elapsed(Op op, float* milliseconds, CUevent start, CUevent end) {
    Event *first = nullptr, *last = nullptr;
    if (const CUresult result = eventOf(start, first)) return result;
    if (const CUresult result = eventOf(end, last)) return result;
    const bool timed = ((first->flags | last->flags) & kDisableTiming) == 0;
    if (milliseconds == nullptr || !timed || first->recorded == 0 || last->recorded == 0)
        return CUDA_ERROR_INVALID_HANDLE;
    Writer payload;
    payload.put(first->id).put(last->id);
    Reply reply;
    const CUresult result = call(op, first->context, payload.view(), reply);
    if (result != CUDA_SUCCESS) return result;
    Reader in = reply.reader();
    in.get(*milliseconds);
    return in.ok() ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}

/// Waits in the stream; while something captures it may draw the stream into the event's capture.
CUresult waitInStream(CUstream streamHandle, CUevent handle, unsigned flags, bool perThread) {
    Event* event = nullptr;
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    uint64_t wire = 0;
    Stream* stream = nullptr;
    if (const CUresult result = wireStream(streamHandle, perThread, wire, &stream)) return result;
    if (const CUresult result = eventOf(handle, event)) return result;
    if ((flags & ~kWaitFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    Writer payload;
    payload.put(wire).put(event->id).put(flags);
    if (!capture::any()) return post(Op::cuStreamWaitEvent, context, payload.view(), wire);
    Reply reply;
    const CUresult result =
        call(Op::cuStreamWaitEvent, context, payload.view(), reply, Deferred::keep);
    if (result == CUDA_SUCCESS && flags == 0 && capture::of(wire, stream) == 0)
        capture::join(stream, wire, event->capture);
    return result;
}

}  // namespace

Event* newEvent(Context& context, unsigned flags) {
    Event* const event = Recycler<Event>::get().take();
    event->kind = ObjectKind::event;
    event->context = &context;
    event->flags = flags;
    event->recorded = event->completed = 0;
    event->stream = nullptr;
    event->capture = 0;
    event->inGraph = false;
    if (handles::mint(*event) != nullptr) return event;
    Recycler<Event>::get().give(event);
    return nullptr;
}

void forgetEvent(Event& event) {
    handles::drop(event);
    Recycler<Event>::get().give(&event);
}

uint64_t lastTicket() {
    return tickets.load();
}

void noteRecord(Event& event, Stream* stream) {
    const uint64_t ticket = ++tickets;
    event.stream.store(stream, std::memory_order_relaxed);
    event.streamId.store(stream == nullptr ? 0 : stream->id, std::memory_order_relaxed);
    event.recorded.store(ticket, std::memory_order_release);
}

}  // namespace juice::shim

using namespace juice::shim;  // NOLINT: every definition below is an entry point
using juice::Op;
using juice::Writer;

CUresult cuEventCreate(CUevent* phEvent, unsigned int Flags) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    // An event that other processes see cannot keep the time.
    const bool sharedClock = (Flags & kInterprocess) != 0 && (Flags & kDisableTiming) == 0;
    if (phEvent == nullptr || (Flags & ~kEventFlags) != 0 || sharedClock)
        return CUDA_ERROR_INVALID_VALUE;
    Event* const event = newEvent(*context, Flags);
    if (event == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    Writer payload;
    payload.put(event->id).put(Flags);
    const CUresult result = post(Op::cuEventCreate, context, payload.view());
    if (result == CUDA_SUCCESS)
        *phEvent = static_cast<CUevent>(handles::of(*event));
    else
        forgetEvent(*event);
    return result;
}

CUresult cuEventDestroy_v2(CUevent hEvent) {
    Event* event = nullptr;
    if (const CUresult result = eventOf(hEvent, event)) return result;
    const CUresult result = post(Op::cuEventDestroy_v2, event->context, bytesOfCall(event->id));
    handles::drop(*event);
    Recycler<Event>::get().give(event);
    return result;
}
CUresult cuEventDestroy(CUevent hEvent) {
    return cuEventDestroy_v2(hEvent);
}

CUresult cuEventRecord(CUevent hEvent, CUstream hStream) {
    return record(hEvent, hStream, false, 0);
}
CUresult cuEventRecord_ptsz(CUevent hEvent, CUstream hStream) {
    return record(hEvent, hStream, true, 0);
}
CUresult cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags) {
    return record(hEvent, hStream, false, flags);
}
CUresult cuEventRecordWithFlags_ptsz(CUevent hEvent, CUstream hStream, unsigned int flags) {
    return record(hEvent, hStream, true, flags);
}

CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags) {
    return waitInStream(hStream, hEvent, Flags, false);
}
CUresult cuStreamWaitEvent_ptsz(CUstream hStream, CUevent hEvent, unsigned int Flags) {
    return waitInStream(hStream, hEvent, Flags, true);
}

CUresult cuEventQuery(CUevent hEvent) {
    return ask(Op::cuEventQuery, hEvent);
}
CUresult cuEventSynchronize(CUevent hEvent) {
    return ask(Op::cuEventSynchronize, hEvent);
}

CUresult cuEventElapsedTime(float* pMilliseconds, CUevent hStart, CUevent hEnd) {
    return elapsed(Op::cuEventElapsedTime, pMilliseconds, hStart, hEnd);
}
CUresult cuEventElapsedTime_v2(float* pMilliseconds, CUevent hStart, CUevent hEnd) {
    return elapsed(Op::cuEventElapsedTime_v2, pMilliseconds, hStart, hEnd);
}

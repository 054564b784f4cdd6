#include "native/shim/send.h"

#include "native/gen/results.h"
#include "native/shim/capture.h"
#include "native/shim/say.h"

namespace juice::shim {
namespace {

bool isOfCapture(CUresult result) {
    return result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
           result <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
}

}  // namespace

bool strict() {
    static const bool set = enabled("JUICE_STRICT");
    return set;
}

CUresult enter(Context*& context) {
    if (const CUresult result = session::initialised()) return result;
    context = thread().current();
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (!context->alive.load(std::memory_order_relaxed)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return session::sticky();
}

CUresult enterContextless() {
    if (const CUresult result = session::initialised()) return result;
    return session::connect();
}

bool mustWait(uint64_t stream) {
    return strict() || (capture::any() && (stream == kWireLegacy || capture::doubtful()));
}

CUresult post(Op op, const Context* context, Bytes payload, uint64_t stream) {
    if (mustWait(stream)) {
        Reply reply;
        return call(op, context, payload, reply);
    }
    ClientLink* const link = session::link();
    if (link->broken()) return session::lost();
    link->post(static_cast<uint16_t>(op), thread().number,
               context == nullptr ? 0 : static_cast<uint32_t>(context->id), payload);
    return CUDA_SUCCESS;
}

CUresult call(Op op, const Context* context, Bytes payload, Reply& reply, Deferred deferred) {
    ClientLink* const link = session::link();
    if (link->broken()) return session::lost();
    reply = link->call(static_cast<uint16_t>(op), thread().number,
                       context == nullptr ? 0 : static_cast<uint32_t>(context->id), payload);
    return settle(reply, op, deferred);
}

CUresult settle(const Reply& reply, Op op, Deferred deferred) {
    if (reply.broken) return session::lost();
    const auto result = static_cast<CUresult>(reply.head.result);
    if (isOfCapture(result) || isOfCapture(static_cast<CUresult>(reply.head.deferred)))
        capture::doubt();
    Thread& caller = thread();
    if (reply.head.deferred != 0) {
        const auto earlier = static_cast<CUresult>(reply.head.deferred);
        const char* const name = resultName(earlier);
        const char* const sentence = resultSentence(earlier);
        say("%s failed: %s (%s); found by %s (JUICE_STRICT=1 reports errors where they happen)",
            opName(reply.head.deferredOpcode), name == nullptr ? "unknown error" : name,
            sentence == nullptr ? "?" : sentence, opName(static_cast<uint16_t>(op)));
        caller.deferred = earlier;
    }
    if (reply.head.sticky != 0) {
        const auto dead = static_cast<CUresult>(reply.head.sticky);
        session::latch(dead);
        return dead;
    }
    if (result != CUDA_SUCCESS || deferred == Deferred::keep || caller.deferred == CUDA_SUCCESS)
        return result;
    return std::exchange(caller.deferred, CUDA_SUCCESS);
}

CUresult wireStream(CUstream handle, bool perThread, uint64_t& wire, Stream** stream) {
    const auto value = reinterpret_cast<uint64_t>(handle);
    if (value == 0)
        wire = perThread ? kWirePerThread : kWireLegacy;
    else if (handle == CU_STREAM_LEGACY)
        wire = kWireLegacy;
    else if (handle == CU_STREAM_PER_THREAD)
        wire = kWirePerThread;
    else if (Stream* const found = find<Stream>(handle)) {
        wire = kWireFirstStream + found->id;
        if (stream != nullptr) *stream = found;
    } else
        return CUDA_ERROR_INVALID_HANDLE;
    return CUDA_SUCCESS;
}

Stream* streamOfWire(uint64_t wire) {
    Object* const object = handles::findId(wire - kWireFirstStream);
    return object != nullptr && object->kind == ObjectKind::stream ? static_cast<Stream*>(object)
                                                                   : nullptr;
}

}  // namespace juice::shim

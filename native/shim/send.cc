#include "native/shim/send.h"

#include "native/gen/results.h"
#include "native/shim/say.h"

namespace juice::shim {

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

CUresult post(Op op, const Context* context, Bytes payload) {
    if (strict()) {
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

}  // namespace juice::shim

// Sending calls to the worker, and what comes back. calls.h is the generated stubs' view of this;
// entries written by hand use it directly.
#pragma once

#include <type_traits>

#include "native/link/custom.h"
#include "native/shim/session.h"
#include "native/shim/thread.h"

namespace juice::shim {

/// What every entry asks first: initialised, a current context that is alive, no sticky error.
/// Stores the current context.
CUresult enter(Context*& context);
/// The same for entries that need no current context; connects to the worker.
CUresult enterContextless();

constexpr uint64_t kWireLegacy = 0;
constexpr uint64_t kWirePerThread = 2;
constexpr uint64_t kWireFirstStream = 16;

/// Sends without waiting (with JUICE_STRICT=1 it waits). `context` may be null. While a stream
/// captures, what may be refused because of it waits as well: everything but work in a stream that
/// was minted, or the thread's own, which names that `stream`.
CUresult post(Op op, const Context* context, Bytes payload, uint64_t stream = kWireLegacy);
bool mustWait(uint64_t stream);

/// What becomes of the error of an earlier posted call that an answer tells of.
enum class Deferred {
    give,  // it is this call's result
    keep,  // this call's own success is the result; the next one gives it
};
/// Sends and waits. Every error has been seen to; on success `reply.payload` holds the results.
CUresult call(Op op, const Context* context, Bytes payload, Reply& reply,
              Deferred deferred = Deferred::give);
/// Sees to the errors of an answer that came another way.
CUresult settle(const Reply& reply, Op op, Deferred deferred = Deferred::give);

template <typename T>
Bytes bytesOfCall(const T& value) {
    static_assert(std::has_unique_object_representations_v<T>);
    return {reinterpret_cast<const uint8_t*>(&value), sizeof value};
}

/// A stream as it travels. Latches nothing: `wire` is valid when the result is success. `stream`
/// becomes the object of a minted one.
CUresult wireStream(CUstream handle, bool perThread, uint64_t& wire, Stream** stream = nullptr);
/// The object of a minted stream, as it travels; null when it is gone.
Stream* streamOfWire(uint64_t wire);

/// Is JUICE_STRICT=1?
bool strict();

}  // namespace juice::shim

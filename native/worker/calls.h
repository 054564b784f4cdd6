// What the generated worker dispatch (native/gen/worker_dispatch.cc) is written against. One
// Incoming is one Call being executed: decode every argument, ask done(), call the driver, put the
// results.
#pragma once

#include "native/abi/cuda_abi.h"
#include "native/gen/driver_table.h"
#include "native/gen/opcodes.h"
#include "native/link/codec.h"
#include "native/link/wire.h"

namespace juice::worker {

enum class ObjectKind : uint8_t { context, stream, event, module, function, library, kernel };

class Worker;  // executor state: objects, staging, pending transfers (worker.h)

class Incoming {
  public:
    Incoming(Worker& worker, const wire::Header& header, Bytes payload)
        : worker_(worker), header_(header), in_(payload) {}

    template <typename T>
    T get() {
        return in_.get<T>();
    }
    Bytes bytes() { return in_.bytes(); }
    /// The driver's handle for a wire id; marks the call bad (CUDA_ERROR_INVALID_HANDLE) when the
    /// id is not a live object of the kind. 0 gives null when `nullable`.
    void* handle(ObjectKind kind, bool nullable = false);
    /// A function, or a kernel as the driver accepts one in place of a function.
    CUfunction callable();
    /// The driver's stream for the wire value: legacy default, this client thread's per-thread
    /// stream, or a minted one.
    CUstream stream() { return stream(get<uint64_t>()); }
    /// The same for values that were read already, as part of a struct of native/link/custom.h.
    CUstream stream(uint64_t wire);
    void* object(ObjectKind kind, uint64_t id);
    CUfunction callable(uint64_t id);
    /// Reads the wire id of an object to be made; store the driver's handle with made().
    uint64_t minted(ObjectKind kind);
    void made(ObjectKind kind, uint64_t id, void* driverHandle);
    /// Like handle(), and forgets the id.
    void* dropped(ObjectKind kind);
    /// Marks the call bad, unless it is already.
    void fail(CUresult error) {
        if (error_ == CUDA_SUCCESS) error_ = error;
    }

    /// CUDA_SUCCESS when all was read, nothing is left and every handle was good. A short or long
    /// payload is a protocol violation that ends this worker.
    CUresult done();

    Writer& out() { return out_; }
    const DriverTable& driver() const;
    Worker& worker() { return worker_; }
    const wire::Header& header() const { return header_; }
    Reader& reader() { return in_; }

    /// The answer comes from another thread (Worker::answer): what execute() returns is not sent.
    void detach() { detached_ = true; }
    bool detached() const { return detached_; }

  private:
    Worker& worker_;
    const wire::Header& header_;
    Reader in_;
    Writer out_;
    CUresult error_ = CUDA_SUCCESS;
    bool detached_ = false;
};

struct Handler {
    const char* name;                   // the driver entry point, for deferred errors and logs
    CUresult (*execute)(Incoming& in);  // null: opcode never used
    bool mayBlock;                      // run with the link's reader taking over (busy/idle)
};

/// Generated: indexed by opcode, `kHandlerCount` long.
extern const Handler kHandlers[];
extern const uint16_t kHandlerCount;

}  // namespace juice::worker

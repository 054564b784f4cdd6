// What the generated client stubs (native/gen/client_stubs.cc) are written against. One Outgoing is
// one call of the driver API on its way to the worker; it latches the first local error (not
// initialised, no context, bad handle, sticky error), after which nothing is sent.
#pragma once

#include "native/abi/cuda_abi.h"
#include "native/gen/opcodes.h"
#include "native/link/codec.h"

namespace juice::shim {

/// Kinds of objects whose handles the shim mints. The number travels nowhere.
enum class ObjectKind : uint8_t {
    context,
    stream,
    event,
    module,
    function,
    library,
    kernel,
    graph,
    graphNode,
    graphExec,
    userObject
};

/// The result of a waited call.
class Answer {
  public:
    Answer(CUresult result, std::vector<uint8_t> payload)
        : result_(result), payload_(std::move(payload)), reader_(payload_) {}
    Answer(Answer&&) = delete;
    bool ok() const { return result_ == CUDA_SUCCESS; }
    /// The call's result; CUDA_ERROR_UNKNOWN when the worker's answer was shorter than promised.
    CUresult result() const { return ok() && !reader_.ok() ? CUDA_ERROR_UNKNOWN : result_; }
    /// Stores one out value; does nothing when the call failed or the caller passed null.
    template <typename T>
    Answer& get(T* out) {
        T value = reader_.get<T>();
        if (ok() && reader_.ok() && out != nullptr) *out = value;
        return *this;
    }
    /// Stores `size` raw bytes.
    Answer& raw(void* out, size_t size) {
        const Bytes b = reader_.take(size);
        if (ok() && reader_.ok() && out != nullptr) std::memcpy(out, b.data(), size);
        return *this;
    }
    Reader& reader() { return reader_; }

  private:
    CUresult result_;
    std::vector<uint8_t> payload_;
    Reader reader_;
};

class Outgoing {
  public:
    /// Needs a current context unless `contextless`.
    explicit Outgoing(Op op, bool contextless = false);
    ~Outgoing();
    Outgoing(const Outgoing&) = delete;

    template <typename T>
    Outgoing& put(T value) {
        writer_.put(value);
        return *this;
    }
    Outgoing& bytes(const void* data, size_t size) {
        writer_.bytes(data, size);
        return *this;
    }
    /// A live handle of the kind: writes its wire id; else latches the kind's CUDA error. Null is
    /// an error too, unless `nullable` (then 0 is written).
    Outgoing& handle(ObjectKind kind, const void* handle, bool nullable = false);
    /// A function; or a kernel passed as one, as the driver accepts it: a live handle of either
    /// kind.
    Outgoing& callable(CUfunction function);
    /// A device, by the program's ordinal: writes the worker's. Latches CUDA_ERROR_INVALID_DEVICE
    /// where there is none.
    Outgoing& ordinal(CUdevice device);
    /// An address that the device will read or write, with the extent in bytes: writes the address.
    /// Latches CUDA_ERROR_INVALID_VALUE where the shim knows that nothing is there.
    Outgoing& device(CUdeviceptr address, uint64_t bytes, bool written);
    /// A stream: 0/1 legacy default, 2 per-thread default (`perThread`: what 0 means in _ptsz
    /// entries), or a minted one.
    Outgoing& stream(CUstream stream, bool perThread);
    /// Mints a handle, writes its wire id, and stores the handle in *out when the call is posted.
    Outgoing& mint(ObjectKind kind, void** out);
    /// Like handle(), and forgets it once the call is posted.
    Outgoing& drop(ObjectKind kind, const void* handle);
    /// Latches a local error found by the stub itself.
    Outgoing& require(bool condition, CUresult otherwise);

    CUresult post();
    Answer wait();
    /// wait(), but a success is remembered for the same operation, context and payload until
    /// forgetCached().
    Answer cached();

  private:
    Op op_;
    CUresult error_ = CUDA_SUCCESS;
    Writer writer_;
    struct State;  // pending mint/drop; inline storage in calls.cc
    alignas(8) unsigned char state_[64];
};

/// Drops what cached() remembers: some setting that the answers depend on has changed.
void forgetCached();

}  // namespace juice::shim

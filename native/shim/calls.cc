#include "native/shim/calls.h"

#include <mutex>
#include <new>
#include <string>
#include <unordered_map>

#include "native/shim/coherence.h"
#include "native/shim/ranges.h"
#include "native/shim/send.h"

namespace juice::shim {

struct Outgoing::State {
    Context* context = nullptr;  // the header's
    Object* minted = nullptr;
    void** out = nullptr;  // where the minted handle goes
    Object* dropped = nullptr;
    uint64_t host = 0;              // pinned memory that the device will read or write, or 0
    uint64_t stream = kWireLegacy;  // the wire's, of the work
};

namespace {

/// An object of a kind that generated stubs make, with the facts that all of its kind have.
Object* makeObject(ObjectKind kind, Context* context) {
    if (kind == ObjectKind::stream) {
        Stream* const stream = Recycler<Stream>::get().take();
        stream->kind = kind;
        stream->context = context;
        return stream;
    }
    if (kind == ObjectKind::event) {
        Event* const event = Recycler<Event>::get().take();
        event->kind = kind;
        event->context = context;
        return event;
    }
    return nullptr;
}

void forget(Object* object) {
    handles::drop(*object);
    if (object->kind == ObjectKind::stream)
        Recycler<Stream>::get().give(static_cast<Stream*>(object));
    else if (object->kind == ObjectKind::event)
        Recycler<Event>::get().give(static_cast<Event*>(object));
}

/// What cached() remembers: results by operation, context and payload.
struct Cache {
    static constexpr size_t kMost = 1u << 16;  // entries; then it starts anew
    std::mutex mutex;
    uint64_t age = 0;  // how often it was emptied
    std::unordered_map<std::string, std::vector<uint8_t>> results;
};
Cache& cache() {
    static auto& one = *new Cache;
    return one;
}

CUresult errorOf(ObjectKind kind) {
    return kind == ObjectKind::context ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace

Outgoing::Outgoing(Op op, bool contextless) : op_(op) {
    static_assert(sizeof(State) <= sizeof state_ && alignof(State) <= 8);
    auto* const state = new (state_) State;
    if (contextless) {
        error_ = enterContextless();
        state->context = thread().current();
        if (state->context != nullptr && !state->context->alive) state->context = nullptr;
    } else {
        error_ = enter(state->context);
    }
}

Outgoing::~Outgoing() {
    auto* const state = std::launder(reinterpret_cast<State*>(state_));
    // Minted, but never sent.
    if (state->minted != nullptr) forget(state->minted);
}

Outgoing& Outgoing::handle(ObjectKind kind, const void* handle, bool nullable) {
    if (handle == nullptr && nullable) return put(uint64_t{0});
    const Object* const object = handles::find(handle);
    if (object == nullptr || object->kind != kind) return require(false, errorOf(kind));
    return put(object->id);
}

Outgoing& Outgoing::callable(CUfunction function) {
    const Callable found = findCallable(function);
    if (found.code == nullptr) return require(false, CUDA_ERROR_INVALID_HANDLE);
    return put(found.object->id);
}

Outgoing& Outgoing::ordinal(CUdevice device) {
    if (error_ == CUDA_SUCCESS && session::device(device) == nullptr)
        return require(false, CUDA_ERROR_INVALID_DEVICE);
    return put(error_ == CUDA_SUCCESS ? int32_t{session::workerOrdinal(device)} : device);
}

Outgoing& Outgoing::device(CUdeviceptr address, uint64_t bytes, bool written) {
    require(bytes == 0 || ranges::deviceMayTouch(address, bytes), CUDA_ERROR_INVALID_VALUE);
    if (bytes != 0 && (ranges::maybePlainHost(address) || coherence::any())) {
        const auto range = ranges::find(address);
        if (range && range->onHost())
            std::launder(reinterpret_cast<State*>(state_))->host = address;
    }
    return put(uint64_t{address});
}

Outgoing& Outgoing::stream(CUstream stream, bool perThread) {
    uint64_t wire = 0;
    const CUresult result = wireStream(stream, perThread, wire);
    require(result == CUDA_SUCCESS, result);
    std::launder(reinterpret_cast<State*>(state_))->stream = wire;
    return put(wire);
}

Outgoing& Outgoing::mint(ObjectKind kind, void** out) {
    if (error_ != CUDA_SUCCESS) return *this;
    auto* const state = std::launder(reinterpret_cast<State*>(state_));
    state->minted = makeObject(kind, state->context);
    if (state->minted == nullptr || handles::mint(*state->minted) == nullptr)
        return require(false, CUDA_ERROR_OUT_OF_MEMORY);
    state->out = out;
    return put(state->minted->id);
}

Outgoing& Outgoing::drop(ObjectKind kind, const void* handle) {
    this->handle(kind, handle);
    if (error_ == CUDA_SUCCESS)
        std::launder(reinterpret_cast<State*>(state_))->dropped = handles::find(handle);
    return *this;
}

Outgoing& Outgoing::require(bool condition, CUresult otherwise) {
    if (!condition && error_ == CUDA_SUCCESS) error_ = otherwise;
    return *this;
}

CUresult Outgoing::post() {
    if (error_ != CUDA_SUCCESS) return error_;
    auto* const state = std::launder(reinterpret_cast<State*>(state_));
    if (state->host != 0) {
        error_ = coherence::touch(state->context, state->host);
        if (error_ == CUDA_SUCCESS) error_ = coherence::beforeWork(state->context);
        if (error_ != CUDA_SUCCESS) return error_;
    }
    error_ = shim::post(op_, state->context, writer_.view(), state->stream);
    if (error_ != CUDA_SUCCESS) return error_;
    if (state->host != 0) error_ = coherence::afterWork(state->context, state->stream);
    if (state->minted != nullptr) *state->out = handles::of(*state->minted);
    state->minted = nullptr;
    if (state->dropped != nullptr) forget(state->dropped);
    state->dropped = nullptr;
    return CUDA_SUCCESS;
}

Answer Outgoing::wait() {
    if (error_ != CUDA_SUCCESS) return Answer(error_, {});
    auto* const state = std::launder(reinterpret_cast<State*>(state_));
    Reply reply;
    const CUresult result = call(op_, state->context, writer_.view(), reply);
    return Answer(result, std::move(reply.payload));
}

Answer Outgoing::cached() {
    if (error_ != CUDA_SUCCESS) return Answer(error_, {});
    auto* const state = std::launder(reinterpret_cast<State*>(state_));
    const uint64_t head[] = {static_cast<uint64_t>(op_),
                             state->context == nullptr ? 0 : state->context->id};
    std::string key(reinterpret_cast<const char*>(head), sizeof head);
    key.append(reinterpret_cast<const char*>(writer_.data()), writer_.size());
    uint64_t age = 0;
    {
        const std::lock_guard lock(cache().mutex);
        age = cache().age;
        const auto found = cache().results.find(key);
        if (found != cache().results.end()) return Answer(CUDA_SUCCESS, found->second);
    }
    Reply reply;
    const CUresult result = call(op_, state->context, writer_.view(), reply, Deferred::keep);
    if (result == CUDA_SUCCESS) {
        const std::lock_guard lock(cache().mutex);
        if (cache().results.size() >= Cache::kMost) cache().results.clear();
        // An answer that was under way when something changed may be the old one.
        if (cache().age == age) cache().results.emplace(std::move(key), reply.payload);
    }
    return Answer(result, std::move(reply.payload));
}

void forgetCached() {
    const std::lock_guard lock(cache().mutex);
    cache().results.clear();
    ++cache().age;
}

}  // namespace juice::shim

#include "native/shim/host_functions.h"

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <mutex>
#include <unordered_map>

#include "native/gen/cuda_api.h"
#include "native/shim/capture.h"
#include "native/shim/coherence.h"
#include "native/shim/send.h"
#include "native/shim/shadows.h"

namespace juice::shim {
namespace host_functions {
namespace {

/// A function as the program gave it: one of the two.
struct Function {
    CUhostFn plain = nullptr;
    CUstreamCallback withStatus = nullptr;
    void* data = nullptr;
    CUstream stream = nullptr;
    bool forEver = false;  // else it is called once
};

struct State {
    std::mutex mutex;  // around everything below but the counter
    std::condition_variable due;
    std::deque<Callback> arrived;
    std::unordered_map<uint64_t, Function> functions;
    std::unordered_map<uint64_t, uint64_t> gates;  // of graphs: to the function
    uint64_t lastId = 0;
    bool serving = false;  // the thread has been started
    std::atomic<size_t> outstanding{0};
};
State& state() {
    static auto& one = *new State;
    return one;
}

void run(const Function& function, CUresult result) {
    session::detail::insideFunction = true;
    if (function.withStatus != nullptr)
        function.withStatus(function.stream, result, function.data);
    else if (result == CUDA_SUCCESS)  // these are not called at all when the stream has failed
        function.plain(function.data);
    session::detail::insideFunction = false;
}

void finished() {
    if (state().outstanding.fetch_sub(1) == 1) shadows::clearUnlessDue();
}

/// The function that a callback is for. False when its launch has failed, and the program knows.
bool take(const Callback& callback, Function& function) {
    const std::lock_guard lock(state().mutex);
    uint64_t id = callback.id;
    if (static_cast<custom::Called>(callback.kind) == custom::Called::graphFunction) {
        const auto gate = state().gates.find(id);
        if (gate == state().gates.end()) return false;
        id = gate->second;
    }
    const auto found = state().functions.find(id);
    if (found == state().functions.end()) return false;
    function = found->second;
    if (!function.forEver) state().functions.erase(found);
    return true;
}

void serve(const Callback& callback) {
    const auto kind = static_cast<custom::Called>(callback.kind);
    if (kind == custom::Called::launched) return finished();
    ClientLink* const link = session::link();
    Function function;
    if (!take(callback, function)) return link->called(callback.id);
    if (kind == custom::Called::userObject) return run(function, CUDA_SUCCESS);
    auto result = static_cast<CUresult>(callback.result);
    if (!link->awaitLanded(callback.landed)) result = session::lost();
    shadows::beforeFunction();
    run(function, result);
    shadows::afterFunction();
    coherence::afterFunction();
    link->called(callback.id);
    if (kind == custom::Called::function) finished();
}

/// The link has failed: nobody else will tell those who wait for a callback.
void serveTheRest() {
    std::unordered_map<uint64_t, Function> left;
    {
        const std::lock_guard lock(state().mutex);
        left.swap(state().functions);
    }
    const CUresult result = session::lost();
    for (const auto& [id, function] : left) {
        if (function.forEver) continue;
        run(function, result);
        finished();
    }
}

void* serveAll(void*) {
    pthread_setname_np(pthread_self(), "juice-functions");
    std::unique_lock lock(state().mutex);
    for (;;) {
        state().due.wait(lock, [] { return !state().arrived.empty(); });
        const Callback callback = state().arrived.front();
        state().arrived.pop_front();
        lock.unlock();
        if (callback.broken)
            serveTheRest();
        else
            serve(callback);
        lock.lock();
    }
    return nullptr;
}

/// Under the lock. A thread with all signals blocked, and room for what functions may do.
bool startServing() {
    if (state().serving) return true;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread{};
    state().serving = pthread_create(&thread, nullptr, serveAll, nullptr) == 0;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (state().serving) pthread_detach(thread);
    return state().serving;
}

/// Its id; 0 where there is no thread to call it.
uint64_t note(const Function& function) {
    const std::lock_guard lock(state().mutex);
    if (!startServing()) return 0;
    state().functions.emplace(++state().lastId, function);
    return state().lastId;
}

/// In a captured stream the function becomes part of a graph, which calls it at every launch.
CUresult launchCaptured(const Context* context, custom::HostCall call, const Function& function) {
    Reply reply;
    if (function.withStatus != nullptr)  // cannot be captured: the driver there says how
        return shim::call(Op::cuStreamQuery, context, bytesOfCall(call.stream), reply);
    call.id = keep(function.plain, function.data);
    if (call.id == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    call.captured = 1;
    return post(Op::cuLaunchHostFunc, context, bytesOfCall(call), call.stream);
}

CUresult launch(const Function& function, CUstream handle, bool perThread) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    custom::HostCall call{};
    Stream* stream = nullptr;
    if (const CUresult result = wireStream(handle, perThread, call.stream, &stream)) return result;
    if (stream != nullptr) context = stream->context;
    if (capture::of(call.stream, stream) != 0) return launchCaptured(context, call, function);
    call.id = note(function);
    if (call.id == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    // Counted before it can be called: from here on copies read what it may write.
    state().outstanding.fetch_add(1);
    const CUresult result = post(Op::cuLaunchHostFunc, context, bytesOfCall(call), call.stream);
    if (result == CUDA_SUCCESS) return result;
    const std::lock_guard lock(state().mutex);
    if (state().functions.erase(call.id) != 0) finished();
    return result;
}

}  // namespace

void arrived(const Callback& callback) {
    const std::lock_guard lock(state().mutex);
    state().arrived.push_back(callback);
    state().due.notify_one();
}

uint64_t keep(CUhostFn function, void* data) {
    return note({function, nullptr, data, nullptr, true});
}

bool kept(uint64_t id, CUhostFn& function, void*& data) {
    const std::lock_guard lock(state().mutex);
    const auto found = state().functions.find(id);
    if (found == state().functions.end()) return false;
    function = found->second.plain;
    data = found->second.data;
    return true;
}

void gate(uint64_t gate, uint64_t function) {
    const std::lock_guard lock(state().mutex);
    state().gates[gate] = function;
}

uint64_t launching() {
    state().outstanding.fetch_add(1);
    const std::lock_guard lock(state().mutex);
    return ++state().lastId;
}

void launched() {
    finished();
}

bool outstanding() {
    return state().outstanding.load(std::memory_order_acquire) != 0;
}

}  // namespace host_functions

namespace {

CUresult launchHostFunc(CUstream stream, CUhostFn function, void* data, bool perThread) {
    if (const CUresult result = session::initialised()) return result;
    if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return host_functions::launch({function, nullptr, data, stream, false}, stream, perThread);
}

CUresult addCallback(CUstream stream, CUstreamCallback function, void* data, unsigned flags,
                     bool perThread) {
    if (const CUresult result = session::initialised()) return result;
    if (function == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    return host_functions::launch({nullptr, function, data, stream, false}, stream, perThread);
}

}  // namespace
}  // namespace juice::shim

using namespace juice::shim;  // NOLINT: every definition below is an entry point

CUresult cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void* userData) {
    return launchHostFunc(hStream, fn, userData, false);
}
CUresult cuLaunchHostFunc_ptsz(CUstream hStream, CUhostFn fn, void* userData) {
    return launchHostFunc(hStream, fn, userData, true);
}
CUresult cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void* userData,
                             unsigned int flags) {
    return addCallback(hStream, callback, userData, flags, false);
}
CUresult cuStreamAddCallback_ptsz(CUstream hStream, CUstreamCallback callback, void* userData,
                                  unsigned int flags) {
    return addCallback(hStream, callback, userData, flags, true);
}

#include "native/shim/session.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>

#include "native/gen/opcodes.h"
#include "native/gen/procaddress.h"
#include "native/gen/results.h"
#include "native/shim/arena.h"
#include "native/shim/broker.h"
#include "native/shim/coherence.h"
#include "native/shim/host_functions.h"
#include "native/shim/objects.h"
#include "native/shim/say.h"
#include "native/shim/visible.h"

namespace juice::shim::session {

namespace detail {
std::atomic<Phase> phase{Phase::fresh};
std::atomic<int> sticky{0};
std::atomic<ClientLink*> link{nullptr};
constinit thread_local bool insideFunction = false;
}  // namespace detail

namespace {

using detail::Phase;

/// Leaked, and replaced rather than repaired in a forked child.
struct State {
    std::mutex mutex;  // around everything below
    bool haveSnapshot = false;
    Snapshot snapshot;
    std::vector<int> devices;
    bool refusalSaid = false;
    std::atomic<bool> lossSaid{false};
};
State* state = new State;

/// In the child of fork(). Other threads of the parent do not exist here, and may have held any
/// lock: nothing of theirs is touched.
void afterForkInChild() {
    if (detail::phase.load() == Phase::fresh && detail::link.load() == nullptr) {
        // Nobody had started anything; but a thread may have been asking the broker.
        if (state->mutex.try_lock())
            state->mutex.unlock();
        else
            state = new State;
        return;
    }
    detail::phase.store(Phase::forked);
    if (ClientLink* const link = detail::link.load()) link->abandon();
}

/// At exit, after the program's own handlers and destructors: says so, or the log would have this
/// process down as killed. Not reached by _exit, nor in the child of a fork that inherited us.
__attribute__((destructor)) void takeLeave() {
    Phase ready = Phase::ready;
    if (!detail::phase.compare_exchange_strong(ready, Phase::left)) return;
    if (ClientLink* const link = detail::link.load()) link->leave();
}

bool watchForks() {
    static const int failed = pthread_atfork(nullptr, nullptr, afterForkInChild);
    return failed == 0;
}

/// Under the lock. The answer of the broker; the snapshot stays good for the life of the process.
CUresult fetchSnapshot() {
    if (state->haveSnapshot) return CUDA_SUCCESS;
    broker::Answer answer = broker::ask(broker::Ask::snapshot);
    if (answer.result != 0) {
        if (!state->refusalSaid) say("%s", answer.sentence.c_str());
        state->refusalSaid = true;
        return static_cast<CUresult>(answer.result);
    }
    state->snapshot = std::move(answer.snapshot);
    state->haveSnapshot = true;
    return CUDA_SUCCESS;
}

/// Called on a thread of the link.
void onFault(int result, uint16_t opcode) {
    const auto code = static_cast<CUresult>(result);
    if (!latch(code)) return;
    const char* const name = resultName(code);
    const char* const sentence = resultSentence(code);
    say("%s: %s (%s); as on any GPU, this process can do no more CUDA work", opName(opcode),
        name == nullptr ? "unknown error" : name, sentence == nullptr ? "?" : sentence);
}

/// As a local driver prints: on the program's own streams, between its own lines.
void onOutput(wire::OutputStream stream, std::string_view text) {
    std::FILE* const to = stream == wire::OutputStream::standard ? stdout : stderr;
    std::fwrite(text.data(), 1, text.size(), to);
}

}  // namespace

CUresult initialise() {
    if (detail::phase.load() == Phase::forked) return CUDA_ERROR_NOT_INITIALIZED;
    if (detail::phase.load() == Phase::left) return CUDA_ERROR_DEINITIALIZED;
    if (detail::phase.load() == Phase::ready) return CUDA_SUCCESS;
    if (!watchForks()) return CUDA_ERROR_OUT_OF_MEMORY;
    const std::lock_guard lock(state->mutex);
    if (detail::phase.load() == Phase::ready) return CUDA_SUCCESS;
    if (const CUresult result = fetchSnapshot()) return result;
    Visible visible = visibleDevices(state->snapshot, std::getenv("CUDA_VISIBLE_DEVICES"));
    if (visible.result != 0) return static_cast<CUresult>(visible.result);
    state->devices = std::move(visible.devices);
    if (state->devices.size() > kMaxDevices) state->devices.resize(kMaxDevices);
    detail::phase.store(Phase::ready, std::memory_order_release);
    return CUDA_SUCCESS;
}

int driverVersion() {
    if (!broker::attached() || detail::phase.load() == Phase::forked) return kProcAddressVersion;
    if (!watchForks()) return kProcAddressVersion;
    const std::lock_guard lock(state->mutex);
    if (fetchSnapshot() != CUDA_SUCCESS) return kProcAddressVersion;
    return std::min(state->snapshot.driverVersion, kProcAddressVersion);
}

int deviceCount() {
    return static_cast<int>(state->devices.size());
}

const DeviceSnapshot* device(int ordinal) {
    if (ordinal < 0 || ordinal >= deviceCount()) return nullptr;
    return &state->snapshot.devices[static_cast<size_t>(workerOrdinal(ordinal))];
}

int workerOrdinal(int ordinal) {
    return state->devices[static_cast<size_t>(ordinal)];
}

int programOrdinal(int ordinal) {
    const auto found = std::find(state->devices.begin(), state->devices.end(), ordinal);
    return static_cast<int>(found - state->devices.begin());
}

bool canAccessPeer(int ordinal, int peer) {
    const size_t index =
        static_cast<size_t>(workerOrdinal(ordinal)) * state->snapshot.devices.size() +
        static_cast<size_t>(workerOrdinal(peer));
    return index < state->snapshot.peer.size() && state->snapshot.peer[index] != 0;
}

CUresult connect() {
    if (const CUresult result = sticky()) return result;
    if (link() != nullptr) return CUDA_SUCCESS;
    const std::lock_guard lock(state->mutex);
    if (const CUresult result = sticky()) return result;
    if (link() != nullptr) return CUDA_SUCCESS;
    const broker::Answer answer = broker::ask(broker::Ask::process);
    if (answer.result != 0) {
        if (latch(static_cast<CUresult>(answer.result))) say("%s", answer.sentence.c_str());
        return sticky();
    }
    arena::reserve();
    ClientHello hello;
    hello.pid = static_cast<uint32_t>(getpid());
    hello.arenas = arena::held();
    std::string error;
    auto made = ClientLink::connect(answer.endpoint, answer.who, hello, error);
    if (made == nullptr) {
        if (latch(CUDA_ERROR_DEVICE_UNAVAILABLE)) say("%s", error.c_str());
        return sticky();
    }
    whisper("connected to %s:%u, %s", answer.endpoint.host.c_str(), answer.endpoint.port,
            made->welcome().worker.c_str());
    made->onFault(onFault);
    made->onOutput(onOutput);
    coherence::attach(*made);
    made->onCallback(host_functions::arrived);
    detail::link.store(made.release(), std::memory_order_release);
    return CUDA_SUCCESS;
}

bool latch(CUresult result) {
    int none = 0;
    return detail::sticky.compare_exchange_strong(none, result);
}

CUresult lost() {
    // A thread that was still at work when another one ended the program.
    if (detail::phase.load() == Phase::left) return CUDA_ERROR_DEINITIALIZED;
    ClientLink* const lost = link();
    latch(CUDA_ERROR_DEVICE_UNAVAILABLE);
    if (lost != nullptr && !state->lossSaid.exchange(true))
        say("%s; all further CUDA calls fail: start the program again", lost->reason().c_str());
    return sticky();
}

void installForTest(Snapshot snapshot, std::unique_ptr<ClientLink> link) {
    delete detail::link.exchange(nullptr);
    detail::sticky = 0;
    state = new State;
    detail::phase = link == nullptr ? Phase::fresh : Phase::ready;
    if (link == nullptr) return;
    state->snapshot = std::move(snapshot);
    state->haveSnapshot = true;
    state->devices = visibleDevices(state->snapshot, nullptr).devices;
    link->onFault(onFault);
    coherence::attach(*link);
    link->onCallback(host_functions::arrived);
    detail::link = link.release();
}

}  // namespace juice::shim::session

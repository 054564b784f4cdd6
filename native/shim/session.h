// What this process is to Juice: not initialised, attached to devices, connected to its worker, or
// the child of a process that was.
#pragma once

#include <atomic>
#include <memory>

#include "native/abi/cuda_result.h"
#include "native/link/client_link.h"
#include "native/link/snapshot.h"

namespace juice::shim::session {

/// cuInit. Asks the broker what devices there are; starts nothing.
CUresult initialise();

namespace detail {
enum class Phase : int { fresh, ready, forked, left };
extern std::atomic<Phase> phase;
extern std::atomic<int> sticky;
extern std::atomic<ClientLink*> link;
/// The thread is running a function that a stream of the worker waits for: see host_functions.h.
extern constinit thread_local bool insideFunction;
}  // namespace detail

/// While it lives, the thread may make a call that is allowed in functions of streams as well.
class EvenInFunction {
  public:
    explicit EvenInFunction(bool allowed) : inside_(detail::insideFunction) {
        if (allowed) detail::insideFunction = false;
    }
    ~EvenInFunction() { detail::insideFunction = inside_; }
    EvenInFunction(const EvenInFunction&) = delete;
    EvenInFunction& operator=(const EvenInFunction&) = delete;

  private:
    const bool inside_;
};

/// CUDA_ERROR_NOT_INITIALIZED unless cuInit has succeeded in this very process: as CUDA defines it,
/// the child of an initialised parent is never initialised. CUDA_ERROR_DEINITIALIZED once the
/// process is ending and the driver has taken its leave; CUDA_ERROR_NOT_PERMITTED in a function of
/// the program that a stream calls.
inline CUresult initialised() {
    const detail::Phase phase = detail::phase.load(std::memory_order_acquire);
    if (phase == detail::Phase::ready)
        return detail::insideFunction ? CUDA_ERROR_NOT_PERMITTED : CUDA_SUCCESS;
    return phase == detail::Phase::left ? CUDA_ERROR_DEINITIALIZED : CUDA_ERROR_NOT_INITIALIZED;
}

/// What cuDriverGetVersion answers, before and after cuInit: the worker's driver's version, but no
/// more than the API that this library implements.
int driverVersion();

/// After cuInit: the program's devices.
int deviceCount();
/// The facts of one; null when there is no such device.
const DeviceSnapshot* device(int ordinal);
/// Its number in the worker, which counts all devices of the session.
int workerOrdinal(int ordinal);
/// The way back.
int programOrdinal(int workerOrdinal);
/// cuDeviceCanAccessPeer
bool canAccessPeer(int ordinal, int peer);

/// Connects to the worker unless that has been done. On failure says why, once, and returns what
/// every later call will return as well.
CUresult connect();
/// Null until connect() has succeeded.
inline ClientLink* link() {
    return detail::link.load(std::memory_order_acquire);
}

/// The error that has ended this process's use of the GPU, or 0.
inline CUresult sticky() {
    return static_cast<CUresult>(detail::sticky.load(std::memory_order_relaxed));
}
/// Ends it: all threads' later calls return `result`. The first one stays. True for that one.
bool latch(CUresult result);
/// The link has failed: latches CUDA_ERROR_DEVICE_UNAVAILABLE and says why, once.
CUresult lost();

/// For tests, which play several programs in one process: as after cuInit and connect(), with this
/// snapshot and this link; or, without a link, as at the start.
void installForTest(Snapshot snapshot, std::unique_ptr<ClientLink> link);

}  // namespace juice::shim::session

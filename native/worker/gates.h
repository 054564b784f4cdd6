// Where streams stop for the client's functions: each stops at a value in pinned memory that the
// client's answer writes. No thread of the driver is ever blocked for it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "native/gen/driver_table.h"

namespace juice::worker {

/// Opened by the executor, released by any thread.
class Gates {
  public:
    explicit Gates(const DriverTable& driver) : driver_(driver) {}

    /// A gate for the context, which must be current; on an error there is none. The client is told
    /// of it next, and may release it from then on.
    CUresult open(uint64_t id, CUcontext context);
    /// The stream waits until release(id); not at all where that has been.
    CUresult stop(uint64_t id, CUstream stream);
    /// Ignored where no gate of this id is open: its context may have ended.
    void release(uint64_t id);
    bool isOpen(uint64_t id);
    /// Returns when no gate is open: before calls of the driver that wait for streams while they
    /// hold the driver's locks, which those who tell the client need as well.
    void drain();
    /// Two words that begin as 0 and are the caller's: for the stops of graphs. They live as long
    /// as the context, and are used again after givePair().
    struct Pair {
        uint64_t gate = 0;  // a name for it that no stream's gate has
        CUcontext context = nullptr;
        uint32_t* host = nullptr;
        CUdeviceptr device = 0;
    };
    CUresult takePair(CUcontext context, Pair& out);
    void givePair(const Pair& pair);
    /// The context, current, is about to be destroyed.
    void forget(CUcontext context);

  private:
    /// A word of memory that streams compare with ever larger values, cyclically: so one that a
    /// stream has yet to look at may serve the next.
    struct Word {
        CUcontext context;
        uint32_t* host;
        CUdeviceptr device;
        uint32_t last = 0;
    };
    static constexpr size_t kPage = 64 << 10, kApart = 64;
    CUresult takeWord(CUcontext context, Word& out);

    const DriverTable& driver_;
    std::mutex mutex_;
    std::condition_variable closed_;
    std::unordered_map<uint64_t, Word> open_;
    std::map<CUcontext, std::vector<Word>> spare_;
    std::multimap<CUcontext, void*> pages_;
    uint64_t lastPair_ = uint64_t{1} << 63;
};

}  // namespace juice::worker

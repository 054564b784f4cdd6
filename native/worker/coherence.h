// Mirrors that are kept the same as the client's memory although device code reads and writes them
// itself: what the client has changed comes as patches, and what the device has changed is found by
// comparing with a shadow, once a watch has come to its end, and every now and then while one has
// not, for kernels that talk with the CPU while they run. See wire.h, "Coherence".
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "native/abi/cuda_result.h"
#include "native/link/delta.h"
#include "native/link/server_link.h"

namespace juice::worker {

class Coherence {
  public:
    explicit Coherence(ServerLink& link);
    ~Coherence();

    struct Life {
        bool fresh = true;  // it is made zero, as the shadow is; else what it holds is sent
        bool often = true;  // changes are looked for also while watches run
    };
    /// The memory begins its coherent life.
    CUresult add(uint64_t begin, uint64_t size, uint32_t context, Life life);
    /// Before the memory goes. What the device has changed in it is sent. False when it never was
    /// coherent.
    bool remove(uint64_t begin);
    void removeOf(uint32_t context);
    bool holds(uint64_t begin) const;
    /// Is there any such memory? One load.
    bool any() const { return count_.load(std::memory_order_acquire) != 0; }

    /// A watch begins; it is over. Any thread; neither waits for anybody.
    void watch();
    void watched();
    /// Sends what the device has changed, watched or not: a stream has stopped for the client.
    void sendNow() {
        if (any()) sendChanges(true);
    }
    /// Before an answer: sends what the device has changed, when a watch has come to its end.
    void deliver() {
        if (told_.load(std::memory_order_acquire) != watched_.load(std::memory_order_acquire))
            sendChanges(true);
    }

  private:
    struct One {
        One(uint64_t begin, uint64_t size, uint32_t of, bool scannedOften)
            : shadow(begin, size), context(of), often(scannedOften) {}
        delta::Shadow shadow;
        uint32_t context;
        bool often;
    };
    std::string receive(Bytes pieces);
    /// `all`: also where they are not looked for often, unless no watch has come to its end.
    void sendChanges(bool all);
    /// With scanning_ held.
    void scan(One& one, uint64_t watched, Writer& patch);
    void removeLocked(std::map<uint64_t, std::unique_ptr<One>>::iterator at);
    void keepSending();

    ServerLink& link_;
    std::atomic<size_t> count_{0};
    std::atomic<uint64_t> watches_{0}, watched_{0}, told_{0};

    /// Held while changes are looked for and sent, so that they leave in the order in which they
    /// were found. Taken before shadows_.
    std::mutex scanning_;
    /// Around the map and the shadows; never while sending, since the reading thread takes it.
    mutable std::mutex shadows_;
    std::map<uint64_t, std::unique_ptr<One>> live_;

    std::mutex idle_;
    std::condition_variable begun_;
    bool stopping_ = false;
    std::thread sender_;  // started with the first memory
};

}  // namespace juice::worker

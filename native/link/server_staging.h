// Transfers to a worker: the slots that chunks are received into, the credit for them, and the
// chunks that wait for the executor. Safe on any thread; nothing is sent with the lock held.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "native/link/coverage.h"
#include "native/link/frame.h"

namespace juice {

class Staging {
  public:
    /// `credit` sends a Credit frame {bytes, transfer}.
    Staging(const std::vector<void*>& slots, std::function<void(uint64_t, uint64_t)> credit);

    /// Bytes that the Welcome offers.
    uint64_t window() const { return window_; }

    // What lanes do. A sentence on a violation.
    std::string beginChunk(const wire::Header& header, const ChunkHead& head, size_t bytes,
                           size_t& slot);
    void endChunk(size_t slot);
    uint8_t* memory(size_t slot) const { return static_cast<uint8_t*>(slots_[slot].memory); }

    // What the executor does.
    struct Piece {
        uint64_t offset;
        void* slot;
        size_t bytes;
    };
    /// A transfer is wanted; a sentence when what has come of it does not fit, or when it is not to
    /// be had.
    std::string open(uint64_t transfer, uint64_t size);
    /// The next piece, if there is one.
    bool next(uint64_t transfer, Piece& out);
    /// Sleeps until a piece is there or the link is over. Grants credit to a starving transfer.
    void await(uint64_t transfer);
    void finish(uint64_t transfer);
    void release(void* slot);

    /// The link is over: nobody waits any more.
    void close();

  private:
    struct Slot {
        void* memory;
        bool reserve = false;  // of the chunk in it: came under a grant
        uint64_t transfer = 0, offset = 0;
        size_t bytes = 0;
    };
    struct Incoming {
        uint64_t size = 0;
        bool open = false;
        uint64_t reach = 0;    // end of the furthest chunk
        uint64_t granted = 0;  // slots granted and not used
        Coverage begun;
        std::deque<size_t> ready;  // slots with whole chunks, in order of arrival
    };
    uint64_t grantFor(const Incoming& incoming) const;

    const std::function<void(uint64_t, uint64_t)> credit_;
    uint64_t window_;
    uint64_t creditEvery_;  // bytes

    std::mutex mutex_;
    std::condition_variable arrived_;
    bool closed_ = false;
    std::vector<Slot> slots_;
    std::unordered_map<void*, size_t> slotOf_;
    std::vector<size_t> free_;
    uint64_t credited_;      // bytes that the client may still send
    uint64_t returned_ = 0;  // bytes released and not yet credited
    uint64_t reserve_;       // slots that may be granted
    std::unordered_map<uint64_t, Incoming> transfers_;
    std::unordered_set<uint64_t> complete_;  // the last few
    std::deque<uint64_t> completeOrder_;
};

}  // namespace juice

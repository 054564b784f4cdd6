// Transfers from a worker: pieces of its memory cut into chunks. Large transfers go over the bulk
// lanes, small ones, and all while there is no bulk lane, over the command lane by a thread of its
// own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "native/link/frame.h"
#include "native/link/socket.h"

namespace juice {

class ServerOutflow {
  public:
    /// The next ordinal. `size` 0: nothing is going to be sent; the last ordinal given.
    uint64_t begin(uint64_t size);
    /// The last ordinal given: what a Reply presupposes.
    uint64_t begun() const { return lastOrdinal_.load(std::memory_order_acquire); }

    void add(uint64_t transfer, uint64_t ordinal, uint64_t offset, const void* data, size_t bytes,
             bool bulk, std::function<void()> done);

    /// The body of a sender thread, until the link is over. `send` puts header, chunk header and
    /// data on the wire and is false when the lane has failed.
    using Send = std::function<bool(iovec (&parts)[3])>;
    void serveCommandLane(const Send& send) { serve(false, send); }
    void serveBulkLane(const Send& send) { serve(true, send); }
    void laneReady();

    /// The link is over: senders end; the `done` of what was not sent is called by them or here.
    void close();

  private:
    struct Piece {
        uint64_t transfer, ordinal, offset;
        const uint8_t* data;
        size_t bytes;
        std::function<void()> done;
        size_t next = 0;  // bytes taken so far
        int sending = 0;
    };
    using PieceRef = std::shared_ptr<Piece>;
    std::deque<PieceRef>* queueFor(bool bulkLane);
    void serve(bool bulkLane, const Send& send);

    std::atomic<uint64_t> lastOrdinal_{0};
    std::mutex mutex_;
    std::condition_variable work_;
    bool closed_ = false;
    int lanes_ = 0;
    std::deque<PieceRef> small_, bulk_;
};

}  // namespace juice

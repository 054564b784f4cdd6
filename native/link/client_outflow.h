// Transfers from a client: pieces of the program's memory cut into chunks, sent under the worker's
// credit over the bulk lanes, or over the command lane by the thread that wants them sent.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <unordered_map>

#include "native/link/client_desk.h"
#include "native/link/client_outbox.h"
#include "native/link/frame.h"

namespace juice {

class Outflow {
  public:
    Outflow(Desk& desk, Outbox& outbox, uint64_t window)
        : desk_(desk), outbox_(outbox), window_(window), credit_(window) {}

    uint64_t mint();
    /// Sends all; on return the memory is free again. `bulk`: leave it to the bulk lanes once there
    /// are any.
    void send(uint64_t transfer, const void* source, uint64_t size, bool bulk);

    /// With the desk's lock held: the worker gives credit (transfer 0) or a grant. A sentence on a
    /// violation.
    std::string credit(uint64_t bytes, uint64_t transfer);

    /// The body of a bulk lane's sender: sends chunks until the link is over. `failed` is told
    /// errno.
    void serve(int fd, const std::function<void(int)>& failed);
    /// A bulk lane is ready to be served.
    void laneReady();
    /// After the desk has been closed: wakes the senders.
    void close();

    uint64_t bytesSent() const { return bytesSent_.load(std::memory_order_relaxed); }

  private:
    struct Job {
        uint64_t transfer;
        const uint8_t* from;
        uint64_t size;
        bool bulk;
        uint64_t next = 0;    // offset of the next chunk
        uint64_t unsent = 0;  // bytes not yet in the kernel's hands
        int sending = 0;      // chunks being sent right now
    };
    struct Chunk {
        Job* job = nullptr;
        wire::Header header{};
        ChunkHead head{};
        size_t size = 0;
        /// Header, chunk header and data, ready to be sent.
        void parts(iovec (&out)[3]);
    };

    bool payable(const Job& job) const;
    Chunk take(Job& job, size_t most);
    void sent(const Chunk& chunk);
    Job* nextBulkJob();
    void sendOnCommandLane(Job& job, std::unique_lock<std::mutex>& lock);

    Desk& desk_;
    Outbox& outbox_;
    const uint64_t window_;
    // guarded by desk_.state:
    uint64_t credit_;
    uint64_t lastTransfer_ = 0;
    int lanes_ = 0;  // ready bulk lanes
    std::list<Job*> jobs_;
    std::unordered_map<uint64_t, uint64_t>
        grants_;                    // transfers minted and not yet sent -> bytes granted
    std::condition_variable work_;  // for bulk senders
    std::atomic<uint64_t> bytesSent_{0};
};

}  // namespace juice

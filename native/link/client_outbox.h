// What a client sends on its command lane: Calls in ticket order, gathered in a batch. A batch
// leaves when somebody waits for an answer, when it has grown, or when the flusher finds it
// lingering.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "native/link/codec.h"
#include "native/link/socket.h"
#include "native/link/wire.h"

namespace juice {

class Outbox {
  public:
    /// `failed` is told errno when the socket fails, on the sending thread, once or more.
    Outbox(int fd, std::function<void(int)> failed) : fd_(fd), failed_(std::move(failed)) {}

    /// The batch lock is the ticket: who holds it appends the next Call.
    using Ticket = std::unique_lock<std::mutex>;
    Ticket ticket() { return Ticket(batch_); }

    /// May `size` more bytes of Call go out, or are too many unexecuted? With the ticket held or
    /// not.
    bool roomFor(size_t size) const {
        return appended_.load(std::memory_order_relaxed) + size <=
               executedBytes_.load(std::memory_order_relaxed) + wire::kCallWindow;
    }
    uint64_t mintRequest(const Ticket&) { return ++lastRequest_; }
    /// Appends a Call; the sequence number is filled in. Release the ticket, then nudge() or
    /// flush().
    void append(const Ticket&, wire::Header header, Bytes payload);
    /// Appends a whole immediate frame.
    void appendFrame(Bytes frame);

    /// After an append that nobody waits for: sends a batch that has grown, wakes a sleeping
    /// flusher.
    void nudge();
    /// On return all that was appended before is in the kernel's hands, or the link is broken.
    void flush() { send(nullptr, 0); }
    /// The same, with more parts behind the batch in the same breath. `parts` is used up.
    void send(iovec* parts, int count);

    /// The worker has executed every Call up to `sequence`. False when no such Call was ever sent.
    bool executed(uint64_t sequence);
    uint64_t lastSequence() const { return lastSequence_.load(std::memory_order_relaxed); }

    /// Sends a frame as far as that goes without waiting for anything: what is said before hanging
    /// up.
    void trySay(Bytes frame);
    /// Whether the locks can be had within so long. They cannot when the calling thread holds them
    /// itself: a signal handler that ends the program in the middle of a call.
    bool canSpeak(int64_t nanos);
    /// From now on a slow peer is waited for no longer than this: what is said last.
    void hurry(int64_t nanos);
    /// The link is over: nothing more is sent.
    void close();
    /// The body of the flusher thread; ends after close().
    void linger();

    uint64_t bytesSent() const { return bytesSent_.load(std::memory_order_relaxed); }
    uint64_t flushes() const { return flushes_.load(std::memory_order_relaxed); }

  private:
    /// Bytes that grow without being cleared first.
    class Batch {
      public:
        void add(const void* data, size_t size);
        void clear() { size_ = 0; }
        uint8_t* data() { return bytes_.get(); }
        size_t size() const { return size_; }

      private:
        std::unique_ptr<uint8_t[]> bytes_;
        size_t size_ = 0, capacity_ = 0;
    };
    /// What had been appended when a batch was cut.
    struct Mark {
        uint64_t sequence, bytes;
    };

    const int fd_;
    const std::function<void(int)> failed_;
    std::atomic<bool> closed_{false};
    std::atomic<int64_t> deadline_{INT64_MAX};

    std::mutex socket_;  // held while sending; taken before batch_
    Batch sending_;

    std::mutex batch_;
    Batch gathering_;
    std::deque<Mark> marks_;
    uint64_t lastRequest_ = 0;
    uint64_t lastExecuted_ = 0;
    uint64_t lastSent_ = 0;
    std::condition_variable wake_;

    std::atomic<bool> asleep_{false};  // the flusher; changed with batch_ held
    std::atomic<size_t> gathered_{0};  // bytes in gathering_
    std::atomic<uint64_t> lastSequence_{0};
    std::atomic<uint64_t> appended_{0}, executedBytes_{0};  // bytes of Calls since the beginning
    std::atomic<uint64_t> bytesSent_{0}, flushes_{0};
};

}  // namespace juice

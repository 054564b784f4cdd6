// Transfers to a client: memory that it has announced, and the chunks that fill it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "native/link/coverage.h"
#include "native/link/frame.h"

namespace juice {

/// Memory that one transfer fills.
struct Expectation {
    uint64_t transfer = 0;
    uint8_t* to = nullptr;
    uint64_t size = 0;
    uint64_t ordinal = 0;  // 0 until the first chunk has come
    uint64_t filled = 0;   // bytes of whole chunks
    Coverage begun;        // bytes of chunks that have begun
    std::atomic<bool> withdrawn{false};
    std::atomic<int> writers{0};
};
using ExpectationRef = std::shared_ptr<Expectation>;

/// All methods take the lock that they are given except where they say otherwise.
class Inflow {
  public:
    explicit Inflow(std::mutex& state) : state_(state) {}

    uint64_t expect(void* destination, uint64_t size);
    bool landed(uint64_t transfer) const;
    /// On return nobody writes into the memory any more.
    void cancel(uint64_t transfer);
    /// The link is over: on return nobody writes into any memory any more. Takes the lock.
    void close();

    /// With the lock held: every transfer up to `ordinal` has landed.
    bool landedThrough(uint64_t ordinal) const { return ordinal <= through_; }
    /// With the lock held: may a worker have started so many transfers?
    bool plausible(uint64_t ordinal) const { return ordinal <= lastTransfer_; }

    /// A chunk begins; a sentence on a violation.
    std::string beginChunk(const ChunkHead& head, size_t bytes, ExpectationRef& out);
    /// Its bytes are there. True when that completes the transfer. With the lock held.
    bool endChunk(Expectation& expectation, size_t bytes);
    /// Around each write into the memory, without the lock: false forbids it.
    bool beginWrite(Expectation& expectation);
    void endWrite(Expectation& expectation);

  private:
    void land(uint64_t ordinal);
    static void withdraw(Expectation& expectation);

    std::mutex& state_;
    bool closed_ = false;
    uint64_t lastTransfer_ = 0;
    std::unordered_map<uint64_t, ExpectationRef> open_;
    std::unordered_map<uint64_t, uint64_t> ordinals_;  // of transfers begun -> transfer
    uint64_t through_ = 0;
    std::set<uint64_t> ahead_;  // ordinals that have landed before an earlier one
};

/// One lane's chunk in progress.
class ChunkWriter {
  public:
    explicit ChunkWriter(Inflow& inflow) : inflow_(inflow) {}
    std::string begin(const ChunkHead& head, size_t bytes, uint8_t*& target) {
        std::string violation = inflow_.beginChunk(head, bytes, expectation_);
        if (violation.empty()) {
            target = expectation_->to + head.offset;
            bytes_ = bytes;
        }
        return violation;
    }
    bool beginWrite() { return inflow_.beginWrite(*expectation_); }
    void endWrite() { inflow_.endWrite(*expectation_); }
    /// With the lock held; true when the transfer is complete.
    bool end() { return inflow_.endChunk(*std::exchange(expectation_, nullptr), bytes_); }

  private:
    Inflow& inflow_;
    ExpectationRef expectation_;
    size_t bytes_ = 0;
};

}  // namespace juice

// Turns the bytes of one lane into frames. It reads without blocking, so that several threads may
// take turns on it; whoever does must be alone. The data of chunks goes straight from the socket to
// where it belongs. Payloads of other frames lie in a segment, which lives for as long as somebody
// holds it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "native/link/codec.h"
#include "native/link/frame.h"
#include "native/link/wire.h"

namespace juice {

/// Received bytes, shared by the stream and by whoever still needs a payload in them.
struct Segment {
    explicit Segment(size_t size) : bytes(new uint8_t[size]), capacity(size) {}
    std::unique_ptr<uint8_t[]> bytes;
    size_t capacity;
    std::atomic<uint32_t> holders{0};
};

class SegmentRef {
  public:
    SegmentRef() = default;
    explicit SegmentRef(Segment* segment) : segment_(segment) { hold(); }
    SegmentRef(const SegmentRef& other) : segment_(other.segment_) { hold(); }
    SegmentRef(SegmentRef&& other) noexcept : segment_(std::exchange(other.segment_, nullptr)) {}
    SegmentRef& operator=(SegmentRef other) noexcept {
        std::swap(segment_, other.segment_);
        return *this;
    }
    ~SegmentRef() {
        if (segment_ != nullptr && segment_->holders.fetch_sub(1, std::memory_order_acq_rel) == 1)
            delete segment_;  // NOLINT(clang-analyzer-cplusplus.NewDelete): it cannot count
    }
    Segment* operator->() const { return segment_; }
    explicit operator bool() const { return segment_ != nullptr; }
    /// Nobody else holds it, and what others read of it they have read.
    bool alone() const { return segment_->holders.load(std::memory_order_acquire) == 1; }

  private:
    void hold() {
        if (segment_ != nullptr) segment_->holders.fetch_add(1, std::memory_order_relaxed);
    }
    Segment* segment_ = nullptr;
};

/// What is done with the frames of a lane. Every method answers with a sentence on a violation.
class FrameSink {
  public:
    virtual ~FrameSink() = default;
    /// A whole frame, not a chunk. `payload` lies in `segment`.
    virtual std::string frame(const wire::Header& header, Bytes payload,
                              const SegmentRef& segment) = 0;
    /// A chunk begins: says where its `bytes` go.
    virtual std::string beginChunk(const wire::Header& header, const ChunkHead& head, size_t bytes,
                                   uint8_t*& target) = 0;
    /// Before each write into a chunk's target: false forbids it. endWrite follows a granted one.
    virtual bool beginWrite() { return true; }
    virtual void endWrite() {}
    /// All of the chunk's bytes are there.
    virtual std::string endChunk() = 0;
};

class FrameStream {
  public:
    /// `lane`: 0 reads ahead; a bulk lane reads no more than the next header, so that no data has
    /// to be copied.
    FrameStream(FrameSink& sink, From peer, uint16_t lane)
        : sink_(sink), peer_(peer), lane_(lane) {}

    enum class Got { some, nothing, closed, failed, violation };
    /// Receives once, without blocking, and hands on every frame that is complete. After `failed`
    /// errno, after `violation` sentence() says why; the stream is then of no further use.
    Got pump(int fd);
    /// The same for bytes that are already here.
    Got feed(Bytes bytes);

    const std::string& sentence() const { return sentence_; }
    /// Bytes so far; may be asked on any thread.
    uint64_t received() const { return received_.load(std::memory_order_relaxed); }

  private:
    size_t wanted() const;
    void makeRoom();
    Got parse();
    Got wrong(std::string sentence);
    Got pumpChunk(int fd);
    bool writeChunk(const uint8_t* from, size_t size);

    FrameSink& sink_;
    const From peer_;
    const uint16_t lane_;
    SegmentRef segment_;
    size_t parsed_ = 0, filled_ = 0;
    uint8_t* chunk_ = nullptr;  // where the rest of the present chunk goes
    size_t chunkLeft_ = 0;
    std::atomic<uint64_t> received_{0};
    std::string sentence_;
};

}  // namespace juice

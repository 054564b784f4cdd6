// The worker's end of a link, put together. Whoever has the turn reads the command lane: the
// executor while it is in next(), the relief thread while the executor has been away for a while.
// Calls go into one queue; everything else is dealt with on the spot.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "native/link/frame_stream.h"
#include "native/link/server_link.h"
#include "native/link/server_outflow.h"
#include "native/link/server_staging.h"
#include "native/link/thread.h"

namespace juice {

/// A lane's chunk in progress.
class SlotWriter {
  public:
    explicit SlotWriter(Staging& staging) : staging_(staging) {}
    std::string begin(const wire::Header& header, const ChunkHead& head, size_t bytes,
                      uint8_t*& target) {
        std::string violation = staging_.beginChunk(header, head, bytes, slot_);
        if (violation.empty()) target = staging_.memory(slot_);
        return violation;
    }
    void end() { staging_.endChunk(slot_); }

  private:
    Staging& staging_;
    size_t slot_ = 0;
};

class Server final : public ServerLink, private FrameSink {
  public:
    Server(Options options, uint8_t arena, uint32_t clientPid, bool takesOutput);
    ~Server() override;
    bool start();
    uint64_t window() const { return staging_.window(); }

    uint8_t arena() const override { return arena_; }
    uint32_t clientPid() const override { return clientPid_; }
    Next next(Call& out, int spinMicros, int waitMillis) override;
    void busy() override;
    void idle() override;
    void reply(const wire::Header& to, wire::ReplyHead head, Bytes payload) override;
    void fault(int result, uint16_t opcode) override;
    void callback(uint64_t id, int result, uint32_t kind) override;
    void onAnswers(Answers answers) override;
    void executed(const wire::Header& call) override;
    void addLane(int fd, const wire::Preface& preface) override;
    bool receive(uint64_t transfer, uint64_t size,
                 const std::function<void(uint64_t, void*, size_t)>& consume) override;
    void release(void* slot) override { staging_.release(slot); }
    uint64_t beginSend(uint64_t transfer, uint64_t size) override;
    void sendPiece(uint64_t transfer, uint64_t ordinal, uint64_t offset, const void* data,
                   size_t bytes, std::function<void()> done) override;
    void patch(uint64_t watches, Bytes pieces) override;
    void output(wire::OutputStream stream, std::string_view text) override;
    void onPatch(std::function<std::string(Bytes)> handler) override;
    Ending ending() const override { return ending_.load(std::memory_order_acquire); }
    std::string reason() const override;
    uint64_t bytesIn() const override;
    uint64_t bytesOut() const override { return bytesOut_.load(std::memory_order_relaxed); }
    void goodbye(wire::GoodbyeReason reason, std::string_view sentence) override;

  private:
    struct Queued {
        wire::Header header{};
        Bytes payload;
        SegmentRef segment;
    };
    class Lane final : public FrameSink {
      public:
        Lane(Server& server, int fd, const wire::Preface& preface)
            : server_(server),
              fd_(fd),
              preface_(preface),
              stream_(*this, From::client, preface.lane),
              writer_(server.staging_) {}
        ~Lane() override;
        bool start();
        void shut();
        uint64_t received() const { return stream_.received(); }

        std::string frame(const wire::Header&, Bytes payload, const SegmentRef&) override;
        std::string beginChunk(const wire::Header& header, const ChunkHead& head, size_t bytes,
                               uint8_t*& target) override {
            return writer_.begin(header, head, bytes, target);
        }
        std::string endChunk() override {
            writer_.end();
            return {};
        }

      private:
        void run();
        Server& server_;
        const int fd_;
        const wire::Preface preface_;
        FrameStream stream_;
        SlotWriter writer_;
        Thread receiver_, sender_;
    };

    // reading
    std::string frame(const wire::Header&, Bytes payload, const SegmentRef&) override;
    std::string beginChunk(const wire::Header& header, const ChunkHead& head, size_t bytes,
                           uint8_t*& target) override {
        return writer_.begin(header, head, bytes, target);
    }
    std::string endChunk() override {
        writer_.end();
        return {};
    }
    std::string onCall(const wire::Header& header, Bytes payload, const SegmentRef& segment);
    std::string onAck(Bytes payload);
    std::string onPatchFrame(Bytes payload);
    std::string onAnswer(wire::Kind kind, Bytes payload);
    /// One turn at the command lane, if it is free: anything but `some` when there is nothing to
    /// do.
    FrameStream::Got turn();
    bool dequeue(Call& out);
    void block(int64_t deadline);
    void relieve();
    void restReliever();

    // sending
    template <typename Prepare>
    bool sendInTurn(iovec* parts, int count, const Prepare& prepare);
    bool sendParts(iovec* parts, int count);
    void sendFrame(Bytes frame);
    void retire(uint64_t sequence, size_t bytes);

    void laneEnded(FrameStream::Got got, const std::string& lane, const std::string& sentence);
    void bulkLaneEnded(FrameStream::Got got, const std::string& lane, const std::string& sentence);
    void finish(Ending ending, const std::string& why);

    const int fd_;
    const Credentials who_;
    const uint8_t arena_;
    const uint32_t clientPid_;
    const bool takesOutput_;
    const std::function<void()> onEnding_;

    Staging staging_;
    ServerOutflow outflow_;
    FrameStream stream_;
    SlotWriter writer_;
    Thread reliever_, sender_;

    std::atomic<bool> reading_{false};  // somebody has the turn
    std::atomic<bool> inside_{false};   // the executor is in next()
    std::atomic<bool> blocked_{false};  // ... and in poll
    std::atomic<int64_t> outsideSince_{0}, blockedSince_{0};
    std::mutex rest_;
    std::condition_variable restEnds_;
    std::atomic<bool> resting_{false};

    // of the reading thread:
    uint64_t lastCall_ = 0, lastRequest_ = 0, lastAck_ = 0;

    std::mutex patchMutex_;
    std::function<std::string(Bytes)> patchHandler_;

    std::mutex queueMutex_;
    std::deque<Queued> queue_;
    size_t queuedBytes_ = 0;
    std::atomic<size_t> queued_{0};
    std::atomic<uint64_t> received_{0};  // last Call

    std::mutex answersMutex_;
    Answers answers_;

    // of the executor:
    Queued current_;
    size_t unackedBytes_ = 0;

    std::atomic<uint64_t> executed_{0}, told_{0};  // Calls; told: as far as the client knows
    std::mutex sending_;
    std::atomic<uint64_t> lastReply_{0};
    std::atomic<uint64_t> bytesOut_{0};
    std::atomic<int64_t> lastWord_{INT64_MAX};  // when to give up on a slow client
    std::mutex largeMutex_;
    std::unordered_map<uint64_t, uint64_t> large_;  // ordinals for the bulk lanes -> bytes to come

    mutable std::mutex endingMutex_;
    std::vector<std::unique_ptr<Lane>> lanes_;
    std::string reason_;
    std::atomic<Ending> ending_{Ending::open};
    std::atomic<bool> over_{false};
};

}  // namespace juice

// The client's end of a link, put together: the outbox sends, the desk reads and waits, inflow and
// outflow move bulk data, and the bulk lanes have threads of their own.
//
// Locks, in the order in which they are taken: outbox socket, outbox ticket, desk state. No lock is
// held while a socket is read.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "native/link/client_desk.h"
#include "native/link/client_inflow.h"
#include "native/link/client_link.h"
#include "native/link/client_outbox.h"
#include "native/link/client_outflow.h"
#include "native/link/frame_stream.h"
#include "native/link/thread.h"

namespace juice {

class Client final : public ClientLink, private FrameSink {
  public:
    /// `fd`: the command lane after its handshake; owned. `lanes`: bulk lanes to open when needed.
    Client(int fd, Endpoint endpoint, Credentials who, Welcome welcome, int lanes);
    ~Client() override;
    bool start();

    const Welcome& welcome() const override { return welcome_; }
    void post(uint16_t opcode, uint32_t thread, uint32_t context, Bytes payload) override;
    Reply call(uint16_t opcode, uint32_t thread, uint32_t context, Bytes payload) override;
    uint64_t ask(uint16_t opcode, uint32_t thread, uint32_t context, Bytes payload) override;
    Reply take(uint64_t request) override;
    uint64_t expect(void* destination, size_t size) override;
    bool landed(uint64_t transfer) const override { return inflow_.landed(transfer); }
    void cancel(uint64_t transfer) override { inflow_.cancel(transfer); }
    uint64_t mintTransfer() override { return outflow_.mint(); }
    void send(uint64_t transfer, const void* source, size_t size) override;
    void onFault(std::function<void(int, uint16_t)> handler) override;
    void patch(Bytes pieces) override;
    void onPatch(PatchHandler handler) override;
    void onOutput(OutputHandler handler) override;
    void onCallback(std::function<void(const Callback&)> handler) override;
    bool awaitLanded(uint64_t ordinal) override;
    void write(uint64_t address, const void* source, size_t size) override;
    void called(uint64_t id) override;
    bool broken() const override { return desk_.closed(); }
    std::string reason() const override;
    void close() override;
    void abandon() override;
    void leave() override;
    Counters counters() const override;

  private:
    /// An asked or waited Call.
    struct Pending {
        uint16_t opcode;
        bool arrived = false;
        Reply reply;
    };
    /// A further connection for chunks; it dials, proves the key and then serves until the link
    /// ends.
    class Lane final : public FrameSink {
      public:
        Lane(Client& client, uint16_t number)
            : client_(client),
              number_(number),
              stream_(*this, From::worker, number),
              writer_(client.inflow_) {}
        bool start();
        void join();
        void shut();
        void abandon();
        uint64_t received() const { return stream_.received(); }

        std::string frame(const wire::Header&, Bytes payload, const SegmentRef&) override;
        std::string beginChunk(const wire::Header&, const ChunkHead&, size_t, uint8_t*&) override;
        bool beginWrite() override { return writer_.beginWrite(); }
        void endWrite() override { writer_.endWrite(); }
        std::string endChunk() override;

      private:
        bool dial();
        void run();

        Client& client_;
        const uint16_t number_;
        FrameStream stream_;
        ChunkWriter writer_;
        std::atomic<int> fd_{-1};
        Thread receiver_, sender_;
    };

    std::string frame(const wire::Header&, Bytes payload, const SegmentRef&) override;
    std::string beginChunk(const wire::Header&, const ChunkHead&, size_t, uint8_t*&) override;
    bool beginWrite() override { return writer_.beginWrite(); }
    void endWrite() override { writer_.endWrite(); }
    std::string endChunk() override;

    std::string onReply(const wire::Header& header, Bytes payload);
    std::string onAck(Bytes payload);
    std::string onFaultFrame(Bytes payload);
    std::string onPatchFrame(Bytes payload);
    std::string onOutputFrame(Bytes payload);
    std::string onCallbackFrame(Bytes payload);
    void acknowledge(size_t bytes);
    void laneEnded(const std::string& lane, FrameStream::Got got, const std::string& sentence);
    void fail(const std::string& why);
    /// Waits for the window and takes the ticket; an unlocked one when the link is broken.
    Outbox::Ticket admit(uint16_t opcode, size_t size);
    void openLanes();

    const Endpoint endpoint_;
    const Credentials who_;
    const Welcome welcome_;
    const int wantedLanes_;
    std::atomic<int> fd_;

    FrameStream stream_;
    Desk desk_;
    Outbox outbox_;
    Inflow inflow_;
    Outflow outflow_;
    ChunkWriter writer_;
    Thread watcher_, flusher_;
    std::array<std::unique_ptr<Lane>, wire::kMaxBulkLanes> lanes_;  // fixed once lanesOpened_
    std::mutex laneOpening_;
    std::atomic<bool> lanesOpened_{false};

    // guarded by desk_.state:
    std::unordered_map<uint64_t, Pending> pending_;
    uint64_t lastLanded_ = 0;
    std::function<void(int, uint16_t)> faultHandler_;
    PatchHandler patchHandler_;
    OutputHandler outputHandler_;
    std::function<void(const Callback&)> callbackHandler_;

    // of the reading thread:
    uint64_t lastReply_ = 0, lastAcked_ = 0, unackedBytes_ = 0, lastExecuted_ = 0;

    mutable std::mutex ending_;
    std::string reason_;
    std::atomic<bool> failing_{false}, shut_{false};
    std::atomic<uint64_t> calls_{0}, waited_{0};
};

}  // namespace juice

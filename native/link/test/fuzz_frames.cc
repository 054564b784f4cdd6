// A hostile client: the input is what it sends after the handshake, in pieces, to a worker that
// reads it without a socket. Input: {u8 lane choice, u8 length in units of 1 to 8 bytes, that many
// bytes}*.
#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>

#include "native/link/frame_stream.h"
#include "native/link/server_staging.h"

namespace juice {
namespace {

constexpr size_t kSlots = 6;

/// The worker's state behind its streams, as native/link/server.h has it, on one thread.
class Worker {
  public:
    Worker() : staging_(slotMemory(), [this](uint64_t bytes, uint64_t) { credited_ += bytes; }) {
        if (staging_.window() > kSlots * wire::kChunkSize) std::abort();
    }

    class Lane final : public FrameSink {
      public:
        Lane(Worker& worker, uint16_t number)
            : worker_(worker), stream_(*this, From::client, number) {}
        bool feed(Bytes bytes) { return stream_.feed(bytes) == FrameStream::Got::some; }

        std::string frame(const wire::Header& header, Bytes payload,
                          const SegmentRef& held) override {
            return worker_.frame(header, payload, held);
        }
        std::string beginChunk(const wire::Header& header, const ChunkHead& head, size_t bytes,
                               uint8_t*& target) override {
            std::string violation = worker_.staging_.beginChunk(header, head, bytes, slot_);
            if (violation.empty()) target = worker_.staging_.memory(slot_);
            return violation;
        }
        std::string endChunk() override {
            worker_.staging_.endChunk(slot_);
            return {};
        }

      private:
        Worker& worker_;
        size_t slot_ = 0;
        FrameStream stream_;
    };

    std::string frame(const wire::Header& header, Bytes payload, const SegmentRef& held) {
        // Every byte of the payload is read, as an executor would.
        for (const uint8_t byte : payload) sum_ += byte;
        if (header.kind != static_cast<uint8_t>(wire::Kind::call)) return {};
        held_.push_back(held);
        if (held_.size() > 4) held_.pop_front();
        Reader in(payload);
        const auto transfer = in.get<uint64_t>();
        const auto size = in.get<uint64_t>();
        if (size == 0 || size > (1u << 20)) return {};
        std::string violation = staging_.open(transfer, size);
        if (!violation.empty()) return violation;
        // Takes what is there; a worker would wait for the rest.
        uint64_t seen = 0;
        for (Staging::Piece piece; staging_.next(transfer, piece); staging_.release(piece.slot)) {
            if (piece.offset > size || piece.bytes > size - piece.offset) std::abort();
            const auto* data = static_cast<const uint8_t*>(piece.slot);
            for (size_t i = 0; i < piece.bytes; ++i) sum_ += data[i];
            seen += piece.bytes;
        }
        if (seen > size) std::abort();
        if (seen == size) staging_.finish(transfer);
        return {};
    }

  private:
    static std::vector<void*> slotMemory() {
        // Separate blocks, so that the sanitizer sees a step over the end of one; the same in every
        // run, since clearing them would take most of the time.
        static const auto memory = [] {
            std::array<std::unique_ptr<uint8_t[]>, kSlots> blocks;
            for (auto& block : blocks) block = std::make_unique<uint8_t[]>(wire::kChunkSize);
            return blocks;
        }();
        std::vector<void*> out;
        for (const auto& block : memory) out.push_back(block.get());
        return out;
    }

    uint64_t credited_ = 0;
    Staging staging_;
    std::deque<SegmentRef> held_;
    uint64_t sum_ = 0;
};

}  // namespace
}  // namespace juice

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace juice;
    Worker worker;
    Worker::Lane command(worker, 0), first(worker, 1), second(worker, 2);
    Worker::Lane* lanes[] = {&command, &command, &first, &second};
    while (size >= 2) {
        Worker::Lane& lane = *lanes[data[0] & 3];
        size_t length = size_t{data[1]} * ((data[0] >> 2 & 7) + 1) + 1;
        data += 2;
        size -= 2;
        if (length > size) length = size;
        if (!lane.feed({data, length})) break;
        data += length;
        size -= length;
    }
    return 0;
}

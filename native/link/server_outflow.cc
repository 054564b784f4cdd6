#include "native/link/server_outflow.h"

#include <algorithm>
#include <utility>

namespace juice {
namespace {

/// On the command lane chunks are shorter, so that Replies get in between.
constexpr size_t kShortChunk = 256u << 10;

}  // namespace

uint64_t ServerOutflow::begin(uint64_t size) {
    if (size == 0) return begun();
    return lastOrdinal_.fetch_add(1, std::memory_order_acq_rel) + 1;
}

void ServerOutflow::add(uint64_t transfer, uint64_t ordinal, uint64_t offset, const void* data,
                        size_t bytes, bool bulk, std::function<void()> done) {
    {
        std::lock_guard lock(mutex_);
        if (!closed_ && bytes > 0) {
            auto piece = std::make_shared<Piece>(Piece{transfer, ordinal, offset,
                                                       static_cast<const uint8_t*>(data), bytes,
                                                       std::move(done)});
            (bulk ? bulk_ : small_).push_back(std::move(piece));
            work_.notify_all();
            return;
        }
    }
    if (done) done();
}

std::deque<ServerOutflow::PieceRef>* ServerOutflow::queueFor(bool bulkLane) {
    if (!bulkLane && !small_.empty()) return &small_;
    if ((bulkLane || lanes_ == 0) && !bulk_.empty()) return &bulk_;
    return nullptr;
}

void ServerOutflow::serve(bool bulkLane, const Send& send) {
    const size_t most = bulkLane ? wire::kChunkSize : kShortChunk;
    std::unique_lock lock(mutex_);
    while (!closed_) {
        auto* queue = queueFor(bulkLane);
        if (queue == nullptr) {
            work_.wait(lock);
            continue;
        }
        const PieceRef piece = queue->front();
        const size_t at = piece->next;
        size_t size = std::min(most, piece->bytes - at);
        piece->next += size;
        ++piece->sending;
        if (piece->next == piece->bytes) queue->pop_front();
        lock.unlock();

        wire::Header header = immediate(wire::Kind::chunk, wire::kChunkHeader + size);
        ChunkHead head{piece->transfer, piece->ordinal, piece->offset + at};
        iovec parts[3] = {{&header, sizeof header},
                          {&head, sizeof head},
                          {const_cast<uint8_t*>(piece->data + at), size}};
        const bool sent = send(parts);

        lock.lock();
        // When the link is over, a piece still queued is finished by close().
        const bool finished = --piece->sending == 0 && (piece->next == piece->bytes || closed_);
        std::function<void()> done;
        if (finished) done = std::exchange(piece->done, nullptr);
        if (done) {
            lock.unlock();
            done();
            done = nullptr;
            lock.lock();
        }
        if (!sent) return;
    }
}

void ServerOutflow::laneReady() {
    std::lock_guard lock(mutex_);
    ++lanes_;
    work_.notify_all();
}

void ServerOutflow::close() {
    std::deque<std::function<void()>> orphans;
    {
        std::lock_guard lock(mutex_);
        if (closed_) return;
        closed_ = true;
        for (auto* queue : {&small_, &bulk_}) {
            for (auto& piece : *queue)
                if (piece->sending == 0) orphans.push_back(std::exchange(piece->done, nullptr));
            queue->clear();
        }
        work_.notify_all();
    }
    for (auto& done : orphans)
        if (done) done();
}

}  // namespace juice

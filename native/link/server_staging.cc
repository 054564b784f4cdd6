#include "native/link/server_staging.h"

#include <algorithm>
#include <utility>

namespace juice {
namespace {

/// A chunk for one of so many transfers completed last is told from one that comes early.
constexpr size_t kRemembered = 1024;

}  // namespace

Staging::Staging(const std::vector<void*>& slots, std::function<void(uint64_t, uint64_t)> credit)
    : credit_(std::move(credit)), reserve_(std::max<size_t>(slots.size() / 8, 1)) {
    for (void* memory : slots) {
        slotOf_.emplace(memory, slots_.size());
        free_.push_back(slots_.size());
        slots_.push_back({memory});
    }
    window_ = credited_ = (slots.size() - reserve_) * wire::kChunkSize;
    // Credit goes back in eighths of the window: few frames, and always enough left to go on.
    creditEvery_ = std::max<uint64_t>(window_ / 8, wire::kChunkSize);
}

std::string Staging::beginChunk(const wire::Header& header, const ChunkHead& head, size_t bytes,
                                size_t& slot) {
    std::lock_guard lock(mutex_);
    const std::string what = "a chunk of transfer " + std::to_string(head.transfer);
    if (head.transfer == 0 || head.ordinal != 0)
        return what + " with ordinal " + std::to_string(head.ordinal);
    if (head.offset > UINT64_MAX - bytes) return what + " beyond all memory";
    if (complete_.contains(head.transfer)) return what + ", which is complete";
    const bool granted = (header.flags & wire::kGranted) != 0;
    const auto found = transfers_.find(head.transfer);
    if (granted ? found == transfers_.end() || found->second.granted == 0
                : credited_ < wire::kChunkSize)
        return what + " beyond the credit given";
    Incoming& incoming = found != transfers_.end() ? found->second : transfers_[head.transfer];
    const uint64_t end = head.offset + bytes;
    if (incoming.open && end > incoming.size)
        return what + " that reaches beyond its " + std::to_string(incoming.size) + " bytes";
    if (!incoming.begun.add(head.offset, bytes)) return what + " that repeats bytes";
    // What is missing in between is on its way, and what is on its way has credit.
    if (incoming.begun.pieces() > slots_.size() + 1) return what + " that scatters its pieces";
    incoming.reach = std::max(incoming.reach, end);
    if (granted)
        --incoming.granted;
    else
        credited_ -= wire::kChunkSize;
    slot = free_.back();  // there is one: slots are credited, granted, reserved or full
    free_.pop_back();
    Slot& one = slots_[slot];
    one.reserve = granted;
    one.transfer = head.transfer;
    one.offset = head.offset;
    one.bytes = bytes;
    return {};
}

void Staging::endChunk(size_t slot) {
    std::lock_guard lock(mutex_);
    transfers_[slots_[slot].transfer].ready.push_back(slot);
    arrived_.notify_all();
}

std::string Staging::open(uint64_t transfer, uint64_t size) {
    std::lock_guard lock(mutex_);
    const std::string what = "a call that names transfer " + std::to_string(transfer);
    if (transfer == 0 || complete_.contains(transfer)) return what + ", which is not to be had";
    Incoming& incoming = transfers_[transfer];
    if (incoming.open) return what + ", which another call has named";
    if (incoming.reach > size)
        return "a chunk of transfer " + std::to_string(transfer) + " that reaches beyond its " +
               std::to_string(size) + " bytes";
    incoming.open = true;
    incoming.size = size;
    return {};
}

bool Staging::next(uint64_t transfer, Piece& out) {
    std::lock_guard lock(mutex_);
    const auto found = transfers_.find(transfer);
    if (closed_ || found == transfers_.end() || found->second.ready.empty()) return false;
    const Slot& slot = slots_[found->second.ready.front()];
    found->second.ready.pop_front();
    out = {slot.offset, slot.memory, slot.bytes};
    return true;
}

/// Slots to grant: only when nothing of the window can reach this transfer any more.
uint64_t Staging::grantFor(const Incoming& incoming) const {
    if (credited_ > 0 || incoming.granted > 0) return 0;
    const uint64_t missing = incoming.size - incoming.begun.seen();
    return std::min(reserve_, (missing + wire::kChunkSize - 1) / wire::kChunkSize);
}

void Staging::await(uint64_t transfer) {
    std::unique_lock lock(mutex_);
    Incoming& incoming = transfers_[transfer];  // stays while it is open
    while (!closed_ && incoming.ready.empty()) {
        uint64_t bytes = std::exchange(returned_, 0), to = 0;
        credited_ += bytes;
        if (bytes == 0) {
            const uint64_t slots = grantFor(incoming);
            reserve_ -= slots;
            incoming.granted += slots;
            bytes = slots * wire::kChunkSize;
            to = transfer;
        }
        if (bytes > 0) {
            lock.unlock();
            credit_(bytes, to);
            lock.lock();
        } else {
            arrived_.wait(lock);
        }
    }
}

void Staging::finish(uint64_t transfer) {
    std::lock_guard lock(mutex_);
    const auto found = transfers_.find(transfer);
    if (found == transfers_.end()) return;
    reserve_ += found->second.granted;
    transfers_.erase(found);
    complete_.insert(transfer);
    completeOrder_.push_back(transfer);
    if (completeOrder_.size() > kRemembered) {
        complete_.erase(completeOrder_.front());
        completeOrder_.pop_front();
    }
    arrived_.notify_all();  // the reserve may have become free for another
}

void Staging::release(void* memory) {
    uint64_t bytes = 0;
    {
        std::lock_guard lock(mutex_);
        const auto found = slotOf_.find(memory);
        if (found == slotOf_.end()) return;
        Slot& slot = slots_[found->second];
        free_.push_back(found->second);
        if (slot.reserve) {
            ++reserve_;
            arrived_.notify_all();
        } else {
            returned_ += wire::kChunkSize;
            if (returned_ >= creditEvery_) {
                bytes = std::exchange(returned_, 0);
                credited_ += bytes;
            }
        }
    }
    if (bytes > 0) credit_(bytes, 0);
}

void Staging::close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    arrived_.notify_all();
}

}  // namespace juice

#include "native/link/client_inflow.h"

#include <sched.h>

#include <vector>

namespace juice {
namespace {

/// Pieces of one transfer that do not touch: far more than the lanes can have on their way.
constexpr size_t kMostPieces = 1u << 16;

}  // namespace

uint64_t Inflow::expect(void* destination, uint64_t size) {
    auto expectation = std::make_shared<Expectation>();
    expectation->to = static_cast<uint8_t*>(destination);
    expectation->size = size;
    std::lock_guard lock(state_);
    expectation->transfer = ++lastTransfer_;
    // Nothing will come for an empty transfer: it has landed.
    if (size > 0 && !closed_) open_.emplace(expectation->transfer, expectation);
    return expectation->transfer;
}

bool Inflow::landed(uint64_t transfer) const {
    std::lock_guard lock(state_);
    return !closed_ && !open_.contains(transfer);
}

void Inflow::withdraw(Expectation& expectation) {
    expectation.withdrawn.store(true);
    // A writer holds it for one non-blocking recv.
    while (expectation.writers.load() > 0) sched_yield();
}

void Inflow::cancel(uint64_t transfer) {
    ExpectationRef expectation;
    {
        std::lock_guard lock(state_);
        const auto found = open_.find(transfer);
        if (found == open_.end()) return;
        expectation = std::move(found->second);
        open_.erase(found);
        if (expectation->ordinal != 0) land(expectation->ordinal);
    }
    withdraw(*expectation);
}

void Inflow::close() {
    std::vector<ExpectationRef> all;
    {
        std::lock_guard lock(state_);
        closed_ = true;
        for (auto& [transfer, expectation] : open_) all.push_back(expectation);
    }
    for (auto& expectation : all) withdraw(*expectation);
}

std::string Inflow::beginChunk(const ChunkHead& head, size_t bytes, ExpectationRef& out) {
    std::lock_guard lock(state_);
    const std::string what = "a chunk of transfer " + std::to_string(head.transfer);
    const auto found = open_.find(head.transfer);
    if (found == open_.end()) return what + ", which nobody expects";
    Expectation& one = *found->second;
    if (head.offset > one.size || bytes > one.size - head.offset)
        return what + " that reaches beyond its " + std::to_string(one.size) + " bytes";
    if (one.ordinal == 0) {
        if (head.ordinal == 0 || head.ordinal > lastTransfer_ || head.ordinal <= through_ ||
            ahead_.contains(head.ordinal) || !ordinals_.emplace(head.ordinal, head.transfer).second)
            return what + " under the impossible ordinal " + std::to_string(head.ordinal);
        one.ordinal = head.ordinal;
    } else if (one.ordinal != head.ordinal) {
        return what + " under two ordinals";
    }
    if (!one.begun.add(head.offset, bytes)) return what + " that repeats bytes";
    if (one.begun.pieces() > kMostPieces) return what + " that scatters its pieces";
    out = found->second;
    return {};
}

bool Inflow::endChunk(Expectation& one, size_t bytes) {
    one.filled += bytes;
    if (one.filled < one.size || open_.erase(one.transfer) == 0) return false;
    land(one.ordinal);
    return true;
}

void Inflow::land(uint64_t ordinal) {
    ordinals_.erase(ordinal);
    ahead_.insert(ordinal);
    while (!ahead_.empty() && *ahead_.begin() == through_ + 1) {
        through_ = *ahead_.begin();
        ahead_.erase(ahead_.begin());
    }
}

bool Inflow::beginWrite(Expectation& one) {
    one.writers.fetch_add(1);
    if (!one.withdrawn.load()) return true;
    one.writers.fetch_sub(1);
    return false;
}

void Inflow::endWrite(Expectation& one) {
    one.writers.fetch_sub(1);
}

}  // namespace juice

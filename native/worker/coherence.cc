#include "native/worker/coherence.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <vector>

namespace juice::worker {
namespace {

using Clock = std::chrono::steady_clock;

/// How often changes are looked for while watches run, or, where looking takes long, how much
/// longer than that is rested.
constexpr auto kInterval = std::chrono::milliseconds(1);
constexpr int kRest = 3;
/// Bytes that are looked at with the shadows locked.
constexpr uint64_t kStride = 1u << 20;
constexpr size_t kPatch = ClientLink::kMostPatch / 2;

}  // namespace

Coherence::Coherence(ServerLink& link) : link_(link) {
    link.onPatch([this](Bytes pieces) { return receive(pieces); });
}

Coherence::~Coherence() {
    {
        const std::lock_guard lock(idle_);
        stopping_ = true;
    }
    begun_.notify_all();
    if (sender_.joinable()) sender_.join();
    link_.onPatch({});
}

CUresult Coherence::add(uint64_t begin, uint64_t size, uint32_t context, Life life) {
    if (life.fresh) std::memset(reinterpret_cast<void*>(begin), 0, size);
    try {
        auto one = std::make_unique<One>(begin, size, context, life.often);
        const std::lock_guard lock(shadows_);
        live_.emplace(begin, std::move(one));
    } catch (const std::bad_alloc&) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    count_.fetch_add(1, std::memory_order_release);
    if (!sender_.joinable()) sender_ = std::thread([this] { keepSending(); });
    if (!life.fresh) sendChanges(true);
    return CUDA_SUCCESS;
}

bool Coherence::remove(uint64_t begin) {
    const std::lock_guard scanning(scanning_);
    const auto found = live_.find(begin);
    if (found == live_.end()) return false;
    removeLocked(found);
    return true;
}

void Coherence::removeOf(uint32_t context) {
    const std::lock_guard scanning(scanning_);
    for (auto one = live_.begin(); one != live_.end();) {
        const auto next = std::next(one);
        if (one->second->context == context) removeLocked(one);
        one = next;
    }
}

void Coherence::removeLocked(std::map<uint64_t, std::unique_ptr<One>>::iterator at) {
    const uint64_t told = told_.load(std::memory_order_relaxed);
    Writer patch;
    scan(*at->second, told, patch);
    if (patch.size() != 0) link_.patch(told, patch.view());
    const std::lock_guard lock(shadows_);
    live_.erase(at);
    count_.fetch_sub(1, std::memory_order_release);
}

bool Coherence::holds(uint64_t begin) const {
    const std::lock_guard lock(shadows_);
    return live_.contains(begin);
}

void Coherence::watch() {
    if (watches_.fetch_add(1) != watched_.load()) return;
    // The lock, or the sender could go to sleep between its look and its wait.
    const std::lock_guard lock(idle_);
    begun_.notify_one();
}

void Coherence::watched() {
    watched_.fetch_add(1);
}

std::string Coherence::receive(Bytes pieces) {
    Reader in(pieces);
    delta::Piece piece;
    const std::lock_guard lock(shadows_);
    while (delta::next(in, piece)) {
        // The memory that holds it, or none any more: then the client has freed it meanwhile.
        auto after = live_.lower_bound(piece.end());
        if (after != live_.begin()) std::prev(after)->second->shadow.apply(piece);
    }
    return in.ok() ? "" : "a malformed patch";
}

void Coherence::scan(One& one, uint64_t watched, Writer& patch) {
    uint64_t at = one.shadow.begin();
    while (at < one.shadow.end()) {
        {
            const std::lock_guard lock(shadows_);
            const uint64_t to = std::min((at & ~uint64_t{7}) + kStride, one.shadow.end());
            at = one.shadow.collect(at, to, kPatch, patch);
        }
        if (patch.size() < kPatch) continue;
        link_.patch(watched, patch.view());
        patch.clear();
    }
}

void Coherence::sendChanges(bool all) {
    const std::lock_guard scanning(scanning_);
    const uint64_t told = told_.load(std::memory_order_relaxed);
    const uint64_t watched = watched_.load(std::memory_order_acquire);
    all = all || watched != told;
    Writer patch;
    // Only this thread changes the map while it has scanning_, except for additions of the
    // executor's, which do no harm to what is here already.
    std::vector<One*> ones;
    {
        const std::lock_guard lock(shadows_);
        for (const auto& [begin, one] : live_)
            if (all || one->often) ones.push_back(one.get());
    }
    for (One* const one : ones) scan(*one, told, patch);
    if (patch.size() != 0 || watched != told) link_.patch(watched, patch.view());
    told_.store(watched, std::memory_order_release);
}

void Coherence::keepSending() {
    std::unique_lock lock(idle_);
    while (!stopping_) {
        if (watches_.load() == told_.load()) {
            begun_.wait(lock, [this] { return stopping_ || watches_.load() != told_.load(); });
            continue;
        }
        lock.unlock();
        const auto before = Clock::now();
        sendChanges(false);
        const auto rest = std::max<Clock::duration>(kInterval, kRest * (Clock::now() - before));
        lock.lock();
        begun_.wait_for(lock, rest, [this] { return stopping_; });
    }
}

}  // namespace juice::worker

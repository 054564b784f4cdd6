#include "native/shim/ranges.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <shared_mutex>

namespace juice::shim::ranges {

namespace detail {
std::atomic<uint64_t> low{UINT64_MAX}, high{0};
}  // namespace detail

namespace {

struct Map {
    std::shared_mutex mutex;
    std::map<uint64_t, Range> byBegin;
    uint64_t lastId = 0;

    /// Under the lock, after every change.
    void bound() const {
        uint64_t low = UINT64_MAX, high = 0;
        for (const auto& [begin, range] : byBegin) {
            if (!range.onHost() || range.coherent) continue;
            low = std::min(low, begin);
            high = std::max(high, range.end());
        }
        detail::low.store(low, std::memory_order_relaxed);
        detail::high.store(high, std::memory_order_relaxed);
    }
    /// Under the lock.
    const Range* holding(uint64_t address) const {
        auto next = byBegin.upper_bound(address);
        if (next == byBegin.begin()) return nullptr;
        const Range& range = std::prev(next)->second;
        return address < range.end() ? &range : nullptr;
    }
};
Map& map() {
    static auto& one = *new Map;
    return one;
}

}  // namespace

void add(Range range) {
    const std::lock_guard lock(map().mutex);
    range.id = ++map().lastId;
    map().byBegin.insert_or_assign(range.begin, range);
    if (range.onHost()) map().bound();
}

void setCoherent(uint64_t begin) {
    const std::lock_guard lock(map().mutex);
    const auto found = map().byBegin.find(begin);
    if (found == map().byBegin.end()) return;
    found->second.coherent = true;
    map().bound();
}

std::optional<Range> find(uint64_t address) {
    const std::shared_lock lock(map().mutex);
    const Range* const range = map().holding(address);
    return range == nullptr ? std::nullopt : std::optional(*range);
}

std::optional<Range> overlapping(uint64_t address, uint64_t size) {
    const std::shared_lock lock(map().mutex);
    const Range* const range = map().holding(address);
    if (range != nullptr) return *range;
    const auto next = map().byBegin.upper_bound(address);
    if (next == map().byBegin.end() || next->first - address >= size) return std::nullopt;
    return next->second;
}

bool remove(uint64_t begin) {
    const std::lock_guard lock(map().mutex);
    const auto found = map().byBegin.find(begin);
    if (found == map().byBegin.end()) return false;
    const bool onHost = found->second.onHost();
    map().byBegin.erase(found);
    if (onHost) map().bound();
    return true;
}

std::vector<Range> removeOf(const Context* context) {
    const std::lock_guard lock(map().mutex);
    std::vector<Range> removed;
    for (auto one = map().byBegin.begin(); one != map().byBegin.end();) {
        if (one->second.context != context) {
            ++one;
            continue;
        }
        removed.push_back(one->second);
        one = map().byBegin.erase(one);
    }
    map().bound();
    return removed;
}

bool deviceMayTouch(uint64_t address, uint64_t bytes) {
    const std::shared_lock lock(map().mutex);
    const Range* const range = map().holding(address);
    return range != nullptr && range->holds(address, bytes);
}

}  // namespace juice::shim::ranges

#include "native/softgpu/driver/advice.h"

#include <algorithm>
#include <iterator>

namespace juice::softgpu {
namespace {

constexpr uint64_t kPage = 4096;

uint64_t pageDown(uint64_t address) {
    return address / kPage * kPage;
}

uint64_t pageUp(uint64_t address) {
    return pageDown(address + kPage - 1);
}

}  // namespace

AdviceMap& AdviceMap::instance() {
    static auto* const map = new AdviceMap;
    return *map;
}

void AdviceMap::split(uint64_t address) {
    auto at = stretches_.upper_bound(address);
    if (at == stretches_.begin()) return;
    --at;
    if (at->first == address || at->second.end <= address) return;
    stretches_[address] = at->second;
    at->second.end = address;
}

void AdviceMap::change(uint64_t start, uint64_t end, const std::function<void(Advice&)>& how) {
    start = pageDown(start);
    end = pageUp(end);
    const std::lock_guard lock(mutex_);
    split(start);
    split(end);
    for (uint64_t from = start; from < end;) {
        auto at = stretches_.lower_bound(from);
        if (at == stretches_.end() || at->first > from) {
            const uint64_t to = at == stretches_.end() ? end : std::min(end, at->first);
            at = stretches_.emplace(from, Stretch{to, {}}).first;
        }
        how(at->second.advice);
        from = at->second.end;
    }
}

void AdviceMap::visit(uint64_t start, uint64_t end,
                      const std::function<void(const Advice&)>& visit) const {
    start = pageDown(start);
    end = pageUp(end);
    const std::lock_guard lock(mutex_);
    auto at = stretches_.upper_bound(start);
    if (at != stretches_.begin() && std::prev(at)->second.end > start) --at;
    for (uint64_t from = start; from < end; ++at) {
        const bool known = at != stretches_.end() && at->first < end;
        if (!known || at->first > from) visit({});
        if (!known) return;
        visit(at->second.advice);
        from = at->second.end;
    }
}

void AdviceMap::forget(uint64_t start, uint64_t end) {
    const std::lock_guard lock(mutex_);
    split(pageDown(start));
    split(pageUp(end));
    stretches_.erase(stretches_.lower_bound(pageDown(start)), stretches_.lower_bound(pageUp(end)));
}

}  // namespace juice::softgpu

#include "native/shim/shadows.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "native/shim/deliveries.h"
#include "native/shim/host_functions.h"
#include "native/shim/session.h"

namespace juice::shim::shadows {
namespace {

using deliveries::Span;

/// Compared in blocks first; differing bytes so close to each other go in one piece.
constexpr uint64_t kBlock = 4096, kNear = 64;

struct Watched {
    Span span;
    std::vector<uint8_t> shadow;
    /// Where the worker writes: what lands there is no change of the program's.
    std::vector<deliveries::Outstanding> pending;

    const uint8_t* memory(uint64_t address) const {
        return reinterpret_cast<const uint8_t*>(address);
    }
    uint8_t* shadowOf(uint64_t address) { return shadow.data() + (address - span.begin); }
    void refresh(const Span& part) {
        std::memcpy(shadowOf(part.begin), memory(part.begin), part.end - part.begin);
    }
    bool isPending(uint64_t address) const {
        return std::any_of(pending.begin(), pending.end(), [address](const auto& one) {
            return address >= one.span.begin && address < one.span.end;
        });
    }
    bool differs(uint64_t address) { return *memory(address) != *shadowOf(address); }
};

struct Table {
    std::mutex mutex;  // around every look at the program's memory together with its sending
    std::map<std::pair<uint64_t, uint64_t>, Watched> watched;
    std::atomic<size_t> count{0};  // so that most calls need no lock
};
Table& table() {
    static auto& one = *new Table;
    return one;
}

void send(Watched& one, uint64_t begin, uint64_t end) {
    // From the shadow, so that it says what was sent even when the program goes on writing.
    one.refresh({begin, end});
    session::link()->write(begin, one.shadowOf(begin), end - begin);
}

/// Where a run of changed bytes ends, that begins at `at`. Bytes between changes go along only
/// where nobody but the program writes.
uint64_t endOfRun(Watched& one, uint64_t at, uint64_t limit) {
    uint64_t end = at + 1;
    for (uint64_t look = end; look < limit && look - end < kNear; ++look) {
        if (one.isPending(look) && !one.differs(look)) break;
        if (one.differs(look)) end = look + 1;
    }
    return end;
}

void sendChanges(Watched& one, const Span& part) {
    for (uint64_t block = part.begin; block < part.end; block += kBlock) {
        const uint64_t limit = std::min(block + kBlock, part.end);
        if (std::memcmp(one.memory(block), one.shadowOf(block), limit - block) == 0) continue;
        if (one.pending.empty()) {
            send(one, block, limit);
            continue;
        }
        for (uint64_t at = block; at < limit;) {
            if (!one.differs(at)) {
                ++at;
                continue;
            }
            const uint64_t end = endOfRun(one, at, limit);
            send(one, at, end);
            at = end;
        }
    }
}

bool none() {
    return table().count.load() == 0;
}

/// Under the lock.
void counted() {
    table().count.store(table().watched.size());
}

Span overlap(const Span& a, const Span& b) {
    return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

}  // namespace

void watch(uint64_t address, uint64_t size) {
    const Span span{address, address + size};
    const std::lock_guard lock(table().mutex);
    const auto [found, fresh] = table().watched.try_emplace({address, size});
    Watched& one = found->second;
    if (!fresh) return sendChanges(one, span);
    // Before the memory is looked at: a function that writes there later must not find none.
    counted();
    one.span = span;
    one.shadow.resize(size);
    one.refresh(span);
    one.pending = deliveries::outstandingIn(address, size);
    for (const Span& part : deliveries::settledParts(address, size))
        if (part.begin < part.end) send(one, part.begin, part.end);
}

void aboutToReceive(uint64_t address, uint64_t size, uint64_t transfer) {
    if (none()) return;
    const std::lock_guard lock(table().mutex);
    for (auto& [name, one] : table().watched) {
        const Span part = overlap(one.span, {address, address + size});
        if (part.begin >= part.end) continue;
        sendChanges(one, part);
        one.pending.push_back({part, transfer});
    }
}

void beforeFunction() {
    if (none()) return;
    const std::lock_guard lock(table().mutex);
    for (auto& [name, one] : table().watched)
        std::erase_if(one.pending, [&one = one](const deliveries::Outstanding& part) {
            if (!session::link()->landed(part.transfer)) return false;
            one.refresh(part.span);
            return true;
        });
}

void afterFunction() {
    if (none()) return;
    const std::lock_guard lock(table().mutex);
    for (auto& [name, one] : table().watched) sendChanges(one, one.span);
}

void forget(uint64_t address, uint64_t size) {
    if (none()) return;
    const std::lock_guard lock(table().mutex);
    std::erase_if(table().watched, [&](const auto& entry) {
        const Span part = overlap(entry.second.span, {address, address + size});
        return part.begin < part.end;
    });
    counted();
}

void clearUnlessDue() {
    if (none()) return;
    const std::lock_guard lock(table().mutex);
    if (host_functions::outstanding()) return;
    table().watched.clear();
    counted();
}

}  // namespace juice::shim::shadows

#include "native/shim/deliveries.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "native/shim/send.h"

namespace juice::shim::deliveries {
namespace {

struct Delivery {
    Span span;
    uint64_t transfer;
    const Context* context;
};

struct List {
    std::mutex mutex;
    std::vector<Delivery> outstanding;
    std::atomic<size_t> count{0};  // so that most calls need no lock

    /// Under the lock.
    void forgetLanded() {
        ClientLink* const link = session::link();
        std::erase_if(outstanding, [link](const Delivery& one) {
            return link->broken() || link->landed(one.transfer);
        });
        count.store(outstanding.size(), std::memory_order_release);
    }
};
List& list() {
    static auto& one = *new List;
    return one;
}

bool meet(const Span& a, const Span& b) {
    return a.begin < b.end && b.begin < a.end;
}

}  // namespace

void add(uint64_t address, uint64_t size, uint64_t transfer, const Context* context) {
    const std::lock_guard lock(list().mutex);
    list().forgetLanded();
    list().outstanding.push_back({{address, address + size}, transfer, context});
    list().count.store(list().outstanding.size(), std::memory_order_release);
}

bool any() {
    if (list().count.load(std::memory_order_acquire) == 0) return false;
    const std::lock_guard lock(list().mutex);
    list().forgetLanded();
    return !list().outstanding.empty();
}

bool touch(uint64_t address, uint64_t size) {
    if (list().count.load(std::memory_order_acquire) == 0) return false;
    const Span span{address, address + size};
    const std::lock_guard lock(list().mutex);
    list().forgetLanded();
    return std::any_of(list().outstanding.begin(), list().outstanding.end(),
                       [&](const Delivery& one) { return meet(one.span, span); });
}

std::vector<Span> settledParts(uint64_t address, uint64_t size) {
    std::vector<Span> parts{{address, address + size}};
    const std::lock_guard lock(list().mutex);
    list().forgetLanded();
    for (const Delivery& one : list().outstanding) {
        std::vector<Span> rest;
        for (const Span& part : parts) {
            if (!meet(part, one.span)) {
                rest.push_back(part);
                continue;
            }
            if (part.begin < one.span.begin) rest.push_back({part.begin, one.span.begin});
            if (part.end > one.span.end) rest.push_back({one.span.end, part.end});
        }
        parts = std::move(rest);
    }
    return parts;
}

std::vector<Outstanding> outstandingIn(uint64_t address, uint64_t size) {
    const Span span{address, address + size};
    std::vector<Outstanding> found;
    const std::lock_guard lock(list().mutex);
    list().forgetLanded();
    for (const Delivery& one : list().outstanding)
        if (meet(one.span, span))
            found.push_back(
                {{std::max(one.span.begin, span.begin), std::min(one.span.end, span.end)},
                 one.transfer});
    return found;
}

CUresult settle(uint64_t address, uint64_t size) {
    const Span span{address, address + size};
    while (touch(address, size)) {
        Delivery first{};
        {
            const std::lock_guard lock(list().mutex);
            const auto found =
                std::find_if(list().outstanding.begin(), list().outstanding.end(),
                             [&](const Delivery& one) { return meet(one.span, span); });
            if (found == list().outstanding.end()) return CUDA_SUCCESS;
            first = *found;
        }
        // The stream may be gone or another thread's own: all of the context's work, then. It done,
        // the bytes are here when the answer is.
        Reply reply;
        const CUresult result =
            call(Op::cuCtxSynchronize, first.context, {}, reply, Deferred::keep);
        if (result != CUDA_SUCCESS) return result;
        // Not here after all: the copy failed, and its error is on its way.
        if (!session::link()->landed(first.transfer))
            cancel(first.span.begin, first.span.end - first.span.begin);
    }
    return CUDA_SUCCESS;
}

void cancel(uint64_t address, uint64_t size) {
    if (list().count.load(std::memory_order_acquire) == 0) return;
    const Span span{address, address + size};
    const std::lock_guard lock(list().mutex);
    list().forgetLanded();
    std::erase_if(list().outstanding, [&](const Delivery& one) {
        if (!meet(one.span, span)) return false;
        session::link()->cancel(one.transfer);
        return true;
    });
    list().count.store(list().outstanding.size(), std::memory_order_release);
}

}  // namespace juice::shim::deliveries

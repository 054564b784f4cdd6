#include "native/shim/coherence.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "native/gen/symbols.h"
#include "native/link/delta.h"
#include "native/link/thread.h"
#include "native/shim/deliveries.h"
#include "native/shim/say.h"
#include "native/shim/shadows.h"
#include "native/shim/written.h"

namespace juice::shim::coherence {

namespace detail {
std::atomic<size_t> count{0};
}  // namespace detail

namespace {

/// How often changes are sent while work that may look at them runs, or, where looking for them
/// takes long, how much longer than that is rested.
constexpr int64_t kInterval = kMilli;
constexpr int64_t kRest = 3;
/// Bytes that are looked at with the shadows locked.
constexpr uint64_t kStride = 1u << 20;
constexpr size_t kPatch = ClientLink::kMostPatch / 2;

struct One {
    explicit One(const Range& range)
        : shadow(range.begin, range.size),
          registered(range.kind == Range::Kind::registered),
          written(WrittenPages::watch(range.begin, range.end())) {}
    delta::Shadow shadow;
    const bool registered;
    std::unique_ptr<WrittenPages> written;  // null: all of it is compared
};

struct State {
    /// Held while changes are looked for and sent, so that they leave in the order in which they
    /// were found, and while memory becomes coherent or ceases to be. Taken before `shadows`.
    std::mutex pushing;
    /// Around the map and the shadows; never held while sending, since the link's reader takes it.
    std::mutex shadows;
    std::map<uint64_t, std::unique_ptr<One>> live;

    std::atomic<uint64_t> watches{0}, over{0};
    std::mutex idle;
    std::condition_variable begun;
    juice::Thread pulse;  // started with the first watch
};
State& state() {
    static auto& one = *new State;
    return one;
}

/// On the thread that reads the link.
std::string receive(uint64_t over, Bytes pieces) {
    Reader in(pieces);
    delta::Piece piece;
    {
        const std::lock_guard lock(state().shadows);
        while (delta::next(in, piece)) {
            const auto after = state().live.lower_bound(piece.end());
            if (after != state().live.begin()) std::prev(after)->second->shadow.apply(piece);
        }
    }
    if (!in.ok()) return "a malformed patch";
    if (over > state().watches.load()) return "a patch that ends watches that never began";
    state().over.store(over);
    return {};
}

/// Adds to `named` the addresses of pinned memory among the words.
void findAddresses(Bytes pieces, std::vector<uint64_t>& named) {
    Reader in(pieces);
    delta::Piece piece;
    while (delta::next(in, piece))
        for (uint32_t i = 0; i < piece.words; ++i)
            if (ranges::maybePlainHost(piece.value(i))) named.push_back(piece.value(i));
}

/// With `pushing` held: sends what has changed in the part of the shadow's memory.
void push(ClientLink& link, delta::Shadow& shadow, uint64_t address, uint64_t end, Writer& patch,
          std::vector<uint64_t>& named) {
    uint64_t at = std::max(shadow.begin(), address);
    const uint64_t stop = std::min(shadow.end(), end);
    while (at < stop) {
        {
            const std::lock_guard lock(state().shadows);
            at = shadow.collect(at, std::min((at & ~uint64_t{7}) + kStride, stop), kPatch, patch);
        }
        if (patch.size() < kPatch) continue;
        if (ranges::anyPlainHost()) findAddresses(patch.view(), named);
        link.patch(patch.view());
        patch.clear();
    }
}

/// Has the program given registered memory back without unregistering it?
bool gone(const One& one) {
    constexpr uint64_t kPage = 4096;
    const uint64_t begin = one.shadow.begin() & ~(kPage - 1);
    const uint64_t end = (one.shadow.end() + kPage - 1) & ~(kPage - 1);
    return one.registered && msync(reinterpret_cast<void*>(begin), end - begin, MS_ASYNC) != 0 &&
           errno == ENOMEM;
}

/// The same for one whole memory: where it is known what has been written, only that is compared.
void push(ClientLink& link, One& one, uint64_t address, uint64_t end, Writer& patch,
          std::vector<uint64_t>& named) {
    const auto part = [&](uint64_t from, uint64_t to) {
        push(link, one.shadow, std::max(from, address), std::min(to, end), patch, named);
    };
    if (one.written != nullptr) {
        const WrittenPages& pages = *one.written;
        part(one.shadow.begin(), pages.begin());
        part(pages.end(), one.shadow.end());
        // Whole pages, wherever the part begins: they count as not written from here on.
        const auto page = [&](uint64_t from, uint64_t to) {
            push(link, one.shadow, from, to, patch, named);
        };
        if (pages.each(address, end, page)) return;
        one.written.reset();
    }
    part(one.shadow.begin(), one.shadow.end());
}

void push(ClientLink& link, uint64_t address, uint64_t end, std::vector<uint64_t>& named) {
    const std::lock_guard pushing(state().pushing);
    Writer patch;
    // The map changes only with `pushing` held.
    for (const auto& [begin, one] : state().live)
        if (!gone(*one)) push(link, *one, address, end, patch, named);
    if (patch.size() == 0) return;
    if (ranges::anyPlainHost()) findAddresses(patch.view(), named);
    link.patch(patch.view());
}

bool running() {
    return state().over.load() != state().watches.load();
}

/// Sends changes now and then while watches run.
void keepPushing() {
    std::unique_lock lock(state().idle);
    for (;;) {
        state().begun.wait(lock, running);
        lock.unlock();
        const int64_t before = nowNanos();
        ClientLink* const link = session::link();
        if (link == nullptr || link->broken() || session::initialised() != CUDA_SUCCESS) return;
        std::vector<uint64_t> named;  // memory that they name becomes coherent with the next work
        push(*link, 0, UINT64_MAX, named);
        napNanos(std::max(kInterval, kRest * (nowNanos() - before)));
        lock.lock();
    }
}

CUresult cohere(const Context* context, const Range& range) {
    // What is on its way there belongs to what both ends begin with.
    if (const CUresult result = deliveries::settle(range.begin, range.size)) return result;
    shadows::forget(range.begin, range.size);
    const std::lock_guard pushing(state().pushing);
    if (state().live.contains(range.begin)) return CUDA_SUCCESS;
    try {
        auto one = std::make_unique<One>(range);
        const std::lock_guard lock(state().shadows);
        state().live.emplace(range.begin, std::move(one));
    } catch (const std::bad_alloc&) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    Reply reply;
    const CUresult result =
        call(Op::juiceMirrorCohere, context, bytesOfCall(custom::MirrorCohere{range.begin}), reply,
             Deferred::keep);
    if (result != CUDA_SUCCESS) {
        const std::lock_guard lock(state().shadows);
        state().live.erase(range.begin);
        return result;
    }
    ranges::setCoherent(range.begin);
    detail::count.fetch_add(1, std::memory_order_release);
    return CUDA_SUCCESS;
}

/// touch(), for an address that device code may use or not: where there is no mirror it would
/// fault.
CUresult meet(const Context* context, uint64_t address) {
    const auto range = ranges::find(address);
    if (!range || !range->onHost() || range->coherent) return CUDA_SUCCESS;
    if (range->mirrored) return cohere(context, *range);
    static std::atomic<bool> said{false};
    if (!said.exchange(true))
        say("the device is told of registered memory at 0x%llx, where the worker has memory of its "
            "own: device code that uses it will fault",
            static_cast<unsigned long long>(address));
    return CUDA_SUCCESS;
}

}  // namespace

namespace detail {

CUresult see(const Context* context, const void* bytes, size_t size) {
    const auto* const at = static_cast<const uint8_t*>(bytes);
    for (size_t offset = 0; offset + sizeof(uint64_t) <= size; offset += sizeof(uint64_t)) {
        uint64_t word = 0;
        std::memcpy(&word, at + offset, sizeof word);
        if (!ranges::maybePlainHost(word)) continue;
        if (const CUresult result = meet(context, word)) return result;
    }
    return CUDA_SUCCESS;
}

CUresult push(const Context* context, uint64_t address, uint64_t size) {
    ClientLink* const link = session::link();
    uint64_t end = size > UINT64_MAX - address ? UINT64_MAX : address + size;
    for (;;) {
        std::vector<uint64_t> named;
        coherence::push(*link, address, end, named);
        if (named.empty()) return CUDA_SUCCESS;
        for (const uint64_t one : named)
            if (const CUresult result = meet(context, one)) return result;
        // What they point at is new to the worker.
        address = 0;
        end = UINT64_MAX;
    }
}

CUresult watch(const Context* context, uint64_t stream) {
    State& now = state();
    if (now.watches.fetch_add(1) == now.over.load()) {
        const std::lock_guard lock(now.idle);
        if (!now.pulse.started()) now.pulse.start("juice-pulse", keepPushing);
        now.begun.notify_one();
    }
    return post(Op::juiceWatch, context, bytesOfCall(custom::Watch{stream}), stream);
}

}  // namespace detail

CUresult touch(const Context* context, uint64_t address) {
    const auto range = ranges::find(address);
    if (!range || !range->onHost() || range->coherent) return CUDA_SUCCESS;
    if (!range->mirrored)
        return juice_unsupported("device access to registered memory that the worker cannot map");
    return cohere(context, *range);
}

void afterFunction() {
    if (!any()) return;
    std::vector<uint64_t> named;
    push(*session::link(), 0, UINT64_MAX, named);
}

CUresult adopt(const Range& range) {
    const std::lock_guard pushing(state().pushing);
    try {
        auto one = std::make_unique<One>(range);
        const std::lock_guard lock(state().shadows);
        state().live.insert_or_assign(range.begin, std::move(one));
    } catch (const std::bad_alloc&) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    detail::count.fetch_add(1, std::memory_order_release);
    return CUDA_SUCCESS;
}

void forget(uint64_t begin) {
    const std::lock_guard pushing(state().pushing);
    const std::lock_guard lock(state().shadows);
    if (state().live.erase(begin) != 0) detail::count.fetch_sub(1, std::memory_order_release);
}

void attach(ClientLink& link) {
    {
        const std::lock_guard pushing(state().pushing);
        const std::lock_guard lock(state().shadows);
        state().live.clear();
        detail::count = 0;
        state().watches = state().over = 0;
    }
    link.onPatch(receive);
}

}  // namespace juice::shim::coherence

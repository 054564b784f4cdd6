#include "native/link/client_desk.h"

#include <poll.h>

#include <algorithm>

#include "native/link/thread.h"

namespace juice {
namespace {

constexpr int64_t kFirstNap = 1 * kMilli;
constexpr int64_t kLongestNap = 4 * kMilli;

/// How long a waiting thread looks for an answer before it lets the kernel wake it.
int64_t spinNanos() {
    return (processors() <= 2 ? 30 : 100) * kMicro;
}

}  // namespace

void Desk::wait(Waiter& me) {
    std::unique_lock lock(state);
    if (closed() || me.ready()) return;
    ++waits_;
    me.next_ = waiters_;
    waiters_ = &me;
    while (!me.done_.load(std::memory_order_relaxed) && !closed()) {
        if (!reading_) {
            reading_ = me.reads_ = true;
            lock.unlock();
            read(me);
            lock.lock();
            reading_ = me.reads_ = false;
        } else {
            me.called_ = false;
            me.wake_.wait(lock, [&] { return me.called_ || me.done_ || closed(); });
        }
    }
    Waiter** link = &waiters_;
    while (*link != &me) link = &(*link)->next_;
    *link = me.next_;
    if (!reading_) callNext();
}

void Desk::read(Waiter& me) {
    int64_t spinEnd = nowNanos() + spinNanos();
    while (!me.done_.load(std::memory_order_acquire) && !closed()) {
        switch (const auto got = stream_.pump(fd_)) {
            case FrameStream::Got::some:
                break;
            case FrameStream::Got::nothing:
                if (nowNanos() < spinEnd) {
                    spinTurn();
                } else {
                    block(me);
                    spinEnd = nowNanos() + spinNanos();
                }
                break;
            default:
                ended_(got);
                return;
        }
    }
}

void Desk::block(Waiter& me) {
    {
        std::lock_guard lock(state);
        if (me.done_ || closed()) return;
        blocked_ = true;
    }
    pollfd both[2] = {{fd_, POLLIN, 0}, {kick_.fd(), POLLIN, 0}};
    poll(both, 2, -1);
    std::lock_guard lock(state);
    blocked_ = false;
    if (both[1].revents != 0) kick_.clear();
}

void Desk::callNext() {
    for (Waiter* one = waiters_; one != nullptr; one = one->next_) {
        if (one->done_) continue;
        one->called_ = true;
        one->wake_.notify_one();
        return;
    }
}

void Desk::settle() {
    for (Waiter* one = waiters_; one != nullptr; one = one->next_) {
        if (one->done_.load(std::memory_order_relaxed) || !one->ready()) continue;
        one->done_.store(true, std::memory_order_release);
        if (!one->reads_)
            one->wake_.notify_one();
        else if (blocked_)
            kick_.ring();
    }
}

void Desk::close() {
    closed_.store(true, std::memory_order_release);
    std::lock_guard lock(state);
    for (Waiter* one = waiters_; one != nullptr; one = one->next_) one->wake_.notify_one();
    if (blocked_) kick_.ring();
}

void Desk::watch() {
    uint64_t seen = 0;
    int64_t nap = kFirstNap;
    while (!closed()) {
        bool active;
        {
            std::lock_guard lock(state);
            active = reading_ || waits_ != seen;
            seen = waits_;
        }
        if (active) {
            napNanos(nap);
            nap = std::min(nap * 2, kLongestNap);
            continue;
        }
        nap = kFirstNap;
        waitFor(fd_, POLLIN, -1);
        {
            std::lock_guard lock(state);
            if (reading_ || waits_ != seen) continue;
            reading_ = true;
        }
        auto got = stream_.pump(fd_);
        for (bool wanted = false; got == FrameStream::Got::some && !wanted && !closed();) {
            got = stream_.pump(fd_);
            std::lock_guard lock(state);
            wanted = waiters_ != nullptr;
        }
        if (got != FrameStream::Got::some && got != FrameStream::Got::nothing) ended_(got);
        std::lock_guard lock(state);
        reading_ = false;
        callNext();
    }
}

}  // namespace juice

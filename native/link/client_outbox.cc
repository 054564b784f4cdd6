#include "native/link/client_outbox.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "native/link/thread.h"

namespace juice {
namespace {

/// A batch of this size is sent by whoever appends to it, unless somebody is sending already ...
constexpr size_t kGrown = 24u << 10;
/// ... and of this size, in any case: then the one who appends has to wait.
constexpr size_t kTooLarge = 256u << 10;
/// How long a posted Call may linger.
constexpr int64_t kLinger = 50 * kMicro;
/// The flusher goes to sleep after so many turns that found nothing.
constexpr int kQuietTurns = 40;

}  // namespace

void Outbox::Batch::add(const void* data, size_t size) {
    if (size == 0) return;
    if (size_ + size > capacity_) {
        const size_t capacity = std::max({size_ + size, capacity_ * 2, 2 * kGrown});
        std::unique_ptr<uint8_t[]> larger(new uint8_t[capacity]);
        if (size_ > 0) std::memcpy(larger.get(), bytes_.get(), size_);
        bytes_ = std::move(larger);
        capacity_ = capacity;
    }
    std::memcpy(bytes_.get() + size_, data, size);
    size_ += size;
}

void Outbox::append(const Ticket&, wire::Header header, Bytes payload) {
    header.size = static_cast<uint32_t>(payload.size());
    header.sequence = lastSequence_.load(std::memory_order_relaxed) + 1;
    gathering_.add(&header, sizeof header);
    gathering_.add(payload.data(), payload.size());
    lastSequence_.store(header.sequence, std::memory_order_relaxed);
    appended_.fetch_add(sizeof header + payload.size(), std::memory_order_relaxed);
    gathered_.store(gathering_.size(), std::memory_order_relaxed);
}

void Outbox::appendFrame(Bytes frame) {
    std::lock_guard lock(batch_);
    gathering_.add(frame.data(), frame.size());
    gathered_.store(gathering_.size(), std::memory_order_relaxed);
    if (asleep_.exchange(false)) wake_.notify_one();
}

void Outbox::nudge() {
    const size_t size = gathered_.load(std::memory_order_relaxed);
    if (size >= kTooLarge) {
        flush();
    } else if (size >= kGrown && socket_.try_lock()) {
        socket_.unlock();
        flush();
    } else if (asleep_.load(std::memory_order_relaxed)) {
        // Seen for sure: the flusher falls asleep only with the lock held and nothing gathered.
        std::lock_guard lock(batch_);
        if (asleep_.exchange(false)) wake_.notify_one();
    }
}

void Outbox::send(iovec* parts, int count) {
    constexpr int kMostParts = 4;
    iovec all[kMostParts];
    std::unique_lock sending(socket_);
    {
        std::lock_guard lock(batch_);
        std::swap(sending_, gathering_);
        gathered_.store(0, std::memory_order_relaxed);
        const uint64_t last = lastSequence_.load(std::memory_order_relaxed);
        if (last > lastSent_) {
            lastSent_ = last;
            marks_.push_back({last, appended_.load(std::memory_order_relaxed)});
        }
    }
    int used = 0;
    size_t bytes = sending_.size();
    if (bytes > 0) all[used++] = {sending_.data(), bytes};
    for (int i = 0; i < count && used < kMostParts; ++i) {
        bytes += parts[i].iov_len;
        all[used++] = parts[i];
    }
    Sent sent = Sent::all;
    if (bytes > 0 && !closed_.load(std::memory_order_acquire)) {
        sent = sendAll(fd_, all, used, [this] { return closed_ || nowNanos() > deadline_; });
        bytesSent_.fetch_add(bytes, std::memory_order_relaxed);
        flushes_.fetch_add(1, std::memory_order_relaxed);
        if (sent != Sent::all)
            closed_.store(true, std::memory_order_release);  // half a frame is out
    }
    const int cause = errno;
    sending_.clear();
    sending.unlock();
    if (sent == Sent::failed) failed_(cause);
}

bool Outbox::executed(uint64_t sequence) {
    std::lock_guard lock(batch_);
    if (sequence < lastExecuted_ || sequence > lastSent_) return false;
    lastExecuted_ = sequence;
    while (!marks_.empty() && marks_.front().sequence <= sequence) {
        executedBytes_.store(marks_.front().bytes, std::memory_order_relaxed);
        marks_.pop_front();
    }
    return true;
}

void Outbox::trySay(Bytes frame) {
    const std::unique_lock sending(socket_, std::try_to_lock);
    if (!sending.owns_lock() || closed_) return;
    (void)!::send(fd_, frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    closed_ = true;
}

bool Outbox::canSpeak(int64_t nanos) {
    const int64_t end = nowNanos() + nanos;
    do {
        const std::unique_lock sending(socket_, std::try_to_lock);
        const std::unique_lock gathering(batch_, std::try_to_lock);
        if (sending.owns_lock() && gathering.owns_lock()) return !closed_;
        napNanos(kLinger);
    } while (nowNanos() < end);
    return false;
}

void Outbox::hurry(int64_t nanos) {
    deadline_.store(nowNanos() + nanos);
}

void Outbox::close() {
    closed_.store(true, std::memory_order_release);
    std::lock_guard lock(batch_);
    asleep_ = false;
    wake_.notify_one();
}

void Outbox::linger() {
    int quiet = 0;
    while (!closed_.load(std::memory_order_acquire)) {
        if (gathered_.load(std::memory_order_relaxed) > 0) {
            flush();
            quiet = 0;
        } else if (++quiet > kQuietTurns) {
            std::unique_lock lock(batch_);
            if (gathering_.size() > 0 || closed_) continue;
            asleep_ = true;
            wake_.wait(lock, [this] { return !asleep_.load(std::memory_order_relaxed); });
            quiet = 0;
            continue;
        }
        napNanos(kLinger);
    }
}

}  // namespace juice

// Reading on the worker's side: who reads the command lane when, and what the frames mean.
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "native/link/server.h"
#include "native/link/socket.h"

namespace juice {
namespace {

using wire::Kind;

/// The reliever reads when the executor has been away for this long ...
constexpr int64_t kAway = 80 * kMicro;
/// ... looks at it this often ...
constexpr int64_t kLook = 60 * kMicro;
/// ... and goes to sleep when the link has been quiet for this long.
constexpr int64_t kQuiet = 5 * kMilli;
/// How long the executor looks for chunks itself before it leaves that to the reliever.
constexpr int64_t kChunkSpin = 50 * kMicro;

}  // namespace

std::string Server::frame(const wire::Header& header, Bytes payload, const SegmentRef& segment) {
    switch (static_cast<Kind>(header.kind)) {
        case Kind::call:
            return onCall(header, payload, segment);
        case Kind::ack:
            return onAck(payload);
        case Kind::patch:
            return onPatchFrame(payload);
        case Kind::write:
        case Kind::called:
            return onAnswer(static_cast<Kind>(header.kind), payload);
        case Kind::goodbye: {
            Goodbye goodbye;
            if (!decodeGoodbye(payload, goodbye)) return "a malformed goodbye";
            finish(Ending::goodbye, goodbye.sentence);
            return {};
        }
        default:
            return "a second handshake";
    }
}

std::string Server::onCall(const wire::Header& header, Bytes payload, const SegmentRef& segment) {
    const std::string what = "call " + std::to_string(header.opcode);
    if (header.sequence != lastCall_ + 1)
        return what + " with sequence " + std::to_string(header.sequence) + " where " +
               std::to_string(lastCall_ + 1) + " was next";
    if (header.request != 0 && header.request <= lastRequest_)
        return what + " with the used request number " + std::to_string(header.request);
    const size_t bytes = wire::kHeaderSize + payload.size();
    {
        std::lock_guard lock(queueMutex_);
        if (queuedBytes_ + bytes > wire::kCallWindow)
            return what + " beyond the window of unexecuted calls";
        queuedBytes_ += bytes;
        queue_.push_back({header, payload, segment});
        queued_.store(queue_.size(), std::memory_order_release);
    }
    lastCall_ = header.sequence;
    if (header.request != 0) lastRequest_ = header.request;
    received_.store(header.sequence, std::memory_order_relaxed);
    return {};
}

std::string Server::onAck(Bytes payload) {
    Reader in(payload);
    const auto received = in.get<uint64_t>();
    const auto executed = in.get<uint64_t>();
    if (received < lastAck_ || received > lastReply_ || executed > received)
        return "an impossible acknowledgement";
    lastAck_ = received;
    return {};
}

std::string Server::onPatchFrame(Bytes payload) {
    std::function<std::string(Bytes)> handler;
    {
        std::lock_guard lock(patchMutex_);
        handler = patchHandler_;
    }
    if (!handler) return "a patch before its first call";
    return handler(payload.subspan(sizeof(uint64_t)));
}

std::string Server::onAnswer(Kind kind, Bytes payload) {
    std::lock_guard lock(answersMutex_);
    if (!answers_.called || !answers_.write) return "the answer to a callback that was never sent";
    Reader in(payload);
    const auto name = in.get<uint64_t>();
    if (kind == Kind::called)
        answers_.called(name);
    else
        answers_.write(name, in.take(in.remaining()));
    return {};
}

bool Server::dequeue(Call& out) {
    if (queued_.load(std::memory_order_acquire) == 0) return false;
    {
        std::lock_guard lock(queueMutex_);
        current_ = std::move(queue_.front());
        queue_.pop_front();
        queuedBytes_ -= wire::kHeaderSize + current_.payload.size();
        queued_.store(queue_.size(), std::memory_order_relaxed);
    }
    out.header = current_.header;
    out.payload = current_.payload;
    return true;
}

FrameStream::Got Server::turn() {
    if (reading_.exchange(true, std::memory_order_acquire)) return FrameStream::Got::nothing;
    const auto got = stream_.pump(fd_);
    const int cause = errno;
    reading_.store(false, std::memory_order_release);
    errno = cause;
    if (got != FrameStream::Got::some && got != FrameStream::Got::nothing)
        laneEnded(got, "the connection to the client", stream_.sentence());
    return got;
}

Next Server::next(Call& out, int spinMicros, int waitMillis) {
    if (current_.header.sequence != 0) {
        const uint64_t sequence = std::exchange(current_.header.sequence, 0);
        const size_t bytes = wire::kHeaderSize + current_.payload.size();
        current_.segment = {};
        retire(sequence, bytes);
    }
    inside_ = true;
    // The reliever leaves after at most one read, and does not come back while we are inside.
    while (reading_.load(std::memory_order_acquire)) spinTurn();
    const int64_t begin = nowNanos();
    const int64_t spinEnd = begin + spinMicros * kMicro;
    const int64_t deadline = waitMillis < 0 ? INT64_MAX : begin + waitMillis * kMilli;
    Next result = Next::idle;
    for (;;) {
        // After a goodbye what was said before it still counts; after anything else nothing does.
        const Ending ending = ending_.load(std::memory_order_acquire);
        if ((ending == Ending::open || ending == Ending::goodbye) && dequeue(out)) {
            result = Next::call;
            break;
        }
        if (ending != Ending::open) {
            result = Next::closed;
            break;
        }
        if (turn() == FrameStream::Got::some || over_) continue;
        const int64_t now = nowNanos();
        if (now < spinEnd) {
            spinTurn();
        } else if (now < deadline) {
            block(deadline);
        } else {
            break;
        }
    }
    outsideSince_.store(nowNanos(), std::memory_order_relaxed);
    inside_ = false;
    return result;
}

void Server::block(int64_t deadline) {
    blockedSince_ = nowNanos();
    blocked_ = true;
    waitFor(fd_, POLLIN, deadline == INT64_MAX ? -1 : millisUntil(deadline));
    blocked_ = false;
    if (resting_) restReliever();
}

void Server::busy() {
    outsideSince_.store(0, std::memory_order_relaxed);
}

void Server::idle() {
    outsideSince_.store(nowNanos(), std::memory_order_relaxed);
}

/// Ends the reliever's rest.
void Server::restReliever() {
    std::lock_guard lock(rest_);
    resting_ = false;
    restEnds_.notify_one();
}

/// The body of the reliever.
void Server::relieve() {
    while (!over_) {
        if (inside_) {
            if (!blocked_ || nowNanos() - blockedSince_ < kQuiet) {
                napNanos(kLook);
                continue;
            }
            std::unique_lock lock(rest_);
            resting_ = true;
            // Either the executor sees that we rest, or we see that it is up.
            if (!blocked_ || over_) resting_ = false;
            restEnds_.wait(lock, [this] { return !resting_; });
            continue;
        }
        if (nowNanos() - outsideSince_.load(std::memory_order_relaxed) < kAway) {
            napNanos(kLook);
            continue;
        }
        waitFor(fd_, POLLIN, -1);
        // `inside_` is asked again with the turn taken: see next().
        while (!inside_ && !over_) {
            if (reading_.exchange(true, std::memory_order_acquire)) break;
            const auto got = inside_ ? FrameStream::Got::nothing : stream_.pump(fd_);
            const int cause = errno;
            reading_.store(false, std::memory_order_release);
            errno = cause;
            if (got == FrameStream::Got::some) continue;
            if (got != FrameStream::Got::nothing)
                laneEnded(got, "the connection to the client", stream_.sentence());
            break;
        }
    }
}

bool Server::receive(uint64_t transfer, uint64_t size,
                     const std::function<void(uint64_t, void*, size_t)>& consume) {
    if (size == 0) return !over_;
    const std::string violation = staging_.open(transfer, size);
    if (!violation.empty()) {
        finish(Ending::violation, "the client sent " + violation);
        return false;
    }
    uint64_t seen = 0;
    int64_t spinEnd = nowNanos() + kChunkSpin;
    while (seen < size) {
        Staging::Piece piece;
        if (staging_.next(transfer, piece)) {
            seen += piece.bytes;
            consume(piece.offset, piece.slot, piece.bytes);
            spinEnd = nowNanos() + kChunkSpin;
        } else if (over_) {
            return false;
        } else if (nowNanos() < spinEnd) {
            if (turn() != FrameStream::Got::some) spinTurn();
        } else {
            busy();
            staging_.await(transfer);
        }
    }
    staging_.finish(transfer);
    return true;
}

}  // namespace juice

// What a client does with the frames of its worker. Runs on whichever thread has the lane.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "native/link/client.h"
#include "native/link/handshake.h"

namespace juice {

using wire::Kind;

std::string Client::frame(const wire::Header& header, Bytes payload, const SegmentRef&) {
    switch (static_cast<Kind>(header.kind)) {
        case Kind::reply:
            return onReply(header, payload);
        case Kind::ack:
            return onAck(payload);
        case Kind::fault:
            return onFaultFrame(payload);
        case Kind::patch:
            return onPatchFrame(payload);
        case Kind::output:
            return onOutputFrame(payload);
        case Kind::callback:
            return onCallbackFrame(payload);
        case Kind::credit: {
            Reader in(payload);
            const auto bytes = in.get<uint64_t>();
            const auto transfer = in.get<uint64_t>();
            std::lock_guard lock(desk_.state);
            return outflow_.credit(bytes, transfer);
        }
        case Kind::goodbye: {
            Goodbye goodbye;
            if (!decodeGoodbye(payload, goodbye)) return "a malformed goodbye";
            fail("the worker said goodbye: " + goodbye.sentence);
            return {};
        }
        default:
            return "a second handshake";
    }
}

std::string Client::onReply(const wire::Header& header, Bytes payload) {
    const std::string what = "a reply to request " + std::to_string(header.request);
    if (header.sequence != lastReply_ + 1)
        return what + " with sequence " + std::to_string(header.sequence) + " where " +
               std::to_string(lastReply_ + 1) + " was next";
    lastReply_ = header.sequence;
    wire::ReplyHead head;
    std::memcpy(&head, payload.data(), sizeof head);  // the size was checked with the header
    if (!outbox_.executed(head.executed))
        return what + " that claims an impossible number of executed calls";
    {
        std::lock_guard lock(desk_.state);
        const auto found = pending_.find(header.request);
        if (found == pending_.end()) return what + ", which was never made";
        Pending& pending = found->second;
        if (pending.arrived) return "a second answer to request " + std::to_string(header.request);
        if (header.opcode != pending.opcode) return what + " with another opcode";
        if (head.landed < lastLanded_ || !inflow_.plausible(head.landed))
            return what + " that presupposes impossible transfers";
        lastLanded_ = head.landed;
        pending.reply.head = head;
        pending.reply.payload.assign(payload.begin() + sizeof head, payload.end());
        pending.arrived = true;
        desk_.settle();
    }
    acknowledge(wire::kHeaderSize + payload.size());
    return {};
}

/// Says now and then which replies have come.
void Client::acknowledge(size_t bytes) {
    unackedBytes_ += bytes;
    if (lastReply_ - lastAcked_ < wire::kAckEveryCalls && unackedBytes_ < wire::kAckEveryBytes)
        return;
    lastAcked_ = lastReply_;
    unackedBytes_ = 0;
    outbox_.appendFrame(ackFrame(lastReply_, lastReply_));
}

std::string Client::onAck(Bytes payload) {
    Reader in(payload);
    const auto received = in.get<uint64_t>();
    const auto executed = in.get<uint64_t>();
    if (received > outbox_.lastSequence() || executed > received || !outbox_.executed(executed))
        return "an impossible acknowledgement";
    std::lock_guard lock(desk_.state);
    desk_.settle();
    return {};
}

std::string Client::onFaultFrame(Bytes payload) {
    Reader in(payload);
    const auto result = in.get<int32_t>();
    const auto opcode = in.get<uint16_t>();
    std::function<void(int, uint16_t)> handler;
    {
        std::lock_guard lock(desk_.state);
        handler = faultHandler_;
    }
    if (handler) handler(result, opcode);
    return {};
}

std::string Client::onOutputFrame(Bytes payload) {
    OutputHandler handler;
    {
        std::lock_guard lock(desk_.state);
        handler = outputHandler_;
    }
    Reader in(payload);
    const auto stream = in.get<wire::OutputStream>();
    if (stream != wire::OutputStream::standard && stream != wire::OutputStream::error)
        return "output on an unknown stream";
    const Bytes text = in.take(in.remaining());
    if (handler) handler(stream, {reinterpret_cast<const char*>(text.data()), text.size()});
    return {};
}

std::string Client::onPatchFrame(Bytes payload) {
    PatchHandler handler;
    {
        std::lock_guard lock(desk_.state);
        handler = patchHandler_;
    }
    if (!handler) return "a patch that was not asked for";
    Reader in(payload);
    const auto watches = in.get<uint64_t>();
    return handler(watches, payload.subspan(sizeof watches));
}

std::string Client::onCallbackFrame(Bytes payload) {
    Reader in(payload);
    Callback callback;
    in.get(callback.id);
    in.get(callback.result);
    in.get(callback.kind);
    in.get(callback.landed);
    std::function<void(const Callback&)> handler;
    {
        std::lock_guard lock(desk_.state);
        if (!inflow_.plausible(callback.landed))
            return "a callback that presupposes impossible transfers";
        handler = callbackHandler_;
    }
    if (handler) handler(callback);
    return {};
}

std::string Client::beginChunk(const wire::Header&, const ChunkHead& head, size_t bytes,
                               uint8_t*& target) {
    return writer_.begin(head, bytes, target);
}

std::string Client::endChunk() {
    std::lock_guard lock(desk_.state);
    if (writer_.end()) desk_.settle();
    return {};
}

void Client::laneEnded(const std::string& lane, FrameStream::Got got, const std::string& sentence) {
    const int cause = errno;
    if (got == FrameStream::Got::violation) {
        const std::string why = "the worker broke the protocol: it sent " + sentence;
        outbox_.trySay(goodbyeFrame(wire::GoodbyeReason::protocol, why));
        fail(why);
    } else if (got == FrameStream::Got::closed) {
        fail(lane + " was closed from the other end");
    } else {
        fail(lane + " failed: " + std::strerror(cause));
    }
}

void Client::openLanes() {
    if (wantedLanes_ == 0 || lanesOpened_.load(std::memory_order_acquire)) return;
    std::lock_guard opening(laneOpening_);
    if (lanesOpened_) return;
    std::lock_guard lock(ending_);
    if (failing_) return;
    for (int i = 0; i < wantedLanes_; ++i) {
        lanes_[i] = std::make_unique<Lane>(*this, static_cast<uint16_t>(i + 1));
        if (!lanes_[i]->start()) {
            lanes_[i].reset();  // fewer lanes do as well
            break;
        }
    }
    lanesOpened_.store(true, std::memory_order_release);
}

bool Client::Lane::start() {
    return receiver_.start("juice-lane-in", [this] { run(); });
}

void Client::Lane::join() {
    receiver_.join();
    sender_.join();
    abandon();
}

void Client::Lane::abandon() {
    const int fd = fd_.exchange(-1);
    if (fd >= 0) ::close(fd);
}

void Client::Lane::shut() {
    const int fd = fd_.load();
    if (fd >= 0) shutdown(fd, SHUT_RDWR);
}

/// A lane that does not come about is no fault of the link: the others do its work.
bool Client::Lane::dial() {
    std::string error;
    const int fd = connectTo(
        client_.endpoint_.host, client_.endpoint_.port, wire::kHandshakeTimeoutMs,
        [this] { return client_.failing_.load(); }, error);
    if (fd < 0) return false;
    {
        std::lock_guard lock(client_.ending_);
        if (client_.failing_) {
            ::close(fd);
            return false;
        }
        fd_ = fd;  // from here on fail() can wake this thread
    }
    uint32_t capabilities = 0;
    if (openLane(fd, client_.who_, number_, ClientOffer{wire::kBulkLanes}, capabilities, error))
        return true;
    std::lock_guard lock(client_.ending_);
    abandon();
    return false;
}

void Client::Lane::run() {
    if (!dial()) return;
    const int fd = fd_;
    const std::string name = "bulk lane " + std::to_string(number_);
    const bool served = sender_.start("juice-lane-out", [this, fd, name] {
        client_.outflow_.serve(fd, [this, &name](int cause) {
            client_.fail(name + " failed: " + std::strerror(cause));
        });
    });
    if (served) client_.outflow_.laneReady();
    while (!client_.desk_.closed()) {
        const auto got = stream_.pump(fd);
        if (got == FrameStream::Got::nothing)
            waitFor(fd, POLLIN, -1);
        else if (got != FrameStream::Got::some)
            return client_.laneEnded(name, got, stream_.sentence());
    }
}

std::string Client::Lane::frame(const wire::Header& header, Bytes payload, const SegmentRef&) {
    Goodbye goodbye;
    if (static_cast<Kind>(header.kind) != Kind::goodbye) return "a second handshake on a bulk lane";
    if (!decodeGoodbye(payload, goodbye)) return "a malformed goodbye";
    client_.fail("the worker said goodbye: " + goodbye.sentence);
    return {};
}

std::string Client::Lane::beginChunk(const wire::Header&, const ChunkHead& head, size_t bytes,
                                     uint8_t*& target) {
    return writer_.begin(head, bytes, target);
}

std::string Client::Lane::endChunk() {
    std::lock_guard lock(client_.desk_.state);
    if (writer_.end()) client_.desk_.settle();
    return {};
}

}  // namespace juice

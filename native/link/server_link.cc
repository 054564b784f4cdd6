// The worker's end: handshake, sending, lanes, ending.
#include "native/link/server_link.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "native/link/handshake.h"
#include "native/link/server.h"
#include "native/link/socket.h"

namespace juice {
namespace {

using wire::Kind;

/// Outgoing transfers below this go over the command lane: it is what the waiting client reads.
constexpr uint64_t kWorthALane = 1u << 20;
/// Connections that a process may offer as bulk lanes in its life, admitted or not.
constexpr size_t kMostLaneOffers = 4 * wire::kMaxBulkLanes;
/// A client that does not read hears no goodbye after this long.
constexpr int64_t kLastWord = 500 * kMilli;
/// When a bulk lane ends the command lane may be about to say why.
constexpr int64_t kSaysWhy = 300 * kMilli;

void raise(std::atomic<uint64_t>& to, uint64_t value) {
    uint64_t now = to.load(std::memory_order_relaxed);
    while (now < value && !to.compare_exchange_weak(now, value, std::memory_order_relaxed)) {
    }
}

}  // namespace

std::unique_ptr<ServerLink> ServerLink::accept(Options options, std::string& error) {
    const int fd = options.fd = moveHigh(options.fd);
    tuneSocket(fd);
    ClientOffer offer;
    const auto refuse = [&](wire::GoodbyeReason reason, const char* sentence) {
        error = sentence;
        sendGoodbye(fd, reason, error);
    };
    if (options.slots.size() < 2) {
        refuse(wire::GoodbyeReason::worker_failed, "the worker has no staging memory");
    } else if (!provesKey(options.preface, options.who.key) || options.preface.lane != 0) {
        refuse(wire::GoodbyeReason::proof, "the preface does not prove the process's key");
    } else if (admitLane(fd, options.who, options.preface, wire::kBulkLanes, offer, error)) {
        const unsigned common =
            options.arenas & offer.arenas & ((1u << std::size(wire::kArenas)) - 1);
        if (common == 0) {
            refuse(wire::GoodbyeReason::arena, "no address arena is free at both ends");
        } else {
            const auto arena = static_cast<uint8_t>(__builtin_ctz(common));
            const std::string worker = options.worker.substr(0, 1024);
            auto server = std::make_unique<Server>(std::move(options), arena, offer.pid,
                                                   (offer.capabilities & wire::kOutput) != 0);
            if (!sendWelcome(fd, {arena, server->window(), worker}))
                error = "the client closed the connection during the handshake";
            else if (!server->start())
                error = "no thread could be started for the link";
            else
                return server;
            return nullptr;
        }
    }
    ::close(fd);
    return nullptr;
}

Server::Server(Options options, uint8_t arena, uint32_t clientPid, bool takesOutput)
    : fd_(options.fd),
      who_(options.who),
      arena_(arena),
      clientPid_(clientPid),
      takesOutput_(takesOutput),
      onEnding_(std::move(options.onEnding)),
      staging_(
          options.slots,
          [this](uint64_t bytes, uint64_t transfer) { sendFrame(creditFrame(bytes, transfer)); }),
      stream_(*this, From::client, 0),
      writer_(staging_) {}

bool Server::start() {
    return reliever_.start("juice-relief", [this] { relieve(); }) &&
           sender_.start("juice-send", [this] {
               outflow_.serveCommandLane([this](iovec(&parts)[3]) { return sendParts(parts, 3); });
           });
}

Server::~Server() {
    finish(Ending::closed, "the worker has closed the link");
    reliever_.join();
    sender_.join();
    std::vector<std::unique_ptr<Lane>> lanes;
    {
        std::lock_guard lock(endingMutex_);
        lanes.swap(lanes_);
    }
    lanes.clear();
    ::close(fd_);
}

/// Sends on the command lane. `prepare` is called when it is this frame's turn, with the lock held.
template <typename Prepare>
bool Server::sendInTurn(iovec* parts, int count, const Prepare& prepare) {
    size_t bytes = 0;
    for (int i = 0; i < count; ++i) bytes += parts[i].iov_len;
    Sent sent;
    int cause;
    {
        std::lock_guard lock(sending_);
        if (over_) return false;
        prepare();
        bytesOut_.fetch_add(bytes, std::memory_order_relaxed);
        sent = sendAll(fd_, parts, count, [this] { return over_ || nowNanos() > lastWord_; });
        cause = errno;
        if (sent == Sent::stopped) over_ = true;  // half a frame is out
    }
    if (sent != Sent::failed) return sent == Sent::all;
    // A goodbye may still be unread: it says more than the failure does.
    while (!over_ && turn() == FrameStream::Got::some) {
    }
    finish(Ending::reset,
           "the connection to the client failed: " + std::string(std::strerror(cause)));
    return false;
}

bool Server::sendParts(iovec* parts, int count) {
    return sendInTurn(parts, count, [] {});
}

void Server::sendFrame(Bytes frame) {
    iovec part{const_cast<uint8_t*>(frame.data()), frame.size()};
    sendParts(&part, 1);
}

void Server::reply(const wire::Header& to, wire::ReplyHead head, Bytes payload) {
    if (sizeof head + payload.size() > wire::kMaxPayload)
        return goodbye(wire::GoodbyeReason::worker_failed,
                       "the reply to call " + std::to_string(to.opcode) + " does not fit a frame");
    wire::Header header = immediate(Kind::reply, sizeof head + payload.size());
    header.opcode = to.opcode;
    header.thread = to.thread;
    header.context = to.context;
    header.request = to.request;
    iovec parts[3] = {{&header, sizeof header},
                      {&head, sizeof head},
                      {const_cast<uint8_t*>(payload.data()), payload.size()}};
    sendInTurn(parts, 3, [&] {
        header.sequence = lastReply_.fetch_add(1) + 1;
        head.executed = executed_.load(std::memory_order_relaxed);
        head.landed = outflow_.begun();
        raise(told_, head.executed);
    });
}

void Server::fault(int result, uint16_t opcode) {
    sendFrame(faultFrame(result, opcode));
}

void Server::patch(uint64_t watches, Bytes pieces) {
    sendFrame(patchFrame(watches, pieces));
}

void Server::output(wire::OutputStream stream, std::string_view text) {
    if (!takesOutput_ || text.empty()) return;
    Writer payload;
    payload.put(stream);
    payload.raw(text.data(), text.size());
    sendFrame(immediateFrame(Kind::output, payload.view()));
}

void Server::onPatch(std::function<std::string(Bytes)> handler) {
    std::lock_guard lock(patchMutex_);
    patchHandler_ = std::move(handler);
}

void Server::callback(uint64_t id, int result, uint32_t kind) {
    struct {
        uint64_t id;
        int32_t result;
        uint32_t kind;
        uint64_t landed;
    } payload{id, result, kind, 0};
    wire::Header header = immediate(Kind::callback, sizeof payload);
    iovec parts[2] = {{&header, sizeof header}, {&payload, sizeof payload}};
    sendInTurn(parts, 2, [&] { payload.landed = outflow_.begun(); });
}

void Server::onAnswers(Answers answers) {
    std::lock_guard lock(answersMutex_);
    answers_ = std::move(answers);
}

void Server::executed(const wire::Header& call) {
    raise(executed_, call.sequence);
}

/// The executor is through with a Call: tells the client when an acknowledgement is due.
void Server::retire(uint64_t sequence, size_t bytes) {
    raise(executed_, sequence);
    unackedBytes_ += bytes;
    const uint64_t executed = executed_.load(std::memory_order_relaxed);
    const uint64_t unacked = executed - std::min(executed, told_.load(std::memory_order_relaxed));
    if (unacked == 0) unackedBytes_ = 0;
    if (unacked < wire::kAckEveryCalls && unackedBytes_ < wire::kAckEveryBytes) return;
    unackedBytes_ = 0;
    raise(told_, executed);
    sendFrame(ackFrame(received_.load(std::memory_order_relaxed), executed));
}

uint64_t Server::beginSend(uint64_t transfer, uint64_t size) {
    const uint64_t ordinal = outflow_.begin(size);
    if (size < kWorthALane) return ordinal;
    std::lock_guard lock(largeMutex_);
    large_.emplace(ordinal, size);
    return ordinal;
}

void Server::sendPiece(uint64_t transfer, uint64_t ordinal, uint64_t offset, const void* data,
                       size_t bytes, std::function<void()> done) {
    bool bulk = false;
    {
        std::lock_guard lock(largeMutex_);
        const auto found = large_.find(ordinal);
        bulk = found != large_.end();
        if (bulk && (found->second -= std::min<uint64_t>(found->second, bytes)) == 0)
            large_.erase(found);
    }
    outflow_.add(transfer, ordinal, offset, data, bytes, bulk, std::move(done));
}

void Server::goodbye(wire::GoodbyeReason reason, std::string_view sentence) {
    lastWord_ = nowNanos() + kLastWord;
    sendFrame(goodbyeFrame(reason, sentence));
    finish(Ending::goodbye, std::string(sentence));
}

std::string Server::reason() const {
    std::lock_guard lock(endingMutex_);
    return reason_;
}

uint64_t Server::bytesIn() const {
    uint64_t bytes = stream_.received();
    std::lock_guard lock(endingMutex_);
    for (const auto& lane : lanes_) bytes += lane->received();
    return bytes;
}

void Server::laneEnded(FrameStream::Got got, const std::string& lane, const std::string& sentence) {
    if (got == FrameStream::Got::violation)
        finish(Ending::violation, "the client sent " + sentence);
    else if (got == FrameStream::Got::closed)
        finish(Ending::closed, lane + " was closed without a goodbye");
    else
        finish(Ending::reset, lane + " failed: " + std::strerror(errno));
}

/// The first ending wins.
void Server::finish(Ending ending, const std::string& why) {
    {
        std::lock_guard lock(endingMutex_);
        if (ending_ != Ending::open) return;
        reason_ = why;
        ending_ = ending;
        if (ending == Ending::violation) {
            // Only where no frame is half sent.
            std::unique_lock sending(sending_, std::try_to_lock);
            if (sending.owns_lock()) sendGoodbye(fd_, wire::GoodbyeReason::protocol, why);
        }
        over_ = true;
        shutdown(fd_, SHUT_RDWR);
        for (const auto& lane : lanes_) lane->shut();
    }
    staging_.close();
    outflow_.close();
    restReliever();
    if (onEnding_) onEnding_();
}

void Server::addLane(int fd, const wire::Preface& preface) {
    fd = moveHigh(fd);
    tuneSocket(fd);
    const bool fits = preface.lane >= 1 && preface.lane <= wire::kMaxBulkLanes &&
                      preface.process == who_.process && sameBytes(preface.session, who_.session) &&
                      provesKey(preface, who_.key);
    std::lock_guard lock(endingMutex_);
    if (!fits || over_ || lanes_.size() >= kMostLaneOffers) {
        ::close(fd);
        return;
    }
    auto lane = std::make_unique<Lane>(*this, fd, preface);
    if (lane->start()) lanes_.push_back(std::move(lane));
}

Server::Lane::~Lane() {
    receiver_.join();
    sender_.join();
    ::close(fd_);
}

bool Server::Lane::start() {
    return receiver_.start("juice-lane-in", [this] { run(); });
}

void Server::Lane::shut() {
    shutdown(fd_, SHUT_RDWR);
}

void Server::Lane::run() {
    ClientOffer offer;
    std::string error;
    // A stranger with a copied preface fails here; the link goes on without the lane.
    if (!admitLane(fd_, server_.who_, preface_, wire::kBulkLanes, offer, error)) return shut();
    const std::string name = "bulk lane " + std::to_string(preface_.lane);
    const auto stop = [this] { return server_.over_.load(); };
    const bool served = sender_.start("juice-lane-out", [this, name, stop] {
        server_.outflow_.serveBulkLane([&](iovec(&parts)[3]) {
            const size_t bytes = parts[0].iov_len + parts[1].iov_len + parts[2].iov_len;
            if (sendAll(fd_, parts, 3, stop) != Sent::all) {
                server_.bulkLaneEnded(FrameStream::Got::failed, name, {});
                return false;
            }
            server_.bytesOut_.fetch_add(bytes, std::memory_order_relaxed);
            return true;
        });
    });
    if (served) server_.outflow_.laneReady();
    while (!server_.over_) {
        const auto got = stream_.pump(fd_);
        if (got == FrameStream::Got::nothing)
            waitFor(fd_, POLLIN, -1);
        else if (got != FrameStream::Got::some)
            return server_.bulkLaneEnded(got, name, stream_.sentence());
    }
}

/// The client closes all of its lanes after its goodbye, which comes on another connection.
void Server::bulkLaneEnded(FrameStream::Got got, const std::string& lane,
                           const std::string& sentence) {
    const int cause = errno;
    if (got != FrameStream::Got::violation)
        for (const int64_t end = nowNanos() + kSaysWhy; !over_ && nowNanos() < end;)
            if (turn() == FrameStream::Got::nothing) napNanos(kMilli);
    errno = cause;
    laneEnded(got, lane, sentence);
}

std::string Server::Lane::frame(const wire::Header&, Bytes, const SegmentRef&) {
    return "something other than chunks on a bulk lane";
}

}  // namespace juice

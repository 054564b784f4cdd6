// Connecting, ending, and everything that a caller asks of the client's end.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "native/link/client.h"
#include "native/link/handshake.h"

namespace juice {
namespace {

constexpr int kDefaultLanes = 4;
/// A worker that does not read hears no goodbye after this long.
constexpr int64_t kLastWord = 500 * kMilli;
/// The first transfer of this size opens the bulk lanes.
constexpr size_t kOpensLanes = 4u << 20;
/// Transfers below this go over the command lane even so: no thread has to be woken for them.
constexpr size_t kWorthALane = 1u << 20;

int lanesFrom(const ClientHello& hello) {
    int lanes = hello.lanes;
    if (lanes < 0) {
        const char* setting = std::getenv("JUICE_LANES");
        char* end = nullptr;
        const long value = setting != nullptr ? std::strtol(setting, &end, 10) : kDefaultLanes;
        lanes = setting != nullptr && (end == setting || *end != 0)
                    ? kDefaultLanes
                    : static_cast<int>(std::clamp(value, 0l, long{wire::kMaxBulkLanes}));
    }
    return std::min<int>(lanes, wire::kMaxBulkLanes);
}

Reply brokenReply() {
    Reply reply;
    reply.broken = true;
    return reply;
}

}  // namespace

std::unique_ptr<ClientLink> ClientLink::connect(const Endpoint& endpoint, const Credentials& who,
                                                const ClientHello& hello, std::string& error) {
    const NoCancel whole;
    int lanes = lanesFrom(hello);
    ClientOffer offer{hello.capabilities, hello.arenas, hello.pid};
    if (lanes == 0) offer.capabilities &= ~static_cast<uint32_t>(wire::kBulkLanes);
    const int fd = connectTo(
        endpoint.host, endpoint.port, wire::kHandshakeTimeoutMs, [] { return false; }, error);
    if (fd < 0) return nullptr;
    uint32_t capabilities = 0;
    Welcome welcome;
    if (!openLane(fd, who, 0, offer, capabilities, error) ||
        !receiveWelcome(fd, hello.arenas, welcome, error)) {
        ::close(fd);
        return nullptr;
    }
    if ((capabilities & offer.capabilities & wire::kBulkLanes) == 0) lanes = 0;
    auto client = std::make_unique<Client>(fd, endpoint, who, std::move(welcome), lanes);
    if (client->start()) return client;
    error = "no thread could be started for the link";
    return nullptr;
}

Client::Client(int fd, Endpoint endpoint, Credentials who, Welcome welcome, int lanes)
    : endpoint_(std::move(endpoint)),
      who_(who),
      welcome_(std::move(welcome)),
      wantedLanes_(lanes),
      fd_(fd),
      stream_(*this, From::worker, 0),
      desk_(fd, stream_,
            [this](FrameStream::Got got) {
                laneEnded("the connection to the worker", got, stream_.sentence());
            }),
      outbox_(fd,
              [this](int cause) {
                  fail("the connection to the worker failed: " + std::string(std::strerror(cause)));
              }),
      inflow_(desk_.state),
      outflow_(desk_, outbox_, welcome_.window),
      writer_(inflow_) {}

bool Client::start() {
    return watcher_.start("juice-watch", [this] { desk_.watch(); }) &&
           flusher_.start("juice-flush", [this] { outbox_.linger(); });
}

Client::~Client() {
    Client::close();
    const int fd = fd_.exchange(-1);
    if (fd >= 0) ::close(fd);
}

Outbox::Ticket Client::admit(uint16_t opcode, size_t size) {
    if (size > wire::kMaxPayload)
        fail("call " + std::to_string(opcode) + " has " + std::to_string(size) +
             " bytes of payload, more than a frame may have");
    for (;;) {
        if (desk_.closed()) return {};
        Outbox::Ticket ticket = outbox_.ticket();
        const size_t whole = wire::kHeaderSize + size;
        if (outbox_.roomFor(whole)) return ticket;
        ticket.unlock();
        outbox_.flush();
        WaiterFor executed([&] { return outbox_.roomFor(whole); });
        desk_.wait(executed);
    }
}

void Client::post(uint16_t opcode, uint32_t thread, uint32_t context, Bytes payload) {
    const NoCancel whole;
    Outbox::Ticket ticket = admit(opcode, payload.size());
    if (!ticket.owns_lock()) return;
    wire::Header header = immediate(wire::Kind::call, 0);
    header.opcode = opcode;
    header.thread = thread;
    header.context = context;
    outbox_.append(ticket, header, payload);
    ticket.unlock();
    calls_.fetch_add(1, std::memory_order_relaxed);
    outbox_.nudge();
}

uint64_t Client::ask(uint16_t opcode, uint32_t thread, uint32_t context, Bytes payload) {
    const NoCancel whole;
    Outbox::Ticket ticket = admit(opcode, payload.size());
    if (!ticket.owns_lock()) return 0;
    wire::Header header = immediate(wire::Kind::call, 0);
    header.opcode = opcode;
    header.thread = thread;
    header.context = context;
    header.request = outbox_.mintRequest(ticket);
    {
        std::lock_guard lock(desk_.state);
        pending_[header.request].opcode = opcode;
    }
    outbox_.append(ticket, header, payload);
    ticket.unlock();
    calls_.fetch_add(1, std::memory_order_relaxed);
    outbox_.flush();
    return header.request;
}

Reply Client::take(uint64_t request) {
    const NoCancel whole;
    Pending* pending = nullptr;
    {
        std::lock_guard lock(desk_.state);
        const auto found = pending_.find(request);
        if (found == pending_.end()) return brokenReply();
        pending = &found->second;  // stays where it is while others come and go
    }
    WaiterFor answered(
        [&] { return pending->arrived && inflow_.landedThrough(pending->reply.head.landed); });
    desk_.wait(answered);
    std::lock_guard lock(desk_.state);
    Reply reply = answered.ready() ? std::move(pending->reply) : brokenReply();
    pending_.erase(request);
    return reply;
}

Reply Client::call(uint16_t opcode, uint32_t thread, uint32_t context, Bytes payload) {
    waited_.fetch_add(1, std::memory_order_relaxed);
    const uint64_t request = ask(opcode, thread, context, payload);
    return request == 0 ? brokenReply() : take(request);
}

uint64_t Client::expect(void* destination, size_t size) {
    if (size >= kOpensLanes) openLanes();
    return inflow_.expect(destination, size);
}

void Client::send(uint64_t transfer, const void* source, size_t size) {
    const NoCancel whole;
    if (size >= kOpensLanes) openLanes();
    outflow_.send(transfer, source, size, size >= kWorthALane);
}

void Client::onFault(std::function<void(int, uint16_t)> handler) {
    std::lock_guard lock(desk_.state);
    faultHandler_ = std::move(handler);
}

void Client::patch(Bytes pieces) {
    const NoCancel whole;
    outbox_.appendFrame(patchFrame(0, pieces));
    outbox_.nudge();
}

void Client::onPatch(PatchHandler handler) {
    std::lock_guard lock(desk_.state);
    patchHandler_ = std::move(handler);
}

void Client::onOutput(OutputHandler handler) {
    std::lock_guard lock(desk_.state);
    outputHandler_ = std::move(handler);
}

void Client::onCallback(std::function<void(const Callback&)> handler) {
    std::lock_guard lock(desk_.state);
    callbackHandler_ = std::move(handler);
}

bool Client::awaitLanded(uint64_t ordinal) {
    const NoCancel whole;
    WaiterFor landed([&] { return inflow_.landedThrough(ordinal); });
    desk_.wait(landed);
    std::lock_guard lock(desk_.state);
    return landed.ready() && !desk_.closed();
}

void Client::write(uint64_t address, const void* source, size_t size) {
    const NoCancel whole;
    constexpr size_t kMost = wire::kMaxPayload / 2;
    const auto* bytes = static_cast<const uint8_t*>(source);
    for (size_t done = 0; done < size && !broken(); done += kMost) {
        const size_t now = std::min(kMost, size - done);
        Writer out;
        out.put(address + done).raw(bytes + done, now);
        outbox_.appendFrame(immediateFrame(wire::Kind::write, out.view()));
        if (size > kMost) outbox_.flush();
    }
}

void Client::called(uint64_t id) {
    const NoCancel whole;
    Writer out;
    out.put(id);
    outbox_.appendFrame(immediateFrame(wire::Kind::called, out.view()));
    outbox_.flush();
}

std::string Client::reason() const {
    std::lock_guard lock(ending_);
    return reason_;
}

/// The first cause wins. On return the link is broken for everybody, and nobody writes into memory
/// of the program any more.
void Client::fail(const std::string& why) {
    {
        std::lock_guard lock(ending_);
        if (failing_) return;
        failing_ = true;
        reason_ = why;
        shutdown(fd_, SHUT_RDWR);
        for (auto& lane : lanes_)
            if (lane) lane->shut();
    }
    inflow_.close();
    desk_.close();
    outbox_.close();
    outflow_.close();
    std::function<void(const Callback&)> handler;
    {
        std::lock_guard lock(desk_.state);
        handler = callbackHandler_;
    }
    Callback none;
    none.broken = true;
    if (handler) handler(none);
}

void Client::close() {
    const NoCancel whole;
    if (shut_.exchange(true)) return;
    outbox_.hurry(kLastWord);
    outbox_.appendFrame(goodbyeFrame(wire::GoodbyeReason::done, "the process ends"));
    outbox_.flush();
    fail("the link has been closed");
    // A lane that is being opened right now is complete, and sees that the link is over.
    std::lock_guard opening(laneOpening_);
    for (auto& lane : lanes_)
        if (lane) lane->join();
    watcher_.join();
    flusher_.join();
}

void Client::leave() {
    if (shut_ || !outbox_.canSpeak(kLastWord)) return;
    outbox_.hurry(kLastWord);
    outbox_.appendFrame(goodbyeFrame(wire::GoodbyeReason::done, "the process ends"));
    outbox_.flush();
    outbox_.close();
}

void Client::abandon() {
    const int fd = fd_.exchange(-1);
    if (fd >= 0) ::close(fd);
    desk_.abandon();
    for (auto& lane : lanes_)
        if (lane) lane->abandon();
}

ClientLink::Counters Client::counters() const {
    Counters counters{calls_, waited_, outbox_.bytesSent() + outflow_.bytesSent(), 0,
                      outbox_.flushes()};
    counters.bytesIn = stream_.received();
    if (lanesOpened_.load(std::memory_order_acquire))
        for (const auto& lane : lanes_)
            if (lane) counters.bytesIn += lane->received();
    return counters;
}

}  // namespace juice

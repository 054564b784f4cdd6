#include "native/link/test/raw.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "native/link/handshake.h"
#include "native/link/socket.h"
#include "native/link/thread.h"

namespace juice::test {
namespace {

void sendBytes(int fd, Bytes bytes) {
    iovec part{const_cast<uint8_t*>(bytes.data()), bytes.size()};
    sendAll(fd, &part, 1, [] { return false; });
}

void closeSocket(int& fd, bool abruptly) {
    if (fd < 0) return;
    const linger reset{1, 0};
    if (abruptly) setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(fd);
    fd = -1;
}

void need(bool condition, const std::string& what) {
    if (condition) return;
    std::fprintf(stderr, "%s\n", what.c_str());
    std::abort();
}

}  // namespace

std::vector<uint8_t> frameBytes(wire::Header header, Bytes payload) {
    header.size = static_cast<uint32_t>(payload.size());
    Writer out;
    out.raw(&header, sizeof header);
    out.raw(payload.data(), payload.size());
    return out.take();
}

std::vector<uint8_t> callBytes(uint64_t sequence, uint64_t request, uint16_t opcode,
                               Bytes payload) {
    wire::Header header = immediate(wire::Kind::call, 0);
    header.opcode = opcode;
    header.thread = 1;
    header.sequence = sequence;
    header.request = request;
    return frameBytes(header, payload);
}

std::vector<uint8_t> replyBytes(uint64_t sequence, uint64_t request, uint16_t opcode,
                                const wire::ReplyHead& head, Bytes payload) {
    wire::Header header = immediate(wire::Kind::reply, 0);
    header.opcode = opcode;
    header.thread = 1;
    header.sequence = sequence;
    header.request = request;
    Writer out;
    out.raw(&head, sizeof head);
    out.raw(payload.data(), payload.size());
    return frameBytes(header, out.view());
}

std::vector<uint8_t> chunkBytes(const ChunkHead& head, Bytes data, uint32_t flags) {
    Writer out;
    out.raw(&head, sizeof head);
    out.raw(data.data(), data.size());
    return frameBytes(immediate(wire::Kind::chunk, 0, flags), out.view());
}

RawClient::RawClient(size_t slots) {
    const Credentials who = randomCredentials();
    for (size_t i = 0; i < slots; ++i)
        slots_.push_back(std::make_unique<uint8_t[]>(wire::kChunkSize));
    Listener listener;
    std::string error;
    std::thread worker([&] {
        ServerLink::Options options;
        options.fd = listener.accept(options.preface, 5000);
        options.who = who;
        options.arenas = 1;
        for (auto& slot : slots_) options.slots.push_back(slot.get());
        std::string theirs;
        server_ = ServerLink::accept(std::move(options), theirs);
        need(server_ != nullptr, theirs);
    });
    fd_ = connectTo(
        "127.0.0.1", listener.port(), 5000, [] { return false; }, error);
    uint32_t capabilities;
    Welcome welcome;
    need(openLane(fd_, who, 0, {wire::kBulkLanes, 1, 1}, capabilities, error) &&
             receiveWelcome(fd_, 1, welcome, error),
         error);
    worker.join();
}

RawClient::~RawClient() {
    hangUp();
}
void RawClient::send(Bytes bytes) {
    sendBytes(fd_, bytes);
}
void RawClient::hangUp(bool abruptly) {
    closeSocket(fd_, abruptly);
}

RawServer::RawServer(uint64_t window) {
    const Credentials who = randomCredentials();
    Listener listener;
    std::string error;
    std::thread worker([&] {
        wire::Preface preface;
        fd_ = listener.accept(preface, 5000);
        ClientOffer offer;
        std::string theirs;
        need(admitLane(fd_, who, preface, wire::kBulkLanes, offer, theirs) &&
                 sendWelcome(fd_, {0, window, "raw"}),
             theirs);
    });
    ClientHello hello;
    hello.arenas = 1;
    hello.lanes = 0;
    client_ = ClientLink::connect({"127.0.0.1", listener.port()}, who, hello, error);
    need(client_ != nullptr, error);
    worker.join();
}

RawServer::~RawServer() {
    hangUp();
}
void RawServer::send(Bytes bytes) {
    sendBytes(fd_, bytes);
}
void RawServer::hangUp(bool abruptly) {
    closeSocket(fd_, abruptly);
}

bool RawClient::receive(void* out, size_t size) {
    return receiveExactly(fd_, out, size, nowNanos() + 5000 * kMilli);
}

bool RawServer::receive(void* out, size_t size) {
    return receiveExactly(fd_, out, size, nowNanos() + 5000 * kMilli);
}

bool RawServer::skip(size_t size) {
    std::vector<uint8_t> bytes(size);
    return receive(bytes.data(), size);
}

}  // namespace juice::test

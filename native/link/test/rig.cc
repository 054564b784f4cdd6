#include "native/link/test/rig.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <future>

#include "native/link/socket.h"
#include "native/link/thread.h"

namespace juice::test {

uint8_t patternByte(uint64_t transfer, uint64_t at) {
    return static_cast<uint8_t>((at * 131) ^ (at >> 9) ^ (transfer * 77));
}

std::vector<uint8_t> pattern(uint64_t transfer, size_t size) {
    std::vector<uint8_t> out(size);
    for (size_t i = 0; i < size; ++i) out[i] = patternByte(transfer, i);
    return out;
}

Rig::Rig(RigOptions options) : options_(options) {
    randomBytes(who_.key.data(), who_.key.size());
    randomBytes(who_.session.data(), who_.session.size());
    who_.process = 5;
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 16), 0);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    for (size_t i = 0; i < options_.slots; ++i)
        slots_.push_back(std::make_unique<uint8_t[]>(wire::kChunkSize));

    std::promise<std::string> accepted;
    std::thread worker([&] {
        const int fd = ::accept(listener_, nullptr, nullptr);
        ServerLink::Options server;
        server.fd = fd;
        receiveExactly(fd, &server.preface, sizeof server.preface, nowNanos() + 5000 * kMilli);
        server.who = who_;
        server.arenas = options_.serverArenas;
        server.worker = "the rig's worker";
        for (auto& slot : slots_) server.slots.push_back(slot.get());
        server.onEnding = [this] { ++endings; };
        std::string error;
        server_ = ServerLink::accept(std::move(server), error);
        accepted.set_value(error);
    });
    ClientHello hello;
    hello.arenas = options_.clientArenas;
    hello.pid = 4242;
    hello.lanes = options_.lanes;
    std::string error;
    client_ = ClientLink::connect({"127.0.0.1", port_}, who_, hello, error);
    worker.join();
    EXPECT_NE(client_, nullptr) << error;
    EXPECT_NE(server_, nullptr) << accepted.get_future().get();
    acceptor_ = std::thread([this] { acceptLanes(); });
    if (options_.run) executor_ = std::thread([this] { execute(); });
}

Rig::~Rig() {
    client_.reset();
    joinExecutor();
    stop_ = true;
    acceptor_.join();
    for (auto& helper : helpers_) helper.join();
    server_.reset();
    ::close(listener_);
}

void Rig::joinExecutor() {
    if (executor_.joinable()) executor_.join();
}

void Rig::acceptLanes() {
    while (!stop_) {
        if (!waitFor(listener_, POLLIN, 20)) continue;
        const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        wire::Preface preface;
        if (receiveExactly(fd, &preface, sizeof preface, nowNanos() + 2000 * kMilli)) {
            server_->addLane(fd, preface);
            ++lanesAdded;
        } else {
            ::close(fd);
        }
    }
}

void Rig::execute() {
    Call call;
    for (;;) {
        switch (server_->next(call, 50, 1000)) {
            case Next::call:
                handle(call);
                server_->executed(call.header);
                break;
            case Next::idle:
                break;
            case Next::closed:
                return;
        }
    }
}

Ending Rig::awaitEnding() {
    const int64_t end = nowNanos() + 5000 * kMilli;
    while (server_->ending() == Ending::open && nowNanos() < end) napNanos(kMilli);
    return server_->ending();
}

void Rig::handle(const Call& call) {
    Reader in(call.payload);
    Writer out;
    wire::ReplyHead head{};
    switch (call.header.opcode) {
        case kEcho:
            server_->reply(call.header, head, call.payload);
            return;
        case kNote: {
            const auto thread = in.get<uint32_t>();
            const auto number = in.get<uint64_t>();
            notes.push_back({thread, number, call.header.sequence});
            if (call.header.request != 0) server_->reply(call.header, head, {});
            return;
        }
        case kUpload: {
            const auto transfer = in.get<uint64_t>();
            const auto size = in.get<uint64_t>();
            while (holdReceive) napNanos(kMilli);
            std::vector<uint8_t> data(size);
            const bool whole =
                server_->receive(transfer, size, [&](uint64_t offset, void* slot, size_t bytes) {
                    std::memcpy(data.data() + offset, slot, bytes);
                    server_->release(slot);
                });
            if (!whole) return;
            const auto hash = sha256(data);
            out.raw(hash.data(), hash.size());
            if (call.header.request != 0) server_->reply(call.header, head, out.view());
            return;
        }
        case kDownload:
        case kLate: {
            const auto transfer = in.get<uint64_t>();
            const auto size = in.get<uint64_t>();
            const uint64_t ordinal = server_->beginSend(transfer, size);
            const auto send = [this, transfer, size, ordinal] {
                auto data = std::make_shared<std::vector<uint8_t>>(pattern(transfer, size));
                // In pieces of odd sizes, the way a copy engine would hand them over.
                constexpr size_t kPiece = 3'000'001;
                for (size_t at = 0; at < size; at += kPiece)
                    server_->sendPiece(transfer, ordinal, at, data->data() + at,
                                       std::min(kPiece, size - at), [data] {});
            };
            if (call.header.opcode == kDownload) {
                send();
            } else {
                std::lock_guard lock(helpersMutex_);
                helpers_.emplace_back([send] {
                    napNanos(20 * kMilli);
                    send();
                });
            }
            if (call.header.request != 0) server_->reply(call.header, head, {});
            return;
        }
        case kSleep:
            server_->busy();
            napNanos(in.get<uint32_t>() * kMilli);
            server_->idle();
            if (call.header.request != 0) server_->reply(call.header, head, {});
            return;
        case kFault:
            server_->fault(719, call.header.opcode);
            return;
        default:
            ADD_FAILURE() << "opcode " << call.header.opcode;
    }
}

void Rig::upload(size_t size, uint32_t thread) {
    const uint64_t transfer = client_->mintTransfer();
    const auto data = pattern(transfer, size);
    Writer payload;
    payload.put(transfer).put(uint64_t{size});
    const uint64_t request = client_->ask(kUpload, thread, 0, payload.view());
    client_->send(transfer, data.data(), data.size());
    const Reply reply = client_->take(request);
    ASSERT_FALSE(reply.broken) << client_->reason();
    EXPECT_TRUE(sameBytes(reply.payload, sha256(data))) << size;
}

void Rig::download(size_t size, uint32_t thread, uint16_t opcode) {
    std::vector<uint8_t> data(size);
    const uint64_t transfer = client_->expect(data.data(), size);
    Writer payload;
    payload.put(transfer).put(uint64_t{size});
    const Reply reply = client_->call(opcode, thread, 0, payload.view());
    ASSERT_FALSE(reply.broken) << client_->reason();
    EXPECT_TRUE(client_->landed(transfer));
    EXPECT_TRUE(sameBytes(data, pattern(transfer, size))) << size;
}

}  // namespace juice::test

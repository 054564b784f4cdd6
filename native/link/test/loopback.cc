#include "native/link/test/loopback.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "native/link/socket.h"
#include "native/link/thread.h"

namespace juice::test {

Listener::Listener() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (bind(fd_, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(fd_, 32) != 0) {
        std::perror("no loopback socket");
        std::abort();
    }
    getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
}

Listener::~Listener() {
    close(fd_);
}

int Listener::accept(wire::Preface& preface, int millis) {
    if (!waitFor(fd_, POLLIN, millis)) return -1;
    const int fd = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (receiveExactly(fd, &preface, sizeof preface, nowNanos() + 5000 * kMilli)) return fd;
    close(fd);
    return -1;
}

Credentials randomCredentials() {
    Credentials who;
    randomBytes(who.key.data(), who.key.size());
    randomBytes(who.session.data(), who.session.size());
    who.process = 5;
    return who;
}

Loopback::Loopback(LoopbackOptions options) : who(randomCredentials()) {
    for (size_t i = 0; i < options.slots; ++i)
        slots_.push_back(std::make_unique<uint8_t[]>(wire::kChunkSize));
    std::thread worker([&] {
        ServerLink::Options mine;
        mine.fd = listener_.accept(mine.preface, 10'000);
        mine.who = who;
        if (options.wrongKey) mine.who.key[0] ^= 1;
        mine.arenas = options.serverArenas;
        mine.worker = "a worker for tests";
        for (auto& slot : slots_) mine.slots.push_back(slot.get());
        mine.onEnding = options.onEnding;
        server = ServerLink::accept(std::move(mine), serverError);
    });
    ClientHello hello;
    hello.arenas = options.clientArenas;
    hello.pid = 4242;
    hello.lanes = options.lanes;
    client = ClientLink::connect({"127.0.0.1", listener_.port()}, who, hello, clientError);
    worker.join();
    acceptor_ = std::thread([this] { acceptLanes(); });
}

Loopback::~Loopback() {
    stop_ = true;
    acceptor_.join();
    // Before the staging memory, which the server's lanes may be writing to.
    client.reset();
    server.reset();
}

void Loopback::acceptLanes() {
    wire::Preface preface;
    while (!stop_) {
        const int fd = listener_.accept(preface, 20);
        if (fd < 0) continue;
        if (server) {
            server->addLane(fd, preface);
            ++lanesAdded;
        } else {
            close(fd);
        }
    }
}

}  // namespace juice::test

// Two ends of a link over loopback, without a worker: what tests, benchmark and fuzzers begin with.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "native/link/client_link.h"
#include "native/link/server_link.h"

namespace juice::test {

struct LoopbackOptions {
    int lanes = 0;
    size_t slots = 64;
    uint8_t clientArenas = 1, serverArenas = 3;
    bool wrongKey = false;  // the client has another key than the worker
    std::function<void()> onEnding{};
};

/// A listening socket on loopback.
class Listener {
  public:
    Listener();
    ~Listener();
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;
    uint16_t port() const { return port_; }
    /// The next connection and its preface; -1 when none came within `millis`.
    int accept(wire::Preface& preface, int millis);

  private:
    int fd_ = -1;
    uint16_t port_ = 0;
};

class Loopback {
  public:
    explicit Loopback(LoopbackOptions options = {});
    ~Loopback();

    std::unique_ptr<ClientLink> client;  // null when the handshake failed:
    std::unique_ptr<ServerLink> server;
    std::string clientError, serverError;
    Credentials who;
    std::atomic<int> lanesAdded{0};

  private:
    void acceptLanes();

    Listener listener_;
    std::vector<std::unique_ptr<uint8_t[]>> slots_;
    std::atomic<bool> stop_{false};
    std::thread acceptor_;
};

/// Credentials of a random session.
Credentials randomCredentials();

}  // namespace juice::test

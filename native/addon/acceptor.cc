// The host's one data port. A thread accepts connections, reads each one's 64-byte preface under a
// deadline and hands descriptor and preface to JavaScript, which checks the proof and decides. A
// slow or silent peer costs one descriptor for kPrefaceTimeoutMs and nothing else.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "native/addon/addon.h"
#include "native/link/wire.h"

namespace juice::addon {
namespace {

using Clock = std::chrono::steady_clock;

/// Connections that may stand between accept and preface at once; the oldest goes first beyond it.
constexpr size_t kMaxWaiting = 1024;

struct Arrival {
    int fd;
    std::array<uint8_t, wire::kPrefaceSize> preface;
    std::string peer;
};

struct Waiting {
    int fd;
    size_t have = 0;
    std::array<uint8_t, wire::kPrefaceSize> preface{};
    Clock::time_point deadline;
    std::string peer;
};

std::string peerName(const sockaddr_storage& address, socklen_t size) {
    char host[NI_MAXHOST] = "?", port[NI_MAXSERV] = "?";
    getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, host, sizeof host, port,
                sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
    return std::string(host) + ":" + port;
}

class Acceptor {
  public:
    Acceptor(int listener, Napi::ThreadSafeFunction deliver)
        : listener_(listener), stop_(eventfd(0, EFD_CLOEXEC)), deliver_(deliver) {
        thread_ = std::thread([this] { run(); });
    }
    ~Acceptor() { stop(); }
    void stop() {
        if (!thread_.joinable()) return;
        const uint64_t one = 1;
        [[maybe_unused]] const ssize_t written = write(stop_, &one, sizeof one);
        thread_.join();
        close(stop_);
        deliver_.Release();
    }

  private:
    void run() {
        for (;;) {
            std::vector<pollfd> fds;
            fds.push_back({stop_, POLLIN, 0});
            fds.push_back({listener_, POLLIN, 0});
            for (const Waiting& w : waiting_) fds.push_back({w.fd, POLLIN, 0});
            poll(fds.data(), fds.size(), timeout());
            if (fds[0].revents != 0) break;
            // Connections first: accept changes the vector that the poll results refer to.
            for (size_t i = waiting_.size(); i-- > 0;) {
                if (fds[i + 2].revents != 0) advance(i);
            }
            expire();
            if (fds[1].revents != 0) acceptOne();
        }
        for (const Waiting& w : waiting_) close(w.fd);
        close(listener_);
    }

    int timeout() const {
        if (waiting_.empty()) return -1;
        auto first = waiting_.front().deadline;
        for (const Waiting& w : waiting_) first = std::min(first, w.deadline);
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(first - Clock::now());
        return std::max<int>(0, static_cast<int>(left.count()) + 1);
    }

    void acceptOne() {
        sockaddr_storage address{};
        socklen_t size = sizeof address;
        const int fd = accept4(listener_, reinterpret_cast<sockaddr*>(&address), &size,
                               SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            // Out of descriptors: wait rather than spin on a listener that stays readable.
            if (errno == EMFILE || errno == ENFILE)
                std::this_thread::sleep_for(std::chrono::milliseconds(50));
            return;
        }
        const int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (waiting_.size() >= kMaxWaiting) remove(0, true);
        waiting_.push_back(
            Waiting{fd,
                    0,
                    {},
                    Clock::now() + std::chrono::milliseconds(wire::kPrefaceTimeoutMs),
                    peerName(address, size)});
    }

    void advance(size_t i) {
        Waiting& w = waiting_[i];
        const ssize_t got = recv(w.fd, w.preface.data() + w.have, w.preface.size() - w.have, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (got <= 0) return remove(i, true);
        w.have += static_cast<size_t>(got);
        if (w.have < w.preface.size()) return;
        wire::Preface preface;
        std::memcpy(&preface, w.preface.data(), sizeof preface);
        if (std::memcmp(preface.magic, wire::kMagic, sizeof preface.magic) != 0)
            return remove(i, true);
        fcntl(w.fd, F_SETFL, fcntl(w.fd, F_GETFL) & ~O_NONBLOCK);
        auto* arrival = new Arrival{w.fd, w.preface, w.peer};
        const auto status = deliver_.NonBlockingCall(
            arrival, [](Napi::Env env, Napi::Function callback, Arrival* a) {
                const std::unique_ptr<Arrival> owned(a);
                callback.Call(
                    {Napi::Number::New(env, a->fd),
                     Napi::Buffer<uint8_t>::Copy(env, a->preface.data(), a->preface.size()),
                     Napi::String::New(env, a->peer)});
            });
        if (status != napi_ok) {
            delete arrival;
            return remove(i, true);
        }
        remove(i, false);
    }

    void expire() {
        for (size_t i = waiting_.size(); i-- > 0;)
            if (waiting_[i].deadline <= Clock::now()) remove(i, true);
    }

    void remove(size_t i, bool closing) {
        if (closing) close(waiting_[i].fd);
        waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(i));
    }

    int listener_;
    int stop_;
    Napi::ThreadSafeFunction deliver_;
    std::vector<Waiting> waiting_;
    std::thread thread_;
};

int openListener(Napi::Env env, const std::string& host, int port, int& boundPort) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    addrinfo* found = nullptr;
    const std::string where = host + ":" + std::to_string(port);
    const int status = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
    if (status != 0)
        throw errorWithCode(env, "ENOTFOUND", "listen " + where + ": " + gai_strerror(status));
    const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    int error = fd < 0 ? errno : 0;
    if (error == 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (error == 0 && bind(fd, found->ai_addr, found->ai_addrlen) != 0) error = errno;
    if (error == 0 && listen(fd, 512) != 0) error = errno;
    freeaddrinfo(found);
    if (error != 0) {
        if (fd >= 0) close(fd);
        throw systemError(env, "listen " + where, error);
    }
    sockaddr_storage bound{};
    socklen_t size = sizeof bound;
    getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size);
    boundPort =
        ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                                          : reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
    return fd;
}

Napi::Value listenForPrefaces(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    const Napi::Object options = info[0].As<Napi::Object>();
    const std::string host = options.Get("host").As<Napi::String>();
    const int port = options.Get("port").As<Napi::Number>().Int32Value();
    int boundPort = 0;
    const int listener = openListener(env, host, port, boundPort);
    auto deliver =
        Napi::ThreadSafeFunction::New(env, info[1].As<Napi::Function>(), "juice.listen", 0, 1);
    auto acceptor = std::make_shared<Acceptor>(listener, deliver);
    Napi::Object out = Napi::Object::New(env);
    out.Set("port", Napi::Number::New(env, boundPort));
    out.Set("close", Napi::Function::New(env, [acceptor](const Napi::CallbackInfo& call) {
                acceptor->stop();
                return call.Env().Undefined();
            }));
    return out;
}

}  // namespace

void registerAcceptor(Napi::Env env, Napi::Object exports) {
    exports.Set("listen", Napi::Function::New(env, listenForPrefaces));
}

}  // namespace juice::addon

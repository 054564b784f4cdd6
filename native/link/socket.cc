#include "native/link/socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "native/link/thread.h"

namespace juice {
namespace {

constexpr int kHighDescriptor = 500;
constexpr int kStopCheckMs = 200;

int connectAddress(const addrinfo& address, int64_t deadline, const std::function<bool()>& stop,
                   int& cause) {
    int fd = socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        cause = errno;
        return -1;
    }
    fd = moveHigh(fd);
    cause = connect(fd, address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno;
    if (cause == EINPROGRESS || cause == EINTR) {
        socklen_t size = sizeof cause;
        bool done = false;
        while (!done && !stop() && nowNanos() < deadline)
            done = waitFor(fd, POLLOUT, std::min(kStopCheckMs, millisUntil(deadline)));
        if (!done)
            cause = ETIMEDOUT;
        else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &cause, &size) != 0)
            cause = errno;
    }
    if (cause == 0) {
        tuneSocket(fd);
        return fd;
    }
    close(fd);
    return -1;
}

void setOption(int fd, int level, int option, int value) {
    (void)setsockopt(fd, level, option, &value, sizeof value);
}

/// The kernel's user timeout also strikes at a peer that is there but does not read: a program
/// stopped by a debugger. While everything sent has been acknowledged and only the peer's window is
/// closed, the timeout is suspended.
class StoppedPeer {
  public:
    explicit StoppedPeer(int fd) : fd_(fd) {}
    ~StoppedPeer() {
        if (suspended_) setOption(fd_, IPPROTO_TCP, TCP_USER_TIMEOUT, kVanishedMs);
    }
    StoppedPeer(const StoppedPeer&) = delete;
    StoppedPeer& operator=(const StoppedPeer&) = delete;

    /// To be called while sending is stuck.
    void consider() {
        tcp_info info{};
        socklen_t size = sizeof info;
        if (getsockopt(fd_, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return;
        const bool stopped = info.tcpi_state == TCP_ESTABLISHED && info.tcpi_unacked == 0;
        if (stopped == suspended_) return;
        suspended_ = stopped;
        setOption(fd_, IPPROTO_TCP, TCP_USER_TIMEOUT, stopped ? 0 : kVanishedMs);
    }

  private:
    const int fd_;
    bool suspended_ = false;
};

}  // namespace

int moveHigh(int fd) {
    if (fd < 0 || fd >= kHighDescriptor) return fd;
    const int high = fcntl(fd, F_DUPFD_CLOEXEC, kHighDescriptor);
    if (high < 0) {
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        return fd;
    }
    close(fd);
    return high;
}

void tuneSocket(int fd) {
    setOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    setOption(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    // Silent for 3 s, then a question every 2 s, given up after the third without an answer.
    setOption(fd, IPPROTO_TCP, TCP_KEEPIDLE, 3);
    setOption(fd, IPPROTO_TCP, TCP_KEEPINTVL, 2);
    setOption(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
    setOption(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, kVanishedMs);
}

int connectTo(const std::string& host, uint16_t port, int timeoutMs,
              const std::function<bool()>& stop, std::string& error) {
    const int64_t deadline = nowNanos() + timeoutMs * kMilli;
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV;
    addrinfo* found = nullptr;
    const std::string where = host + ":" + std::to_string(port);
    const int failed = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
    if (failed != 0) {
        error = "the host " + where + " is unknown: " + gai_strerror(failed);
        return -1;
    }
    int fd = -1, cause = EHOSTUNREACH;
    for (const addrinfo* one = found; one != nullptr && fd < 0; one = one->ai_next)
        fd = connectAddress(*one, deadline, stop, cause);
    freeaddrinfo(found);
    if (fd < 0) error = "no connection to " + where + ": " + std::strerror(cause);
    return fd;
}

Sent sendAll(int fd, iovec* parts, int count, const std::function<bool()>& stop) {
    StoppedPeer peer(fd);
    msghdr message{};
    while (count > 0) {
        if (parts->iov_len == 0) {
            ++parts;
            --count;
            continue;
        }
        message.msg_iov = parts;
        message.msg_iovlen = static_cast<size_t>(count);
        const ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0) {
            if (errno == EINTR) continue;
            if (errno != EAGAIN) return Sent::failed;
            if (stop()) return Sent::stopped;
            if (!waitFor(fd, POLLOUT, kStopCheckMs)) peer.consider();
            continue;
        }
        size_t left = static_cast<size_t>(sent);
        while (left > 0) {
            const size_t step = std::min(left, parts->iov_len);
            parts->iov_base = static_cast<uint8_t*>(parts->iov_base) + step;
            parts->iov_len -= step;
            left -= step;
            if (parts->iov_len == 0) {
                ++parts;
                --count;
            }
        }
    }
    return Sent::all;
}

bool receiveExactly(int fd, void* out, size_t size, int64_t deadline) {
    auto* to = static_cast<uint8_t*>(out);
    while (size > 0) {
        const ssize_t got = recv(fd, to, size, MSG_DONTWAIT);
        if (got > 0) {
            to += got;
            size -= static_cast<size_t>(got);
        } else if (got == 0) {
            return false;
        } else if (errno == EAGAIN) {
            if (!waitFor(fd, POLLIN, millisUntil(deadline)) && nowNanos() >= deadline) return false;
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

bool waitFor(int fd, short events, int timeoutMs) {
    pollfd one{fd, events, 0};
    return poll(&one, 1, timeoutMs) > 0;
}

Kick::Kick() : fd_(moveHigh(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))) {}
Kick::~Kick() {
    abandon();
}

void Kick::ring() {
    const uint64_t one = 1;
    (void)!write(fd_, &one, sizeof one);
}

void Kick::clear() {
    uint64_t count;
    (void)!read(fd_, &count, sizeof count);
}

void Kick::abandon() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
}

}  // namespace juice

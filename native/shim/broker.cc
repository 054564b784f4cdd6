#include "native/shim/broker.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "native/abi/cuda_result.h"

namespace juice::broker {
namespace {

constexpr uint32_t kVersion = 1;
constexpr int kTimeoutMs = 10'000;
constexpr uint32_t kMaxAnswer = 1u << 20;

const char* socketPath() {
    const char* const path = std::getenv("JUICE_BROKER");
    return path == nullptr || *path == '\0' ? nullptr : path;
}

int64_t nowMs() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

/// A connection that keeps to one deadline for everything that it does.
class Connection {
  public:
    Connection() : deadline_(nowMs() + kTimeoutMs) {}
    ~Connection() {
        if (fd_ >= 0) close(fd_);
    }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    bool open(const char* path) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        const size_t length = std::strlen(path);
        if (length >= sizeof address.sun_path) {
            errno = ENAMETOOLONG;
            return false;
        }
        std::memcpy(address.sun_path, path, length + 1);
        fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd_ < 0) return false;
        int done = 0;
        do {
            done = connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
        } while (done < 0 && errno == EINTR);
        return done == 0;
    }

    bool write(Bytes data) {
        while (!data.empty()) {
            if (!ready(POLLOUT)) return false;
            const ssize_t n = send(fd_, data.data(), data.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
            if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
            if (n < 0) return false;
            data = data.subspan(static_cast<size_t>(n));
        }
        return true;
    }

    bool read(void* out, size_t size) {
        auto* at = static_cast<uint8_t*>(out);
        while (size != 0) {
            if (!ready(POLLIN)) return false;
            const ssize_t n = recv(fd_, at, size, MSG_DONTWAIT);
            if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
            if (n == 0) errno = ECONNRESET;
            if (n <= 0) return false;
            at += n;
            size -= static_cast<size_t>(n);
        }
        return true;
    }

  private:
    bool ready(short events) {
        for (;;) {
            const int64_t left = deadline_ - nowMs();
            pollfd one{fd_, events, 0};
            const int n = left <= 0 ? 0 : poll(&one, 1, static_cast<int>(left));
            if (n > 0) return true;
            if (n < 0 && errno == EINTR) continue;
            if (n == 0) errno = ETIMEDOUT;
            return false;
        }
    }

    int fd_ = -1;
    int64_t deadline_;
};

Answer refusal(int result, std::string sentence) {
    Answer answer;
    answer.result = result;
    answer.sentence = std::move(sentence);
    return answer;
}

Answer decode(Bytes body) {
    Reader in(body);
    Answer answer;
    const auto version = in.get<uint32_t>();
    if (in.ok() && version != kVersion)
        return refusal(CUDA_ERROR_NO_DEVICE,
                       "juice attach speaks version " + std::to_string(version) +
                           " of its socket, this library version " + std::to_string(kVersion) +
                           "; use both from one release");
    answer.result = in.get<int32_t>();
    if (answer.result != 0) {
        answer.sentence = in.text();
    } else {
        in.raw(answer.who.session.data(), answer.who.session.size());
        answer.who.process = in.get<uint64_t>();
        in.raw(answer.who.key.data(), answer.who.key.size());
        answer.endpoint.host = in.text();
        answer.endpoint.port = in.get<uint16_t>();
        if (!Snapshot::decode(in.bytes(), answer.snapshot)) in.fail();
    }
    if (!in.done())
        return refusal(CUDA_ERROR_DEVICE_UNAVAILABLE,
                       "juice attach gave an answer that makes no sense; use the command and this "
                       "library from one release");
    return answer;
}

}  // namespace

bool attached() {
    return socketPath() != nullptr;
}

Answer ask(Ask what) {
    const char* const path = socketPath();
    if (path == nullptr)
        return refusal(CUDA_ERROR_NO_DEVICE,
                       "not attached to any GPU; run the program with: juice attach -- program");
    Connection connection;
    if (!connection.open(path))
        return refusal(CUDA_ERROR_NO_DEVICE,
                       std::string("cannot reach juice attach at ") + path + " (" +
                           std::strerror(errno) +
                           "); it has ended, or the program runs as another user or in a container "
                           "without that path; start the program with: juice attach -- program");
    Writer body;
    body.put(kVersion).put(static_cast<uint32_t>(what)).put(static_cast<uint32_t>(getpid()));
    Writer request;
    request.bytes(body.data(), body.size());
    uint32_t size = 0;
    std::vector<uint8_t> answer;
    bool arrived = connection.write(request.view()) && connection.read(&size, sizeof size);
    if (arrived && size > kMaxAnswer) {
        arrived = false;
        errno = EPROTO;
    }
    if (arrived) {
        answer.resize(size);
        arrived = connection.read(answer.data(), size);
    }
    if (!arrived)
        return refusal(CUDA_ERROR_DEVICE_UNAVAILABLE,
                       std::string("juice attach does not answer (") + std::strerror(errno) +
                           "); if it hangs, end it and start the program again");
    return decode(answer);
}

}  // namespace juice::broker

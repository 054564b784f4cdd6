#include "native/worker/control.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace juice::worker {

Control::Received Control::receive(Message& out, int waitMillis) {
    pollfd waiting{fd_, POLLIN, 0};
    const int ready = poll(&waiting, 1, waitMillis);
    if (ready == 0 || (ready < 0 && errno == EINTR)) return Received::nothing;
    if (ready < 0) return Received::closed;

    buffer_.resize(kMaxControl);
    iovec part{buffer_.data(), buffer_.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))];
    message.msg_control = space;
    message.msg_controllen = sizeof space;
    const ssize_t got = recvmsg(fd_, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Received::nothing;
    if (got < static_cast<ssize_t>(sizeof(uint16_t))) return Received::closed;

    out.fd = -1;
    for (cmsghdr* h = CMSG_FIRSTHDR(&message); h != nullptr; h = CMSG_NXTHDR(&message, h))
        if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS)
            std::memcpy(&out.fd, CMSG_DATA(h), sizeof out.fd);
    uint16_t kind = 0;
    std::memcpy(&kind, buffer_.data(), sizeof kind);
    out.kind = static_cast<ControlKind>(kind);
    out.payload.assign(buffer_.begin() + sizeof kind, buffer_.begin() + got);
    return Received::message;
}

void Control::send(ControlKind kind, Bytes payload) {
    const std::lock_guard lock(mutex_);
    auto number = static_cast<uint16_t>(kind);
    iovec parts[2] = {{&number, sizeof number},
                      {const_cast<uint8_t*>(payload.data()), payload.size()}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    while (sendmsg(fd_, &message, MSG_NOSIGNAL) < 0 && errno == EINTR) {
    }
}

void Control::sendFailed(std::string_view sentence) {
    Writer out;
    out.text(sentence);
    send(ControlKind::failed, out.view());
}

}  // namespace juice::worker

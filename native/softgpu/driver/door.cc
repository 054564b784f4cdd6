#include "native/softgpu/driver/door.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace juice::softgpu {
namespace {

enum class Ask : uint32_t { lend = 1, giveBack = 2 };

struct Request {
    Ask ask;
    ExportKind kind;
    uint64_t id;
};

/// With the file attached when `found`; a request to give back has no reply.
struct Reply {
    uint32_t found;
    uint32_t unused;
    uint64_t offset, size;
    Uuid device;
};

/// An exporter that does not answer for so long is taken for dead.
constexpr timeval kPatience{10, 0};

/// The socket's name in the abstract namespace, which vanishes with its process.
socklen_t nameSocket(uint32_t process, uint64_t door, sockaddr_un& address) {
    address = {};
    address.sun_family = AF_UNIX;
    const int length =
        std::snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1,
                      "juice-softgpu-%u-%016llx", process, static_cast<unsigned long long>(door));
    return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                  static_cast<size_t>(length));
}

bool sameUser(int socket, pid_t* process) {
    ucred peer{};
    socklen_t size = sizeof(peer);
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
    if (process != nullptr) *process = peer.pid;
    return peer.uid == geteuid() || peer.uid == 0;
}

bool sendReply(int socket, const Reply& reply, int file) {
    iovec part{const_cast<Reply*>(&reply), sizeof(reply)};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    if (file >= 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof(control);
        cmsghdr* const header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(header), &file, sizeof(file));
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL) == sizeof(reply);
}

/// False when there was no proper reply; the file is -1 when none came with it.
bool receiveReply(int socket, Reply& reply, int& file) {
    iovec part{&reply, sizeof(reply)};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    file = -1;
    ssize_t got = 0;
    do {
        got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    const cmsghdr* const header = CMSG_FIRSTHDR(&message);
    if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
        std::memcpy(&file, CMSG_DATA(header), sizeof(file));
    }
    return got == sizeof(reply);
}

uint64_t randomName() {
    uint64_t name = 0;
    if (getrandom(&name, sizeof(name), 0) != sizeof(name)) name = static_cast<uint64_t>(getpid());
    return name;
}

}  // namespace

/// The thread that answers, and what each of its visitors has on loan.
struct Door::Server {
    Door& door;
    int listener;
    std::map<int, std::multiset<uint64_t>> visitors;  // what they have on loan, by socket

    void leave(int socket) {
        for (const uint64_t id : visitors[socket]) door.returned(id);
        visitors.erase(socket);
        ::close(socket);
    }

    /// False when the visitor has gone.
    bool answer(int socket) {
        Request request{};
        const ssize_t got = recv(socket, &request, sizeof(request), 0);
        if (got < 0 && errno == EINTR) return true;
        if (got != sizeof(request)) return false;
        auto& loans = visitors[socket];
        if (request.ask == Ask::giveBack) {
            const auto found = loans.find(request.id);
            if (found == loans.end()) return false;
            loans.erase(found);
            door.returned(request.id);
            return true;
        }
        Reply reply{};
        const Exported* const exported = door.lend(request.id, request.kind);
        if (exported != nullptr) {
            loans.insert(request.id);
            reply = {1, 0, exported->offset, exported->size, exported->device};
        }
        return sendReply(socket, reply, exported == nullptr ? -1 : exported->file);
    }

    void serve() {
        while (true) {
            std::vector<pollfd> waiting{{listener, POLLIN, 0}};
            for (const auto& [socket, loans] : visitors) waiting.push_back({socket, POLLIN, 0});
            if (poll(waiting.data(), waiting.size(), -1) < 0) continue;
            for (size_t i = 1; i < waiting.size(); ++i) {
                if (waiting[i].revents != 0 && !answer(waiting[i].fd)) leave(waiting[i].fd);
            }
            if (waiting[0].revents == 0) continue;
            const int socket = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
            if (socket < 0) {
                // Out of descriptors, perhaps; it will still be there.
                usleep(10000);
                continue;
            }
            if (sameUser(socket, nullptr)) {
                visitors[socket];
            } else {
                ::close(socket);
            }
        }
    }
};

Door& Door::instance() {
    static auto* const door = new Door;
    return *door;
}

Door::Door() : name_(randomName()) {}

bool Door::start() {
    if (serving_) return true;
    const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (listener < 0) return false;
    sockaddr_un address;
    const socklen_t length = nameSocket(static_cast<uint32_t>(getpid()), name_, address);
    if (bind(listener, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
        listen(listener, SOMAXCONN) != 0) {
        ::close(listener);
        return false;
    }
    // The program's signals are for its own threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([this, listener] { Server{*this, listener, {}}.serve(); }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return serving_ = true;
}

std::unique_ptr<Ticket> Door::open(ExportKind kind, const Exported& exported,
                                   std::shared_ptr<Backing> backing) {
    const std::lock_guard lock(mutex_);
    if (!start()) return nullptr;
    auto ticket = std::make_unique<Ticket>();
    ticket->kind = kind;
    ticket->process = static_cast<uint32_t>(getpid());
    ticket->door = name_;
    ticket->id = nextId_++;
    entries_[ticket->id] = {kind, exported, std::move(backing), 0, false, {}};
    return ticket;
}

bool Door::close(uint64_t id, std::function<void()> unused) {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(id);
    if (found == entries_.end()) return true;
    if (found->second.loans == 0) {
        entries_.erase(found);
        return true;
    }
    found->second.closed = true;
    found->second.unused = std::move(unused);
    return false;
}

bool Door::isOwn(const Ticket& ticket) const {
    return ticket.door == name_ && ticket.process == static_cast<uint32_t>(getpid());
}

const Exported* Door::lend(uint64_t id, ExportKind kind) {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(id);
    if (found == entries_.end() || found->second.closed || found->second.kind != kind) {
        return nullptr;
    }
    ++found->second.loans;
    return &found->second.exported;  // stays while it is on loan
}

void Door::returned(uint64_t id) {
    Entry last;
    {
        const std::lock_guard lock(mutex_);
        const auto found = entries_.find(id);
        if (found == entries_.end() || --found->second.loans > 0 || !found->second.closed) return;
        last = std::move(found->second);
        entries_.erase(found);
    }
    if (last.unused) last.unused();
}

/// A connection to one exporter, shared by all that is on loan from it.
class Loan::Visit {
  public:
    explicit Visit(int socket) : socket_(socket) {}
    ~Visit() { close(socket_); }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;

    static std::shared_ptr<Visit> to(const Ticket& ticket) {
        static std::mutex mutex;
        static auto* const open = new std::map<std::pair<uint32_t, uint64_t>, std::weak_ptr<Visit>>;
        const std::lock_guard lock(mutex);
        auto& known = (*open)[{ticket.process, ticket.door}];
        if (auto visit = known.lock()) return visit;
        const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        if (socket < 0) return nullptr;
        auto visit = std::make_shared<Visit>(socket);
        sockaddr_un address;
        const socklen_t length = nameSocket(ticket.process, ticket.door, address);
        setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof(kPatience));
        setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof(kPatience));
        pid_t process = 0;
        if (connect(socket, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
            !sameUser(socket, &process) || process != static_cast<pid_t>(ticket.process)) {
            return nullptr;
        }
        known = visit;
        return visit;
    }

    bool lend(ExportKind kind, uint64_t id, Exported& exported) {
        const std::lock_guard lock(mutex_);
        const Request request{Ask::lend, kind, id};
        if (send(socket_, &request, sizeof(request), MSG_NOSIGNAL) != sizeof(request)) return false;
        Reply reply{};
        int file = -1;
        const bool answered = receiveReply(socket_, reply, file);
        if (!answered || reply.found == 0 || file < 0) {
            if (file >= 0) close(file);
            return false;
        }
        exported = {file, reply.offset, reply.size, reply.device};
        return true;
    }

    void giveBack(uint64_t id) {
        const std::lock_guard lock(mutex_);
        const Request request{Ask::giveBack, ExportKind::memory, id};
        send(socket_, &request, sizeof(request), MSG_NOSIGNAL);
    }

  private:
    std::mutex mutex_;
    const int socket_;
};

Loan::Loan(std::shared_ptr<Visit> visit, uint64_t id, const Exported& exported)
    : visit_(std::move(visit)), id_(id), exported_(exported) {}

Loan::~Loan() {
    close(exported_.file);
    visit_->giveBack(id_);
}

CUresult Loan::take(const Ticket& ticket, ExportKind kind, std::unique_ptr<Loan>& loan) {
    if (ticket.magic != Ticket::kMagic || ticket.kind != kind) return CUDA_ERROR_INVALID_HANDLE;
    if (Door::instance().isOwn(ticket)) return CUDA_ERROR_INVALID_CONTEXT;
    auto visit = Visit::to(ticket);
    Exported exported;
    if (!visit || !visit->lend(kind, ticket.id, exported)) return CUDA_ERROR_INVALID_HANDLE;
    loan.reset(new Loan(std::move(visit), ticket.id, exported));
    return CUDA_SUCCESS;
}

}  // namespace juice::softgpu

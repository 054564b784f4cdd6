#include "native/shim/test/site.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "native/link/control.h"
#include "native/link/wire.h"

namespace juice::shim::test {
namespace {

[[noreturn]] void give_up(const char* what) {
    std::perror(what);
    std::abort();
}

int listenOn(const sockaddr* address, socklen_t size) {
    const int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, address, size) != 0 || listen(fd, 64) != 0) give_up("listen");
    return fd;
}

Key keyOf(uint64_t process) {
    Key key{};
    for (size_t i = 0; i < key.size(); ++i) key[i] = static_cast<uint8_t>(process * 31 + i * 7 + 1);
    return key;
}

void sendControl(int control, ControlKind kind, Bytes payload, int fd = -1) {
    iovec parts[2] = {{&kind, sizeof kind}, {const_cast<uint8_t*>(payload.data()), payload.size()}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
    if (fd >= 0) {
        message.msg_control = space;
        message.msg_controllen = sizeof space;
        cmsghdr* const header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof fd);
        std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
    }
    sendmsg(control, &message, MSG_NOSIGNAL);
}

bool readAll(int fd, void* out, size_t size) {
    return recv(fd, out, size, MSG_WAITALL) == static_cast<ssize_t>(size);
}

}  // namespace

Site::Site(Options options) : options_(std::move(options)) {
    char directory[] = "/tmp/juice-site-XXXXXX";
    if (mkdtemp(directory) == nullptr) give_up("mkdtemp");
    directory_ = directory;
    socketPath_ = directory_ + "/broker";
    randomBytes(session_.data(), session_.size());

    sockaddr_un local{};
    local.sun_family = AF_UNIX;
    std::strcpy(local.sun_path, socketPath_.c_str());
    brokerFd_ = listenOn(reinterpret_cast<sockaddr*>(&local), sizeof local);
    sockaddr_in loopback{};
    loopback.sin_family = AF_INET;
    loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    dataFd_ = listenOn(reinterpret_cast<sockaddr*>(&loopback), sizeof loopback);
    socklen_t size = sizeof loopback;
    getsockname(dataFd_, reinterpret_cast<sockaddr*>(&loopback), &size);
    port_ = ntohs(loopback.sin_port);

    spare_ = start();
    broker_ = std::thread([this] { serveBroker(); });
    data_ = std::thread([this] { serveData(); });
}

Site::~Site() {
    for (const int fd : {brokerFd_, dataFd_}) shutdown(fd, SHUT_RDWR);
    broker_.join();
    data_.join();
    given_.emplace(0, spare_);
    for (auto& [process, worker] : given_) {
        close(worker.control);
        kill(worker.pid, SIGKILL);
        waitpid(worker.pid, nullptr, 0);
        munmap(worker.usage, sizeof(UsagePage));
    }
    for (const int fd : {brokerFd_, dataFd_}) close(fd);
    const std::string command = "rm -rf " + directory_;
    if (std::system(command.c_str()) != 0) std::perror("rm");
}

SiteWorker Site::start() {
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) give_up("socketpair");
    const int memory = memfd_create("usage", MFD_CLOEXEC);
    if (ftruncate(memory, sizeof(UsagePage)) != 0) give_up("ftruncate");
    SiteWorker worker;
    worker.usage = static_cast<UsagePage*>(
        mmap(nullptr, sizeof(UsagePage), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0));
    worker.usage->magic = kUsageMagic;
    const std::string cache = directory_ + "/cache";
    worker.pid = fork();
    if (worker.pid == 0) {
        const int control = fcntl(sockets[1], F_DUPFD_CLOEXEC, 100);
        const int usage = fcntl(memory, F_DUPFD_CLOEXEC, 100);
        dup2(control, kControlFd);
        dup2(usage, kUsageFd);
        execl(options_.worker.c_str(), options_.worker.c_str(), "--driver", options_.driver.c_str(),
              "--cache", cache.c_str(), static_cast<char*>(nullptr));
        _exit(127);
    }
    close(sockets[1]);
    close(memory);
    worker.control = sockets[0];

    std::vector<uint8_t> packet(kMaxControl);
    const ssize_t got = recv(worker.control, packet.data(), packet.size(), 0);
    Reader in(Bytes(packet).first(got > 0 ? static_cast<size_t>(got) : 0));
    const auto kind = in.get<ControlKind>();
    if (kind != ControlKind::ready) {
        std::fprintf(stderr, "the worker did not start: %s\n",
                     kind == ControlKind::failed ? std::string(in.text()).c_str() : "no message");
        std::abort();
    }
    in.get<int32_t>();
    const Bytes snapshot = in.bytes();
    worker.snapshot.assign(snapshot.begin(), snapshot.end());
    return worker;
}

void Site::serveBroker() {
    for (;;) {
        const int fd = accept4(brokerFd_, nullptr, nullptr, SOCK_CLOEXEC);
        if (fd < 0) return;
        answer(fd);
        close(fd);
    }
}

void Site::answer(int fd) {
    uint32_t head[4];  // length, version, kind, pid
    if (!readAll(fd, head, sizeof head)) return;
    Writer body;
    const bool wantsProcess = head[2] == 2;
    if (wantsProcess && !options_.refusal.empty()) {
        body.put(uint32_t{1}).put(int32_t{46}).text(options_.refusal);
    } else {
        const std::lock_guard lock(mutex_);
        uint64_t process = 0;
        if (wantsProcess) {
            process = given_.size() + 1;
            SiteWorker& worker = given_.emplace(process, spare_).first->second;
            spare_ = start();
            Writer claim;
            claim.raw(session_.data(), session_.size());
            claim.put(process);
            const Key key = keyOf(process);
            claim.raw(key.data(), key.size());
            claim.put(options_.memoryLimit);
            sendControl(worker.control, ControlKind::claim, claim.view());
        }
        const Key key = process == 0 ? Key{} : keyOf(process);
        body.put(uint32_t{1}).put(int32_t{0});
        body.raw(session_.data(), session_.size());
        body.put(process);
        body.raw(key.data(), key.size());
        body.text("127.0.0.1").put(port_).bytes(spare_.snapshot.data(), spare_.snapshot.size());
    }
    Writer framed;
    framed.bytes(body.data(), body.size());
    send(fd, framed.data(), framed.size(), MSG_NOSIGNAL);
}

void Site::serveData() {
    for (;;) {
        const int fd = accept4(dataFd_, nullptr, nullptr, SOCK_CLOEXEC);
        if (fd < 0) return;
        wire::Preface preface{};
        if (readAll(fd, &preface, sizeof preface)) {
            const std::lock_guard lock(mutex_);
            const auto found = given_.find(preface.process);
            if (found != given_.end() && provesKey(preface, keyOf(preface.process)))
                sendControl(found->second.control, ControlKind::lane,
                            {reinterpret_cast<const uint8_t*>(&preface), sizeof preface}, fd);
        }
        close(fd);
    }
}

void Site::killWorkers() {
    const std::lock_guard lock(mutex_);
    for (auto& [process, worker] : given_) kill(worker.pid, SIGKILL);
}

uint64_t Site::launches() {
    const std::lock_guard lock(mutex_);
    uint64_t sum = 0;
    for (auto& [process, worker] : given_) sum += worker.usage->launches;
    return sum;
}

int Site::workers() {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(given_.size());
}

}  // namespace juice::shim::test

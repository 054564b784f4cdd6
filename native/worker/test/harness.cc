#include "native/worker/test/harness.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

namespace juice::worker::test {
namespace {

constexpr int kDeadlineMillis = 60'000;

/// What a container's seccomp profile does: no other personality may be taken on.
void forbidPersonality() {
    const sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_personality, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0xffffffff, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog filter{std::size(program), const_cast<sock_filter*>(program)};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

/// Between fork and exec.
[[noreturn]] void become(char* const* argv, int control, int usage, bool container) {
    if (container) forbidPersonality();
    control = fcntl(control, F_DUPFD_CLOEXEC, 100);
    usage = fcntl(usage, F_DUPFD_CLOEXEC, 100);
    dup2(control, kControlFd);
    dup2(usage, kUsageFd);
    execv(argv[0], argv);
    _exit(127);
}

int listenOnLoopback(uint16_t& port) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(fd, 16), 0);
    getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
    port = ntohs(address.sin_port);
    return fd;
}

/// Another machine's paths, where the tests run against a real GPU.
std::string setting(const char* variable, const char* otherwise) {
    const char* value = std::getenv(variable);
    return value == nullptr ? otherwise : value;
}

}  // namespace

WorkerProcess::WorkerProcess(std::vector<std::string> args, Start how) {
    int sockets[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
    const int memory = memfd_create("usage", MFD_CLOEXEC);
    EXPECT_EQ(ftruncate(memory, sizeof(UsagePage)), 0);
    usage_ = static_cast<UsagePage*>(
        mmap(nullptr, sizeof(UsagePage), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0));
    usage_->magic = kUsageMagic;

    const std::string driver =
        how.driver == nullptr ? setting("JUICE_TEST_DRIVER", JUICE_SOFTGPU) : how.driver;
    args.insert(args.begin(), {setting("JUICE_TEST_WORKER", JUICE_WORKER), "--driver", driver});
    std::vector<char*> argv;
    for (std::string& arg : args) argv.push_back(arg.data());
    argv.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) become(argv.data(), sockets[1], memory, how.container);
    close(sockets[1]);
    close(memory);
    control_ = sockets[0];
    listener_ = listenOnLoopback(port_);
    randomBytes(who_.session.data(), who_.session.size());
    randomBytes(who_.key.data(), who_.key.size());
    who_.process = 7;
    acceptor_ = std::thread([this] { acceptLanes(); });
}

WorkerProcess::~WorkerProcess() {
    shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    close(listener_);
    hangUp();
    if (!reaped_) {
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }
    munmap(usage_, sizeof(UsagePage));
}

void WorkerProcess::acceptLanes() {
    for (;;) {
        const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        if (fd < 0) return;
        wire::Preface preface;
        if (recv(fd, &preface, sizeof preface, MSG_WAITALL) == sizeof preface)
            send(ControlKind::lane, {reinterpret_cast<uint8_t*>(&preface), sizeof preface}, fd);
        close(fd);
    }
}

void WorkerProcess::hangUp() {
    if (control_ >= 0) close(control_);
    control_ = -1;
}

std::optional<WorkerProcess::Message> WorkerProcess::receive() {
    pollfd waiting{control_, POLLIN, 0};
    if (poll(&waiting, 1, kDeadlineMillis) <= 0) {
        ADD_FAILURE() << "the worker said nothing";
        return std::nullopt;
    }
    std::vector<uint8_t> buffer(kMaxControl);
    const ssize_t got = recv(control_, buffer.data(), buffer.size(), 0);
    if (got < 2) return std::nullopt;
    Message out;
    std::memcpy(&out.kind, buffer.data(), sizeof out.kind);
    out.payload.assign(buffer.begin() + sizeof out.kind, buffer.begin() + got);
    return out;
}

void WorkerProcess::send(ControlKind kind, Bytes payload, int fd) {
    iovec parts[2] = {{&kind, sizeof kind}, {const_cast<uint8_t*>(payload.data()), payload.size()}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
    if (fd >= 0) {
        message.msg_control = space;
        message.msg_controllen = sizeof space;
        cmsghdr* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
    }
    sendmsg(control_, &message, MSG_NOSIGNAL);
}

void WorkerProcess::awaitReady() {
    const auto message = receive();
    ASSERT_TRUE(message.has_value());
    Reader in(message->payload);
    ASSERT_EQ(message->kind, ControlKind::ready)
        << (message->kind == ControlKind::failed ? in.text() : "");
    EXPECT_GE(in.get<int32_t>(), 13000);
    EXPECT_TRUE(Snapshot::decode(in.bytes(), snapshot_));
    in.get<uint64_t>();
    EXPECT_TRUE(in.done());
}

void WorkerProcess::claim(uint64_t memoryLimit) {
    Writer out;
    out.raw(who_.session.data(), who_.session.size());
    out.put(who_.process);
    out.raw(who_.key.data(), who_.key.size());
    out.put(memoryLimit);
    send(ControlKind::claim, out.view());
}

std::unique_ptr<ClientLink> WorkerProcess::connect() {
    ClientHello hello;
    hello.pid = static_cast<uint32_t>(getpid());
    hello.arenas = 3;
    std::string error;
    auto link = ClientLink::connect({"127.0.0.1", port_}, who_, hello, error);
    EXPECT_NE(link, nullptr) << error;
    if (link == nullptr) return link;
    const auto attached = receive();
    EXPECT_TRUE(attached && attached->kind == ControlKind::attached);
    return link;
}

int WorkerProcess::awaitEnded(std::string* sentence) {
    while (const auto message = receive()) {
        if (message->kind != ControlKind::ended) continue;
        Reader in(message->payload);
        const int ending = in.get<uint8_t>();
        in.get<int32_t>();
        if (sentence != nullptr) *sentence = in.text();
        return ending;
    }
    return -1;
}

int WorkerProcess::awaitExit() {
    if (reaped_) return exit_;
    for (int waited = 0; waited < kDeadlineMillis; waited += 10) {
        int status = 0;
        if (waitpid(pid_, &status, WNOHANG) == pid_) {
            reaped_ = true;
            exit_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
            return exit_;
        }
        usleep(10'000);
    }
    ADD_FAILURE() << "the worker is still there";
    return 999;
}

Reply Client::call(Op op, const Writer& payload) {
    return link_.call(static_cast<uint16_t>(op), thread_, context_, payload.view());
}

void Client::post(Op op, const Writer& payload) {
    link_.post(static_cast<uint16_t>(op), thread_, context_, payload.view());
}

void Client::retainPrimary() {
    context_ = 0;
    const Reply reply = call(Op::cuDevicePrimaryCtxRetain, custom::PrimaryRetain{kContext, 0, 0});
    ASSERT_EQ(reply.head.result, CUDA_SUCCESS);
    context_ = kContext;
}

uint64_t Client::alloc(uint64_t size) {
    const Reply reply = call(Op::cuMemAlloc_v2, custom::Alloc{size});
    EXPECT_EQ(reply.head.result, CUDA_SUCCESS);
    return reply.reader().get<uint64_t>();
}

void Client::free(uint64_t address) {
    post(Op::cuMemFree_v2, custom::Free{address});
}

void Client::copyIn(uint64_t destination, const std::vector<uint8_t>& bytes, uint64_t stream) {
    custom::CopyIn copy{stream, destination, bytes.size(), 0, 0, 0};
    Writer out;
    if (bytes.size() <= wire::kInlineLimit) {
        custom::put(out, copy);
        out.raw(bytes.data(), bytes.size());
        return post(Op::cuMemcpyHtoDAsync_v2, out);
    }
    copy.host = static_cast<uint32_t>(custom::Host::transfer);
    copy.where = link_.mintTransfer();
    post(Op::cuMemcpyHtoDAsync_v2, copy);
    link_.send(copy.where, bytes.data(), bytes.size());
}

std::vector<uint8_t> Client::copyOut(uint64_t source, size_t size, uint64_t stream) {
    custom::CopyOut copy{stream, source, size, 0, 0, 0, 0};
    std::vector<uint8_t> out(size);
    if (size <= wire::kInlineLimit) {
        const Reply reply = call(Op::cuMemcpyDtoHAsync_v2, copy);
        EXPECT_EQ(reply.head.result, CUDA_SUCCESS);
        EXPECT_EQ(reply.payload.size(), size);
        return reply.payload;
    }
    copy.host = static_cast<uint32_t>(custom::Host::transfer);
    copy.transfer = link_.expect(out.data(), size);
    const Reply reply = call(Op::cuMemcpyDtoHAsync_v2, copy);
    EXPECT_EQ(reply.head.result, CUDA_SUCCESS);
    EXPECT_TRUE(link_.landed(copy.transfer));
    return out;
}

int Client::synchronise(uint64_t stream) {
    Writer out;
    out.put(stream);
    const Reply reply = call(Op::cuStreamSynchronize, out);
    EXPECT_FALSE(reply.broken) << link_.reason();
    return reply.head.result;
}

uint64_t Client::makeStream(uint64_t id, unsigned flags) {
    Writer out;
    out.put(id).put(flags);
    post(Op::cuStreamCreate, out);
    return 16 + id;
}

int Client::loadModule(uint64_t id, const std::string& ptx) {
    constexpr uint32_t kPtxKind = 4;  // image::Kind::ptx
    const Bytes image{reinterpret_cast<const uint8_t*>(ptx.c_str()), ptx.size() + 1};
    custom::PartName name{};
    const auto hash = sha256(image);
    std::copy(hash.begin(), hash.end(), name.sha256);
    name.size = image.size();
    Writer load;
    custom::put(load, custom::ImageLoad{id, kPtxKind, 0, 1, 0, 0, 0});
    custom::put(load, name);
    for (int uploads = 0; uploads < 2; ++uploads) {
        const Reply reply = call(Op::cuModuleLoadDataEx, load);
        if (reply.head.result != CUDA_SUCCESS) return -reply.head.result;
        if (reply.reader().get<custom::LoadStatus>() == custom::LoadStatus::done) return uploads;
        Writer part;
        custom::put(part, custom::ImagePart{name, 0});
        part.raw(image.data(), image.size());
        post(Op::juiceImagePart, part);
    }
    ADD_FAILURE() << "the worker does not keep the image";
    return -1;
}

void Client::getFunction(uint64_t module, uint64_t id, const std::string& name) {
    Writer out;
    custom::put(out, custom::Child{module, id});
    out.text(name);
    post(Op::cuModuleGetFunction, out);
}

void Client::launch(uint64_t function, uint32_t blocks, uint32_t threads, const Writer& params,
                    uint64_t stream) {
    custom::Launch launch{};
    launch.function = function;
    launch.grid[0] = blocks;
    launch.block[0] = threads;
    launch.grid[1] = launch.grid[2] = launch.block[1] = launch.block[2] = 1;
    launch.paramBytes = static_cast<uint32_t>(params.size());
    launch.stream = stream;
    Writer out;
    custom::put(out, launch);
    out.raw(params.data(), params.size());
    post(Op::cuLaunchKernel, out);
}

std::vector<uint8_t> pattern(size_t size, uint8_t seed) {
    std::vector<uint8_t> out(size);
    uint32_t state = seed * 2654435761u + 1;
    for (uint8_t& byte : out) {
        state = state * 1664525u + 1013904223u;
        byte = static_cast<uint8_t>(state >> 24);
    }
    return out;
}

const char kPtx[] = R"(
.version 8.0
.target sm_80
.address_size 64

.visible .entry increment(.param .u64 p, .param .u32 n)
{
    .reg .pred %p<2>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [p];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra DONE;
    cvta.to.global.u64 %rd2, %rd1;
    mul.wide.u32 %rd3, %r5, 4;
    add.s64 %rd2, %rd2, %rd3;
    ld.global.u32 %r2, [%rd2];
    add.s32 %r2, %r2, 1;
    st.global.u32 [%rd2], %r2;
DONE:
    ret;
}

.visible .entry slow_increment(.param .u64 p, .param .u32 n)
{
    .reg .pred %p<2>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [p];
    ld.param.u32 %r1, [n];
    mov.u32 %r3, 0;
LOOP:
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p1, %r3, 300000;
    @%p1 bra LOOP;
    mov.u32 %r4, %tid.x;
    setp.ge.u32 %p1, %r4, %r1;
    @%p1 bra DONE;
    mul.wide.u32 %rd3, %r4, 4;
    add.s64 %rd2, %rd1, %rd3;
    ld.global.u32 %r2, [%rd2];
    add.s32 %r2, %r2, 1;
    st.global.u32 [%rd2], %r2;
DONE:
    ret;
}

.visible .entry fault()
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    mov.u64 %rd1, 64;
    mov.u32 %r1, 1;
    st.global.u32 [%rd1], %r1;
    ret;
}
)";

}  // namespace juice::worker::test

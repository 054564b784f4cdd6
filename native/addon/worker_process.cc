// Workers: spawning, their control socket (native/link/control.h), their usage page, their end.
// One thread a worker polls the control socket and the pidfd; every message reaches JavaScript
// before the exit does.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "native/addon/addon.h"
#include "native/link/control.h"
#include "native/link/usage.h"

namespace juice::addon {
namespace {

struct Message {
    uint16_t kind;
    std::vector<uint8_t> payload;
};
struct Exit {
    int code;    // -1 when killed by a signal
    int signal;  // 0 when it exited
};

class WorkerProcess : public std::enable_shared_from_this<WorkerProcess> {
  public:
    WorkerProcess(pid_t pid, int control, int pidfd, UsagePage* usage,
                  Napi::ThreadSafeFunction onMessage, Napi::ThreadSafeFunction onExit)
        : pid_(pid),
          control_(control),
          pidfd_(pidfd),
          usage_(usage),
          onMessage_(onMessage),
          onExit_(onExit) {}
    ~WorkerProcess() {
        close(control_);
        close(pidfd_);
        munmap(usage_, sizeof(UsagePage));
    }

    void start() {
        std::thread([self = shared_from_this()] { self->watch(); }).detach();
    }

    pid_t pid() const { return pid_; }
    const UsagePage& usage() const { return *usage_; }
    void kill(int signal) { syscall(SYS_pidfd_send_signal, pidfd_, signal, nullptr, 0); }
    /// The worker reads end-of-file on its control socket and ends.
    void hangUp() { shutdown(control_, SHUT_RDWR); }

    /// 0, or errno.
    int send(uint16_t kind, const uint8_t* data, size_t size, int fd) {
        iovec parts[2] = {{&kind, sizeof kind}, {const_cast<uint8_t*>(data), size}};
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
        // A worker that does not read its control socket is stuck: an error, never a blocked event
        // loop.
        return sendmsg(control_, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? errno : 0;
    }

  private:
    void watch() {
        std::vector<uint8_t> buffer(kMaxControl);
        pollfd fds[2] = {{control_, POLLIN, 0}, {pidfd_, POLLIN, 0}};
        for (;;) {
            if (poll(fds, 2, -1) < 0 && errno != EINTR) break;
            while (receive(buffer)) {
            }
            if ((fds[0].revents & (POLLHUP | POLLERR)) != 0) fds[0].fd = -1;
            if ((fds[1].revents & POLLIN) != 0) break;
        }
        while (receive(buffer)) {
        }
        siginfo_t info{};
        waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED);
        auto* exit = new Exit{info.si_code == CLD_EXITED ? info.si_status : -1,
                              info.si_code == CLD_EXITED ? 0 : info.si_status};
        const auto status =
            onExit_.NonBlockingCall(exit, [](Napi::Env env, Napi::Function callback, Exit* e) {
                const std::unique_ptr<Exit> owned(e);
                callback.Call(
                    {e->signal == 0 ? Napi::Value(Napi::Number::New(env, e->code)) : env.Null(),
                     e->signal != 0 ? Napi::Value(Napi::Number::New(env, e->signal)) : env.Null()});
            });
        if (status != napi_ok) delete exit;
        onMessage_.Release();
        onExit_.Release();
    }

    bool receive(std::vector<uint8_t>& buffer) {
        const ssize_t got = recv(control_, buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (got < static_cast<ssize_t>(sizeof(uint16_t))) return false;
        auto* message = new Message;
        std::memcpy(&message->kind, buffer.data(), sizeof message->kind);
        message->payload.assign(buffer.begin() + sizeof message->kind, buffer.begin() + got);
        const auto status = onMessage_.NonBlockingCall(
            message, [](Napi::Env env, Napi::Function callback, Message* m) {
                const std::unique_ptr<Message> owned(m);
                callback.Call(
                    {Napi::Number::New(env, m->kind),
                     Napi::Buffer<uint8_t>::Copy(env, m->payload.data(), m->payload.size())});
            });
        if (status != napi_ok) delete message;
        return true;
    }

    pid_t pid_;
    int control_, pidfd_;
    UsagePage* usage_;
    Napi::ThreadSafeFunction onMessage_, onExit_;
};

/// Between fork and exec: only async-signal-safe calls. Writes errno to `report` on failure.
[[noreturn]] void become(const char* path, char* const* args, char* const* env, int control,
                         int usage, int report, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    for (int s = 1; s < NSIG; ++s) signal(s, SIG_DFL);
    setpgid(0, 0);  // a Ctrl-C meant for the host's terminal is the host's to handle
    // Out of the way of 3, 4 and each other before they take their places.
    control = fcntl(control, F_DUPFD_CLOEXEC, 100);
    usage = fcntl(usage, F_DUPFD_CLOEXEC, 100);
    report = fcntl(report, F_DUPFD_CLOEXEC, 100);
    const int null = open("/dev/null", O_RDONLY);
    dup2(null, 0);
    dup2(2, 1);
    dup2(control, kControlFd);
    dup2(usage, kUsageFd);
    syscall(SYS_close_range, kUsageFd + 1, 99, 0);
    execve(path, args, env);
    const int error = errno;
    [[maybe_unused]] const ssize_t written = write(report, &error, sizeof error);
    _exit(127);
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
    std::vector<char*> out;
    out.reserve(strings.size() + 1);
    for (std::string& s : strings) out.push_back(s.data());
    out.push_back(nullptr);
    return out;
}

Napi::Object usageObject(Napi::Env env, const UsagePage& page) {
    Napi::Object out = Napi::Object::New(env);
    const auto put = [&](const char* name, const auto& value) {
        out.Set(name,
                Napi::Number::New(env, static_cast<double>(value.load(std::memory_order_relaxed))));
    };
    put("calls", page.calls);
    put("bytesIn", page.bytesIn);
    put("bytesOut", page.bytesOut);
    put("launches", page.launches);
    put("memoryNow", page.memoryNow);
    put("memoryPeak", page.memoryPeak);
    put("clientPid", page.clientPid);
    put("lastError", page.lastError);
    put("ending", page.ending);
    return out;
}

Napi::Object handle(Napi::Env env, const std::shared_ptr<WorkerProcess>& worker) {
    Napi::Object out = Napi::Object::New(env);
    out.Set("pid", Napi::Number::New(env, worker->pid()));
    out.Set("send", Napi::Function::New(env, [worker](const Napi::CallbackInfo& call) {
                const auto kind = static_cast<uint16_t>(call[0].As<Napi::Number>().Uint32Value());
                const auto payload = call[1].As<Napi::Buffer<uint8_t>>();
                const int fd = call[2].IsNumber() ? call[2].As<Napi::Number>().Int32Value() : -1;
                const int error = worker->send(kind, payload.Data(), payload.Length(), fd);
                if (fd >= 0) close(fd);
                if (error != 0)
                    throw systemError(call.Env(), "worker " + std::to_string(worker->pid()), error);
                return call.Env().Undefined();
            }));
    out.Set("usage", Napi::Function::New(env, [worker](const Napi::CallbackInfo& call) {
                return usageObject(call.Env(), worker->usage());
            }));
    out.Set("kill", Napi::Function::New(env, [worker](const Napi::CallbackInfo& call) {
                worker->kill(call[0].As<Napi::Number>().Int32Value());
                return call.Env().Undefined();
            }));
    out.Set("close", Napi::Function::New(env, [worker](const Napi::CallbackInfo& call) {
                worker->hangUp();
                return call.Env().Undefined();
            }));
    return out;
}

UsagePage* mapUsage(int fd) {
    if (ftruncate(fd, sizeof(UsagePage)) != 0) return nullptr;
    void* page = mmap(nullptr, sizeof(UsagePage), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED) return nullptr;
    auto* usage = static_cast<UsagePage*>(page);
    usage->magic = kUsageMagic;
    return usage;
}

Napi::Value spawnWorker(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    const Napi::Object options = info[0].As<Napi::Object>();
    const std::string path = options.Get("path").As<Napi::String>();
    std::vector<std::string> args{path}, environment;
    const Napi::Array list = options.Get("args").As<Napi::Array>();
    for (uint32_t i = 0; i < list.Length(); ++i) args.push_back(list.Get(i).As<Napi::String>());
    const Napi::Object variables = options.Get("env").As<Napi::Object>();
    const Napi::Array names = variables.GetPropertyNames();
    for (uint32_t i = 0; i < names.Length(); ++i) {
        const std::string name = names.Get(i).As<Napi::String>();
        environment.push_back(name + "=" + variables.Get(name).As<Napi::String>().Utf8Value());
    }

    int sockets[2], report[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0)
        throw systemError(env, "socketpair for a worker", errno);
    if (pipe2(report, O_CLOEXEC) != 0) {
        const int error = errno;
        close(sockets[0]);
        close(sockets[1]);
        throw systemError(env, "pipe for a worker", error);
    }
    const int memory = memfd_create("juice-usage", MFD_CLOEXEC);
    UsagePage* usage = memory < 0 ? nullptr : mapUsage(memory);
    const auto discard = [&](const std::string& what, int error) {
        for (const int fd : {sockets[0], sockets[1], report[0], report[1], memory})
            if (fd >= 0) close(fd);
        if (usage != nullptr) munmap(usage, sizeof(UsagePage));
        return systemError(env, what, error);
    };
    if (usage == nullptr) throw discard("usage page of a worker", errno);

    const std::vector<char*> argv = pointers(args), envp = pointers(environment);
    const pid_t parent = getpid();
    // No signal handler of Node's may run in the child before become() has reset them.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const pid_t pid = fork();
    if (pid == 0)
        become(path.c_str(), argv.data(), envp.data(), sockets[1], memory, report[1], parent);
    const int forkError = errno;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (pid < 0) throw discard("fork of a worker", forkError);

    close(sockets[1]);
    sockets[1] = -1;
    close(report[1]);
    report[1] = -1;
    int execError = 0;
    const bool failed = read(report[0], &execError, sizeof execError) == sizeof execError;
    if (failed) {
        waitpid(pid, nullptr, 0);
        throw discard("cannot start " + path, execError);
    }
    close(report[0]);
    close(memory);
    const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));

    auto onMessage = Napi::ThreadSafeFunction::New(env, info[1].As<Napi::Function>(),
                                                   "juice.worker.message", 0, 1);
    auto onExit =
        Napi::ThreadSafeFunction::New(env, info[2].As<Napi::Function>(), "juice.worker.exit", 0, 1);
    onMessage.Unref(env);
    onExit.Unref(env);
    auto worker = std::make_shared<WorkerProcess>(pid, sockets[0], pidfd, usage, onMessage, onExit);
    worker->start();
    return handle(env, worker);
}

}  // namespace

void registerWorkers(Napi::Env env, Napi::Object exports) {
    exports.Set("spawnWorker", Napi::Function::New(env, spawnWorker));
}

}  // namespace juice::addon

// Tells when a process that is nobody's child here ends: a pidfd polled by one thread a watch.
// A pidfd names one process for ever, so that a reused pid cannot be mistaken for it.
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

#include "native/addon/addon.h"

namespace juice::addon {
namespace {

Napi::Value watchProcess(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    const pid_t pid = info[0].As<Napi::Number>().Int32Value();
    const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    if (pidfd < 0) throw systemError(env, "pidfd_open of process " + std::to_string(pid), errno);
    const int stop = eventfd(0, EFD_CLOEXEC);
    // The thread owns `stop` and closes it when the process ends; this one is the JavaScript
    // side's.
    const int mine = fcntl(stop, F_DUPFD_CLOEXEC, 3);

    auto onExit = Napi::ThreadSafeFunction::New(env, info[1].As<Napi::Function>(),
                                                "juice.watchProcess", 0, 1);
    onExit.Unref(env);
    std::thread([pidfd, stop, onExit]() mutable {
        pollfd fds[2] = {{pidfd, POLLIN, 0}, {stop, POLLIN, 0}};
        while (poll(fds, 2, -1) < 0 && errno == EINTR) {
        }
        if ((fds[1].revents & POLLIN) == 0) onExit.NonBlockingCall();
        onExit.Release();
        close(pidfd);
        close(stop);
    }).detach();

    Napi::Object out = Napi::Object::New(env);
    out.Set("stop",
            Napi::Function::New(env, [mine, done = false](const Napi::CallbackInfo& call) mutable {
                if (!done) {
                    const uint64_t one = 1;
                    [[maybe_unused]] const ssize_t written = write(mine, &one, sizeof one);
                    close(mine);
                    done = true;
                }
                return call.Env().Undefined();
            }));
    return out;
}

}  // namespace

void registerProcessWatch(Napi::Env env, Napi::Object exports) {
    exports.Set("watchProcess", Napi::Function::New(env, watchProcess));
}

}  // namespace juice::addon

#include "native/worker/output.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace juice::worker {
namespace {

constexpr int kPipeSize = 1 << 20;

bool writeAll(int fd, const char* data, size_t size) {
    while (size > 0) {
        const ssize_t written = write(fd, data, size);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        data += written;
        size -= static_cast<size_t>(written);
    }
    return true;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

/// A sanitizer's report must not stay in the pipe.
void keepLastWords(int, int to) {
    __sanitizer_set_report_fd(reinterpret_cast<void*>(static_cast<intptr_t>(to)));
}

#else

int lastWordsFrom = -1, lastWordsTo = -1;

/// What is said of a crash must not stay in the pipe.
void onCrash(int signal) {
    char text[1024];
    for (ssize_t size; (size = read(lastWordsFrom, text, sizeof text)) > 0;)
        writeAll(lastWordsTo, text, static_cast<size_t>(size));
    raise(signal);  // the handler is gone
}

void keepLastWords(int from, int to) {
    lastWordsFrom = from;
    lastWordsTo = to;
    struct sigaction action {};
    action.sa_handler = onCrash;
    action.sa_flags = SA_RESETHAND | SA_NODEFER;
    for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL})
        sigaction(signal, &action, nullptr);
}

#endif

}  // namespace

Output& Output::capture() {
    static auto& one = *new Output;  // leaked: its thread lasts as long as the process
    return one;
}

Output::Output() {
    sources_[0].stream = wire::OutputStream::standard;
    sources_[1].stream = wire::OutputStream::error;
    if (!redirect(STDOUT_FILENO, sources_[0]) || !redirect(STDERR_FILENO, sources_[1])) return;
    keepLastWords(sources_[1].from, sources_[1].before);
    watcher_ = std::thread([this] { watch(); });
}

bool Output::redirect(int descriptor, Source& source) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    // Descriptors that nobody takes for something else.
    source.from = fcntl(ends[0], F_DUPFD_CLOEXEC, 64);
    close(ends[0]);
    source.before = fcntl(descriptor, F_DUPFD_CLOEXEC, 64);
    fcntl(source.from, F_SETFL, O_NONBLOCK);
    fcntl(source.from, F_SETPIPE_SZ, kPipeSize);
    const bool done = source.from >= 0 && dup2(ends[1], descriptor) == descriptor;
    close(ends[1]);
    return done;
}

void Output::attach(std::shared_ptr<ServerLink> link) {
    flush();
    const std::lock_guard lock(mutex_);
    link_ = std::move(link);
}

void Output::flush() {
    std::fflush(stdout);
    const std::lock_guard lock(mutex_);
    for (const Source& source : sources_) drain(source);
}

void Output::drain(const Source& source) {
    char text[16 << 10];
    for (;;) {
        const ssize_t size = read(source.from, text, sizeof text);
        if (size < 0 && errno == EINTR) continue;
        if (size <= 0) return;
        forward(source, {text, static_cast<size_t>(size)});
    }
}

void Output::forward(const Source& source, std::string_view text) {
    if (link_ == nullptr || source.stream == wire::OutputStream::error)
        writeAll(source.before, text.data(), text.size());
    if (link_ != nullptr) link_->output(source.stream, text);
}

void Output::watch() {
    pollfd waiting[2] = {{sources_[0].from, POLLIN, 0}, {sources_[1].from, POLLIN, 0}};
    for (;;) {
        if (poll(waiting, 2, -1) < 0 && errno != EINTR) return;
        const std::lock_guard lock(mutex_);
        for (const Source& source : sources_) drain(source);
    }
}

}  // namespace juice::worker

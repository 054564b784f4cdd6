#include "native/link/thread.h"

#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#include <csignal>
#include <memory>
#include <utility>

namespace juice {
namespace {

constexpr size_t kStackBytes = 512u << 10;

struct Start {
    const char* name;
    std::function<void()> body;
};

void* enter(void* argument) {
    const std::unique_ptr<Start> start(static_cast<Start*>(argument));
    prctl(PR_SET_NAME, start->name);
    prctl(PR_SET_TIMERSLACK, 1);  // naps of tens of microseconds must not become a hundred
    start->body();
    return nullptr;
}

}  // namespace

int64_t nowNanos() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

int millisUntil(int64_t deadline) {
    const int64_t left = deadline - nowNanos();
    return left <= 0 ? 0 : static_cast<int>((left + kMilli - 1) / kMilli);
}

void napNanos(int64_t nanos) {
    const timespec time{nanos / 1'000'000'000, nanos % 1'000'000'000};
    nanosleep(&time, nullptr);
}

int processors() {
    static const int count = [] {
        cpu_set_t set;
        return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    }();
    return count;
}

void spinTurn() {
    if (processors() <= 2) {
        sched_yield();
    } else {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
}

bool Thread::start(const char* name, std::function<void()> body) {
    auto start = std::make_unique<Start>(Start{name, std::move(body)});
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kStackBytes);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    started_ = pthread_create(&thread_, &attributes, enter, start.get()) == 0;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_attr_destroy(&attributes);
    if (started_) (void)start.release();
    return started_;
}

void Thread::join() {
    if (!started_) return;
    started_ = false;
    pthread_join(thread_, nullptr);
}

}  // namespace juice

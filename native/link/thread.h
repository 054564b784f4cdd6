// Threads, clocks and pauses of a link. Its threads take no signals and have small stacks: they
// live in other people's processes.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <functional>

namespace juice {

constexpr int64_t kMicro = 1000;
constexpr int64_t kMilli = 1000 * kMicro;

/// Monotonic time in nanoseconds.
int64_t nowNanos();
/// From now to `deadline` for poll(2): rounded up, at least 0.
int millisUntil(int64_t deadline);
/// Sleeps that long, give or take a few microseconds: the link's threads ask for no timer slack.
void napNanos(int64_t nanos);

/// Processors that this process may run on.
int processors();
/// One turn of a busy wait. Where processors are few it gives way, since the peer that is waited
/// for may need the very one that spins.
void spinTurn();

/// A thread with all signals blocked. Joined by join() or by the destructor.
class Thread {
  public:
    Thread() = default;
    ~Thread() { join(); }
    Thread(const Thread&) = delete;
    Thread& operator=(const Thread&) = delete;

    /// False when the system has no thread to give. `name` has at most 15 characters.
    bool start(const char* name, std::function<void()> body);
    void join();
    bool started() const { return started_; }

  private:
    pthread_t thread_{};
    bool started_ = false;
};

/// Keeps pthread_cancel from ending a thread of the program in the middle of the link's work.
class NoCancel {
  public:
    NoCancel() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old_); }
    ~NoCancel() { pthread_setcancelstate(old_, nullptr); }
    NoCancel(const NoCancel&) = delete;
    NoCancel& operator=(const NoCancel&) = delete;

  private:
    int old_ = 0;
};

}  // namespace juice

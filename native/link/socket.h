// Sockets of a link: connecting, tuning, moving bytes. Descriptors are close-on-exec and high up,
// so that a guest does not disturb a program that counts on low numbers.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <functional>
#include <string>

#include "native/link/codec.h"

namespace juice {

/// A peer that has not answered for this long has vanished.
constexpr int kVanishedMs = 10'000;

/// Moves a descriptor to 500 or above where the limit allows it. The old number is closed.
int moveHigh(int fd);
/// No delay, keepalive and user timeout. Sockets of other families (tests) are left as they are.
void tuneSocket(int fd);
/// Connects within `timeoutMs`, or until `stop` (asked a few times a second) says to give up; -1
/// and a sentence in `error` on failure.
int connectTo(const std::string& host, uint16_t port, int timeoutMs,
              const std::function<bool()>& stop, std::string& error);

enum class Sent { all, stopped, failed };
/// Sends every byte. While the peer is slow, asks `stop` a few times a second whether to give up.
/// errno tells why it failed. `parts` is used up.
Sent sendAll(int fd, iovec* parts, int count, const std::function<bool()>& stop);
/// Receives exactly `size` bytes before `deadline` (a time of nowNanos()); false when the peer
/// closed, failed or was late.
bool receiveExactly(int fd, void* out, size_t size, int64_t deadline);

/// Waits for an event of poll(2); true when one came. -1: for ever.
bool waitFor(int fd, short events, int timeoutMs);

/// A wake-up call for a thread in poll(2).
class Kick {
  public:
    Kick();
    ~Kick();
    Kick(const Kick&) = delete;
    Kick& operator=(const Kick&) = delete;
    int fd() const { return fd_; }
    void ring();
    void clear();
    /// After fork, in the child: gives the descriptor up without a word.
    void abandon();

  private:
    int fd_;
};

}  // namespace juice

// The end of one piece of work, which others may wait for.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>

namespace juice::softgpu {

class Completion {
  public:
    bool done() const { return at_.load(std::memory_order_acquire) != 0; }

    void wait() const {
        while (!done()) at_.wait(0, std::memory_order_acquire);
    }

    /// False when it has not ended by then.
    bool waitUntil(std::chrono::steady_clock::time_point limit) const {
        auto pause = std::chrono::microseconds(10);
        while (!done()) {
            if (std::chrono::steady_clock::now() >= limit) return false;
            std::this_thread::sleep_for(pause);
            pause = std::min(pause * 2, std::chrono::microseconds(2000));
        }
        return true;
    }

    void finish() {
        const auto now = std::chrono::steady_clock::now().time_since_epoch();
        at_.store(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count(),
                  std::memory_order_release);
        at_.notify_all();
    }

    /// When it ended, in nanoseconds of the steady clock; 0 while it has not.
    int64_t at() const { return at_.load(std::memory_order_acquire); }

  private:
    std::atomic<int64_t> at_{0};
};

/// Shared: work is waited for by whoever holds its fence, also after its stream is gone.
using Fence = std::shared_ptr<Completion>;

}  // namespace juice::softgpu

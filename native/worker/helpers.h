// Threads for calls that block, so that one client thread's wait never holds up another's calls.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace juice::worker {

class Helpers {
  public:
    Helpers() = default;
    ~Helpers();

    /// Runs the job on a thread of its own, soon: every job may block for ever.
    /// False when there are too many already.
    bool run(std::function<void()> job);

  private:
    static constexpr size_t kMaxThreads = 256;
    void serve();

    std::mutex mutex_;
    std::condition_variable work_;
    std::deque<std::function<void()>> jobs_;
    std::vector<std::thread> threads_;
    size_t idle_ = 0;
    bool stopping_ = false;
};

}  // namespace juice::worker

// The process-wide threads that run blocks.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace juice::softgpu {

class Pool {
  public:
    /// One pool per process, made at first use and never destroyed: threads of a driver library
    /// must not be joined while the process exits.
    static Pool& shared();

    /// Calls `work` on the calling thread and on up to `helpers` threads of the pool, and returns
    /// when all calls have returned.
    void run(unsigned helpers, const std::function<void()>& work);

    unsigned size() const { return static_cast<unsigned>(threads_.size()); }

  private:
    explicit Pool(unsigned threads);
    void loop();

    struct Job {
        const std::function<void()>* work;
        unsigned wanted;   // calls that no thread has begun
        unsigned running;  // calls that threads of the pool are in
    };

    std::mutex mutex_;
    std::condition_variable wake_, done_;
    std::deque<Job*> jobs_;
    std::vector<std::thread> threads_;
};

}  // namespace juice::softgpu

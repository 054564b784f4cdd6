#include "native/worker/helpers.h"

namespace juice::worker {

Helpers::~Helpers() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    work_.notify_all();
    for (std::thread& thread : threads_) thread.join();
}

bool Helpers::run(std::function<void()> job) {
    {
        const std::lock_guard lock(mutex_);
        if (idle_ <= jobs_.size()) {
            if (threads_.size() >= kMaxThreads) return false;
            threads_.emplace_back([this] { serve(); });
            ++idle_;
        }
        jobs_.push_back(std::move(job));
    }
    work_.notify_one();
    return true;
}

void Helpers::serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
        work_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
        if (stopping_) return;
        const std::function<void()> job = std::move(jobs_.front());
        jobs_.pop_front();
        --idle_;
        lock.unlock();
        job();
        lock.lock();
        ++idle_;
    }
}

}  // namespace juice::worker

#include "native/softgpu/exec/pool.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>

namespace juice::softgpu {

Pool& Pool::shared() {
    static Pool* pool = new Pool(std::max(1u, std::thread::hardware_concurrency()) - 1);
    return *pool;
}

Pool::Pool(unsigned threads) {
    // Signals are the program's business, not ours: the threads take none.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { loop(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Pool::run(unsigned helpers, const std::function<void()>& work) {
    Job job{&work, std::min(helpers, size()), 0};
    if (job.wanted != 0) {
        {
            std::lock_guard lock(mutex_);
            jobs_.push_back(&job);
        }
        job.wanted == 1 ? wake_.notify_one() : wake_.notify_all();
    }
    work();
    if (helpers == 0 || size() == 0) return;
    std::unique_lock lock(mutex_);
    std::erase(jobs_, &job);
    done_.wait(lock, [&] { return job.running == 0; });
}

void Pool::loop() {
    std::unique_lock lock(mutex_);
    for (;;) {
        wake_.wait(lock, [&] { return !jobs_.empty(); });
        Job* job = jobs_.front();
        ++job->running;
        if (--job->wanted == 0) jobs_.pop_front();
        const std::function<void()>* work = job->work;
        lock.unlock();
        (*work)();
        lock.lock();
        if (--job->running == 0) done_.notify_all();
    }
}

}  // namespace juice::softgpu

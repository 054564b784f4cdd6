#include "native/softgpu/driver/plan.h"

#include <pthread.h>
#include <signal.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "native/softgpu/driver/context.h"

namespace juice::softgpu {
namespace {

/// One execution: what is ready, what is under way.
class Execution : public std::enable_shared_from_this<Execution> {
  public:
    explicit Execution(const Plan& plan) : plan_(plan) {
        for (uint32_t i = 0; i < plan.steps.size(); ++i) {
            waiting_.push_back(plan.steps[i].before);
            if (waiting_.back() == 0) ready_.push_back(i);
        }
    }

    void run() {
        std::unique_lock lock(mutex_);
        while (true) {
            changed_.wait(lock, [&] { return !ready_.empty() || apart_ == 0; });
            if (ready_.empty()) return;
            const uint32_t at = ready_.front();
            ready_.pop_front();
            // While nothing else can go on anyhow, there is nothing to hold back.
            const bool alone = ready_.empty() && apart_ == 0;
            if (plan_.steps[at].mayBlock && !alone) {
                ++apart_;
                startThread(at);
                continue;
            }
            lock.unlock();
            perform(at);
            lock.lock();
            release(at);
        }
    }

  private:
    void perform(uint32_t at) const {
        const Plan::Step& step = plan_.steps[at];
        if (!step.work) return;
        if (!step.always && step.context != nullptr && step.context->failed()) return;
        step.work();
    }

    void release(uint32_t at) {
        for (const uint32_t next : plan_.steps[at].next) {
            if (--waiting_[next] == 0) ready_.push_back(next);
        }
    }

    void startThread(uint32_t at) {
        // The program's signals are for its own threads.
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        std::thread([self = shared_from_this(), at] {
            self->perform(at);
            const std::lock_guard lock(self->mutex_);
            self->release(at);
            --self->apart_;
            self->changed_.notify_one();
        }).detach();
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }

    const Plan& plan_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<uint32_t> waiting_;
    std::deque<uint32_t> ready_;
    unsigned apart_ = 0;  // steps on threads of their own
};

}  // namespace

void Plan::execute() const {
    std::make_shared<Execution>(*this)->run();
}

}  // namespace juice::softgpu

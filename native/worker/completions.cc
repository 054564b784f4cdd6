#include "native/worker/completions.h"

#include <algorithm>
#include <chrono>

namespace juice::worker {
namespace {

constexpr auto kShortest = std::chrono::microseconds(20);
constexpr auto kLongest = std::chrono::microseconds(500);
/// While a stream is held up until the client has been told.
constexpr auto kLongestTelling = std::chrono::microseconds(60);

}  // namespace

Completions::Completions(const DriverTable& driver)
    : driver_(driver), watcher_([this] { watch(); }) {}

Completions::~Completions() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    pending_.notify_all();
    watcher_.join();
}

CUevent Completions::takeEvent(CUcontext context, CUresult& result) {
    std::vector<CUevent>& spare = spare_[context];
    result = CUDA_SUCCESS;
    CUevent event = nullptr;
    if (spare.empty()) {
        result = driver_.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    } else {
        event = spare.back();
        spare.pop_back();
    }
    return event;
}

void Completions::after(CUcontext context, CUstream stream, bool delivers, Done done) {
    enter(context, stream, delivers, false, std::move(done));
}

void Completions::tell(CUcontext context, CUstream stream, Done done) {
    enter(context, stream, false, true, std::move(done));
}

void Completions::enter(CUcontext context, CUstream stream, bool delivers, bool tells, Done done) {
    const Relaxed mode(driver_);
    std::unique_lock lock(mutex_);
    CUresult result = CUDA_SUCCESS;
    const CUevent event = takeEvent(context, result);
    if (result == CUDA_SUCCESS) result = driver_.cuEventRecord(event, stream);
    if (result != CUDA_SUCCESS) {
        if (event != nullptr) spare_[context].push_back(event);
        if (tells) lock.unlock();
        done(result);
        return;
    }
    queues_[keyOf(context, stream)].push_back({event, delivers, tells, std::move(done)});
    if (delivers) deliveries_.fetch_add(1, std::memory_order_release);
    if (tells) ++telling_;
    if (++count_ == 1 || tells) pending_.notify_one();
}

void Completions::finish(CUcontext context, Item& item, CUresult result) {
    spare_[context].push_back(item.event);
    if (item.tells) {
        found_.push_back({std::move(item.done), result});
        --telling_;
    } else {
        item.done(result);
    }
    --count_;
    if (item.delivers) deliveries_.fetch_sub(1, std::memory_order_release);
}

bool Completions::pollQueue(CUcontext context, std::deque<Item>& queue) {
    bool due = false;
    while (!queue.empty()) {
        const CUresult result = driver_.cuEventQuery(queue.front().event);
        if (result == CUDA_ERROR_NOT_READY) break;
        Item item = std::move(queue.front());
        queue.pop_front();
        finish(context, item, result);
        due = true;
    }
    return due;
}

bool Completions::pollAll(CUcontext* current) {
    bool due = pass(current);
    // What was due before it may belong to a stream that this pass had seen already.
    while (!found_.empty()) {
        std::vector<Due> found = std::move(found_);
        found_.clear();
        pass(current);
        for (Due& one : found) due_.push_back(std::move(one));
    }
    return due;
}

void Completions::tellDue(std::unique_lock<std::mutex>& lock) {
    if (due_.empty()) return;
    const std::vector<Due> due = std::move(due_);
    due_.clear();
    lock.unlock();
    for (const Due& one : due) one.done(one.result);
    lock.lock();
}

bool Completions::pass(CUcontext* current) {
    bool due = false;
    for (auto it = queues_.begin(); it != queues_.end();) {
        const CUcontext context = it->first.first;
        if (current != nullptr && context != *current) {
            *current = context;
            driver_.cuCtxSetCurrent(context);
        }
        due = pollQueue(context, it->second) || due;
        it = it->second.empty() ? queues_.erase(it) : std::next(it);
    }
    return due;
}

void Completions::poll() {
    const Relaxed mode(driver_);
    std::unique_lock lock(mutex_);
    pollAll(nullptr);
    tellDue(lock);
}

void Completions::retire(CUcontext context, CUstream stream) {
    const std::lock_guard lock(mutex_);
    auto pending = queues_.extract(keyOf(context, stream));
    if (pending.empty()) return;
    pending.key().second = ++retired_;
    queues_.insert(std::move(pending));
}

void Completions::forget(CUcontext context) {
    std::unique_lock lock(mutex_);
    for (auto it = queues_.lower_bound({context, 0});
         it != queues_.end() && it->first.first == context; it = queues_.erase(it)) {
        pollQueue(context, it->second);
        for (Item& item : it->second) finish(context, item, CUDA_ERROR_CONTEXT_IS_DESTROYED);
    }
    spare_.erase(context);
    for (Due& one : found_) due_.push_back(std::move(one));
    found_.clear();
    tellDue(lock);
}

void Completions::watch() {
    const Relaxed mode(driver_);
    auto pause = kShortest;
    CUcontext current = nullptr;
    std::unique_lock lock(mutex_);
    while (!stopping_) {
        if (count_ == 0) {
            pause = kShortest;
            pending_.wait(lock);
            continue;
        }
        const bool due = pollAll(&current);
        tellDue(lock);
        const auto longest = telling_ == 0 ? kLongest : kLongestTelling;
        pause = due ? kShortest : std::min<std::chrono::microseconds>(pause * 2, longest);
        pending_.wait_for(lock, pause);
    }
}

}  // namespace juice::worker

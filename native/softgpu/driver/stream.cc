#include "native/softgpu/driver/stream.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "native/softgpu/driver/context.h"

namespace juice::softgpu {
namespace {

/// A thread without work for so long ends; the next work starts another.
constexpr auto kIdle = std::chrono::seconds(1);

uint64_t nextId() {
    static std::atomic<uint64_t> next{1};
    return next++;
}

void waitAll(const std::vector<Fence>& fences) {
    for (const Fence& fence : fences) fence->wait();
}

bool allDone(const std::vector<Fence>& fences) {
    return std::all_of(fences.begin(), fences.end(), [](const Fence& f) { return f->done(); });
}

}  // namespace

Stream::Stream(Context& context, StreamKind kind, int priority)
    : context_(context), kind_(kind), priority_(priority), id_(nextId()) {}

Fence Stream::tail() const {
    const std::lock_guard lock(mutex_);
    return tail_;
}

void Stream::addImplicitFences(std::vector<Fence>& after) const {
    if (kind_ == StreamKind::nonBlocking) return;
    const auto add = [&](const Stream& other) {
        if (&other == this) return;
        if (Fence fence = other.tail(); fence && !fence->done()) after.push_back(std::move(fence));
    };
    if (kind_ == StreamKind::blocking) {
        add(context_.legacyStream());
        return;
    }
    for (const auto& stream : context_.streams_) {
        if (stream->kind_ == StreamKind::blocking) add(*stream);
    }
}

Fence Stream::enqueue(Task&& task, bool* inlined) {
    auto done = std::make_shared<Completion>();
    // One order of submission across all streams of a context: fences only point backwards.
    const std::lock_guard order(context_.submission_);
    addImplicitFences(task.after);
    const std::lock_guard lock(mutex_);
    tail_ = done;
    const bool free = !busy_ && queue_.empty() && allDone(task.after);
    if (free && !task.work) {
        done->finish();
        return done;
    }
    if (free && inlined != nullptr) {
        *inlined = true;
        busy_ = true;
        return done;
    }
    queue_.push_back({std::move(task), done});
    if (running_) {
        wake_.notify_one();
    } else if (!busy_) {
        startThread();
    }
    return done;
}

Fence Stream::submit(Task task) {
    return enqueue(std::move(task), nullptr);
}

void Stream::run(const std::function<void()>& work) {
    bool inlined = false;
    const Fence done = enqueue({work, {}, false}, &inlined);
    if (!inlined) {
        done->wait();
        return;
    }
    if (!context_.failed()) work();
    done->finish();
    const std::lock_guard lock(mutex_);
    busy_ = false;
    if (queue_.empty()) return;
    if (running_) {
        wake_.notify_one();
    } else {
        startThread();
    }
}

std::vector<Fence> Stream::pending() const {
    std::vector<Fence> fences;
    const std::lock_guard order(context_.submission_);
    if (kind_ == StreamKind::legacy) addImplicitFences(fences);
    if (Fence last = tail()) fences.push_back(std::move(last));
    return fences;
}

bool Stream::idle() const {
    return allDone(pending());
}

void Stream::synchronize() const {
    waitAll(pending());
}

std::optional<CUstreamAttrValue> Stream::attribute(CUstreamAttrID attribute) const {
    const std::lock_guard lock(mutex_);
    const auto found = attributes_.find(attribute);
    return found == attributes_.end() ? std::nullopt : std::optional(found->second);
}

void Stream::setAttribute(CUstreamAttrID attribute, const CUstreamAttrValue& value) {
    const std::lock_guard lock(mutex_);
    attributes_[attribute] = value;
}

void Stream::copyAttributes(const Stream& from) {
    const std::scoped_lock lock(mutex_, from.mutex_);
    attributes_ = from.attributes_;
}

void Stream::startThread() {
    running_ = true;
    // The program's signals are for its own threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([self = shared_from_this()] { self->loop(); }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Stream::loop() {
    std::unique_lock lock(mutex_);
    while (true) {
        const auto ready = [&] { return !queue_.empty() && !busy_; };
        if (!wake_.wait_for(lock, kIdle, ready)) {
            if (busy_) continue;
            running_ = false;
            return;
        }
        Entry entry = std::move(queue_.front());
        queue_.pop_front();
        busy_ = true;
        lock.unlock();
        execute(entry);
        lock.lock();
        busy_ = false;
        // Only now: a thread that waited for the end may submit again and must find the stream
        // free.
        entry.done->finish();
    }
}

void Stream::execute(Entry& entry) const {
    waitAll(entry.task.after);
    if (entry.task.work && (entry.task.always || !context_.failed())) entry.task.work();
    // What the work holds is let go before its end is told.
    entry.task = {};
}

}  // namespace juice::softgpu

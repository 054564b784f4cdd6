#include "native/worker/graph_runs.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>

namespace juice::worker {
namespace {

constexpr auto kShortest = std::chrono::microseconds(10), kLongest = std::chrono::microseconds(60);

}  // namespace

GraphRuns::~GraphRuns() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    started_.notify_all();
    if (watcher_.joinable()) watcher_.join();
}

std::shared_ptr<GraphRuns::Run> GraphRuns::start(Run run) {
    auto shared = std::make_shared<Run>(std::move(run));
    shared->sent.resize(shared->plan->writes.size());
    const std::lock_guard lock(mutex_);
    runs_.push_back(shared);
    if (!watcher_.joinable()) watcher_ = std::thread([this] { watch(); });
    started_.notify_one();
    return shared;
}

void GraphRuns::send(Run& run, uint32_t write) {
    if (run.sent[write] || write >= run.transfers.size() || run.transfers[write] == 0) return;
    run.sent[write] = true;
    const custom::HostSpan& span = run.plan->writes[write];
    auto mirror = mirrors_.holding(span.address, span.size);
    if (mirror == nullptr || span.size == 0) return;
    mirror->leaving.fetch_add(1);
    const uint64_t ordinal = link_.beginSend(run.transfers[write], span.size);
    link_.sendPiece(run.transfers[write], ordinal, 0, reinterpret_cast<const void*>(span.address),
                    span.size, [mirror] { mirror->leaving.fetch_sub(1); });
}

void GraphRuns::finish(const std::shared_ptr<Run>& run, CUresult result) {
    const std::lock_guard lock(mutex_);
    if (result == CUDA_SUCCESS)
        for (uint32_t i = 0; i < run->sent.size(); ++i) send(*run, i);
    std::erase(runs_, run);
    if (runs_.empty()) ended_.notify_all();
}

bool GraphRuns::release(uint64_t gate) {
    const std::lock_guard lock(mutex_);
    const auto found = stopped_.find(gate);
    if (found == stopped_.end()) return false;
    std::atomic_ref(*found->second).store(1, std::memory_order_release);
    stopped_.erase(found);
    return true;
}

void GraphRuns::drain() {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return runs_.empty(); });
}

void GraphRuns::watch() {
    auto pause = kShortest;
    std::unique_lock lock(mutex_);
    while (!stopping_) {
        if (runs_.empty()) {
            started_.wait(lock);
            continue;
        }
        std::vector<uint64_t> reached;
        std::set<const GraphExec*> seen;
        for (const auto& run : runs_) {
            // Launches of one executable graph come one after the other: the first is the one.
            if (!seen.insert(run->exec.get()).second) continue;
            for (const GraphStop& stop : run->plan->stops) {
                std::atomic_ref word(*stop.words.host);
                if (word.load(std::memory_order_acquire) == 0) continue;
                word.store(0, std::memory_order_relaxed);
                for (const uint32_t write : stop.writesBefore) send(*run, write);
                stopped_[stop.gate] = stop.words.host + 1;
                reached.push_back(stop.gate);
            }
        }
        if (!reached.empty()) {
            lock.unlock();
            coherence_.sendNow();
            for (const uint64_t gate : reached)
                link_.callback(gate, CUDA_SUCCESS,
                               static_cast<uint32_t>(custom::Called::graphFunction));
            lock.lock();
            pause = kShortest;
            continue;
        }
        pause = std::min(pause * 2, kLongest);
        started_.wait_for(lock, pause);
    }
}

}  // namespace juice::worker

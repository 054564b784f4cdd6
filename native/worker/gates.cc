#include "native/worker/gates.h"

#include <algorithm>
#include <atomic>

namespace juice::worker {

CUresult Gates::takeWord(CUcontext context, Word& out) {
    std::vector<Word>& spare = spare_[context];
    if (spare.empty()) {
        void* page = nullptr;
        CUresult result = driver_.cuMemHostAlloc(&page, kPage, CU_MEMHOSTALLOC_DEVICEMAP);
        if (result != CUDA_SUCCESS) return result;
        CUdeviceptr device = 0;
        result = driver_.cuMemHostGetDevicePointer_v2(&device, page, 0);
        if (result != CUDA_SUCCESS) {
            driver_.cuMemFreeHost(page);
            return result;
        }
        pages_.emplace(context, page);
        for (size_t at = 0; at < kPage; at += kApart) {
            auto* const host = reinterpret_cast<uint32_t*>(static_cast<char*>(page) + at);
            *host = 0;
            spare.push_back({context, host, device + at});
        }
    }
    out = spare.back();
    spare.pop_back();
    return CUDA_SUCCESS;
}

CUresult Gates::takePair(CUcontext context, Pair& out) {
    const std::lock_guard lock(mutex_);
    Word word{};
    if (const CUresult result = takeWord(context, word)) return result;
    word.host[0] = word.host[1] = 0;
    out = {++lastPair_, context, word.host, word.device};
    return CUDA_SUCCESS;
}

void Gates::givePair(const Pair& pair) {
    const std::lock_guard lock(mutex_);
    const auto spare = spare_.find(pair.context);
    if (spare == spare_.end()) return;
    *pair.host = 0;
    spare->second.push_back({pair.context, pair.host, pair.device});
}

CUresult Gates::open(uint64_t id, CUcontext context) {
    if (driver_.cuStreamWaitValue32_v2 == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    const std::lock_guard lock(mutex_);
    Word word{};
    const CUresult result = takeWord(context, word);
    if (result != CUDA_SUCCESS) return result;
    ++word.last;
    open_.emplace(id, word);
    return CUDA_SUCCESS;
}

CUresult Gates::stop(uint64_t id, CUstream stream) {
    const std::lock_guard lock(mutex_);
    const auto found = open_.find(id);
    if (found == open_.end()) return CUDA_SUCCESS;
    return driver_.cuStreamWaitValue32_v2(stream, found->second.device, found->second.last,
                                          CU_STREAM_WAIT_VALUE_GEQ);
}

void Gates::release(uint64_t id) {
    const std::lock_guard lock(mutex_);
    const auto found = open_.find(id);
    if (found == open_.end()) return;
    const Word word = found->second;
    open_.erase(found);
    std::atomic_ref(*word.host).store(word.last, std::memory_order_release);
    spare_[word.context].push_back(word);
    if (open_.empty()) closed_.notify_all();
}

bool Gates::isOpen(uint64_t id) {
    const std::lock_guard lock(mutex_);
    return open_.contains(id);
}

void Gates::drain() {
    std::unique_lock lock(mutex_);
    closed_.wait(lock, [this] { return open_.empty(); });
}

void Gates::forget(CUcontext context) {
    const std::lock_guard lock(mutex_);
    std::erase_if(open_, [context](const auto& one) { return one.second.context == context; });
    spare_.erase(context);
    const auto [begin, end] = pages_.equal_range(context);
    for (auto page = begin; page != end; ++page) driver_.cuMemFreeHost(page->second);
    pages_.erase(begin, end);
    if (open_.empty()) closed_.notify_all();
}

}  // namespace juice::worker

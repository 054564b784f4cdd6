// Memory pools: where stream-ordered allocations come from. A pool keeps nothing back: freed memory
// goes to the device at once, so what is reserved is what is used.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>

#include "native/abi/cuda_abi.h"

namespace juice::softgpu {

class Device;

class MemoryPool {
  public:
    explicit MemoryPool(Device& device) : device_(device) {}

    /// A device's own pool, which always is.
    static MemoryPool& defaultOf(Device& device);
    /// The pool that cuMemAllocAsync takes from: the default one unless another was set.
    static std::shared_ptr<MemoryPool> currentOf(Device& device);
    static void setCurrent(Device& device, std::shared_ptr<MemoryPool> pool);

    Device& device() const { return device_; }

    /// 1 for an unknown attribute.
    CUresult attribute(CUmemPool_attribute attribute, void* value) const;
    /// 1 for an unknown attribute or one that cannot be set.
    CUresult setAttribute(CUmemPool_attribute attribute, const void* value);

    void took(size_t bytes) {
        const std::lock_guard lock(mutex_);
        used_ += bytes;
        mostUsed_ = std::max(mostUsed_, used_);
    }
    void gave(size_t bytes) {
        const std::lock_guard lock(mutex_);
        used_ -= bytes;
    }

  private:
    Device& device_;
    mutable std::mutex mutex_;
    uint64_t used_ = 0, mostUsed_ = 0;
    uint64_t threshold_ = 0;
    int reuse_[3] = {1, 1, 1};  // the three REUSE attributes, 1 as a real pool has them
};

}  // namespace juice::softgpu

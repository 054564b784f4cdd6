// Memory pools: where stream-ordered allocations come from. A pool keeps nothing back: freed memory
// goes to the device at once, so what is reserved is what is used.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>

#include "native/abi/cuda_abi.h"
#include "native/softgpu/driver/memory.h"

namespace juice::softgpu {

class Device;

class MemoryPool {
  public:
    /// A pool that is exported has a file of its own.
    MemoryPool(Device& device, CUmemAllocationHandleType handleTypes, size_t maxSize);
    explicit MemoryPool(Device& device) : MemoryPool(device, CU_MEM_HANDLE_TYPE_NONE, 0) {}
    /// From a file descriptor that was exported. 1 for any other.
    static CUresult import(int file, std::shared_ptr<MemoryPool>& pool);

    /// A device's own pool, which always is.
    static MemoryPool& defaultOf(Device& device);
    /// The pool that cuMemAllocAsync takes from: the default one unless another was set.
    static std::shared_ptr<MemoryPool> currentOf(Device& device);
    static void setCurrent(Device& device, std::shared_ptr<MemoryPool> pool);

    Device& device() const { return device_; }
    /// Where its allocations must lie; null for one that is not exported.
    const std::shared_ptr<Backing>& backing() const { return backing_; }
    /// Of those with a backing; never reused in this process. 0 for the others.
    uint64_t arena() const { return arena_; }
    /// Another process's: nothing is allocated from it.
    bool imported() const { return imported_; }
    CUmemAllocationHandleType handleTypes() const { return handleTypes_; }
    /// A new descriptor for others to import; -1 when it is not to be exported.
    int exportFile() const;

    Rights rights() const;
    CUmemAccess_flags access(const Device& device) const;
    /// For all of its memory, also what is there already. 1 when its own device would lose it.
    CUresult setAccess(const Device& device, CUmemAccess_flags flags);

    /// 1 for an unknown attribute.
    CUresult attribute(CUmemPool_attribute attribute, void* value) const;
    /// 1 for an unknown attribute or one that cannot be set.
    CUresult setAttribute(CUmemPool_attribute attribute, const void* value);

    /// False when the pool would become too large.
    bool fits(size_t bytes) const;
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
    MemoryPool(Device& device, std::shared_ptr<Backing> backing,
               CUmemAllocationHandleType handleTypes, size_t maxSize, bool imported);

    Device& device_;
    const std::shared_ptr<Backing> backing_;
    const uint64_t arena_;
    const CUmemAllocationHandleType handleTypes_;
    const size_t maxSize_;  // 0: as large as the device
    const bool imported_;
    Rights rights_;
    mutable std::mutex mutex_;
    uint64_t used_ = 0, mostUsed_ = 0;
    uint64_t threshold_ = 0;
    int reuse_[3] = {1, 1, 1};  // the three REUSE attributes, 1 as a real pool has them
};

}  // namespace juice::softgpu

#include "native/softgpu/driver/pool.h"

#include <fcntl.h>

#include <atomic>
#include <cstring>
#include <map>
#include <new>
#include <optional>

#include "native/softgpu/driver/device.h"
#include "native/softgpu/driver/file_label.h"
#include "native/softgpu/driver/registry.h"

namespace juice::softgpu {
namespace {

struct DevicePools {
    std::mutex mutex;
    std::map<const Device*, std::shared_ptr<MemoryPool>> byDefault, current;

    std::shared_ptr<MemoryPool> defaultOf(Device& device) {
        auto& pool = byDefault[&device];
        if (!pool) {
            pool = std::make_shared<MemoryPool>(device);
            Registry<MemoryPool>::instance().add(pool);
        }
        return pool;
    }
};

uint64_t nextArena() {
    static std::atomic<uint64_t> next{1};
    return next++;
}

/// A file for a pool, whose first unit is for its label.
std::shared_ptr<Backing> labelled(const Device& device) {
    auto backing = std::make_shared<Backing>();
    const FileLabel label(FileLabel::Content::pool, 0,
                          {CU_MEM_LOCATION_TYPE_DEVICE, device.ordinal()},
                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    if (!backing->take(Backing::kUnit) || !label.write(backing->file())) throw std::bad_alloc();
    return backing;
}

DevicePools& pools() {
    static auto* const all = new DevicePools;
    return *all;
}

}  // namespace

MemoryPool::MemoryPool(Device& device, std::shared_ptr<Backing> backing,
                       CUmemAllocationHandleType handleTypes, size_t maxSize, bool imported)
    : device_(device),
      backing_(std::move(backing)),
      arena_(backing_ ? nextArena() : 0),
      handleTypes_(handleTypes),
      maxSize_(maxSize),
      imported_(imported) {
    rights_.set(device.ordinal(), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

MemoryPool::MemoryPool(Device& device, CUmemAllocationHandleType handleTypes, size_t maxSize)
    : MemoryPool(device, handleTypes == CU_MEM_HANDLE_TYPE_NONE ? nullptr : labelled(device),
                 handleTypes, maxSize, false) {}

CUresult MemoryPool::import(int file, std::shared_ptr<MemoryPool>& pool) {
    std::optional<FileLabel> label;
    const CUresult failed = FileLabel::read(file, FileLabel::Content::pool, label);
    if (failed != CUDA_SUCCESS) return failed;
    const int own = fcntl(file, F_DUPFD_CLOEXEC, 0);
    if (own < 0) return CUDA_ERROR_OUT_OF_MEMORY;
    pool.reset(new MemoryPool(*deviceAt(label->location.id), std::make_shared<Backing>(own),
                              CU_MEM_HANDLE_TYPE_NONE, 0, true));
    return CUDA_SUCCESS;
}

int MemoryPool::exportFile() const {
    const bool asked = (handleTypes_ & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0;
    return asked ? fcntl(backing_->file(), F_DUPFD_CLOEXEC, 0) : -1;
}

Rights MemoryPool::rights() const {
    const std::lock_guard lock(mutex_);
    return rights_;
}

CUmemAccess_flags MemoryPool::access(const Device& device) const {
    return rights().of(device.ordinal());
}

CUresult MemoryPool::setAccess(const Device& device, CUmemAccess_flags flags) {
    if (&device == &device_ && flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    {
        const std::lock_guard lock(mutex_);
        rights_.set(device.ordinal(), flags);
    }
    AddressSpace::instance().setPoolAccess(this, device.ordinal(), flags);
    return CUDA_SUCCESS;
}

bool MemoryPool::fits(size_t bytes) const {
    const std::lock_guard lock(mutex_);
    return maxSize_ == 0 || (used_ <= maxSize_ && bytes <= maxSize_ - used_);
}

MemoryPool& MemoryPool::defaultOf(Device& device) {
    const std::lock_guard lock(pools().mutex);
    return *pools().defaultOf(device);
}

std::shared_ptr<MemoryPool> MemoryPool::currentOf(Device& device) {
    const std::lock_guard lock(pools().mutex);
    auto& pool = pools().current[&device];
    if (!pool) pool = pools().defaultOf(device);
    return pool;
}

void MemoryPool::setCurrent(Device& device, std::shared_ptr<MemoryPool> pool) {
    const std::lock_guard lock(pools().mutex);
    pools().current[&device] = std::move(pool);
}

CUresult MemoryPool::attribute(CUmemPool_attribute attribute, void* value) const {
    const std::lock_guard lock(mutex_);
    const auto wide = [&](uint64_t number) {
        std::memcpy(value, &number, sizeof(number));
        return CUDA_SUCCESS;
    };
    switch (attribute) {
        case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
            std::memcpy(value, &reuse_[attribute - 1], sizeof(int));
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
            return wide(threshold_);
        case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
            return wide(used_);
        case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
            return wide(mostUsed_);
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult MemoryPool::setAttribute(CUmemPool_attribute attribute, const void* value) {
    const std::lock_guard lock(mutex_);
    uint64_t number = 0;
    switch (attribute) {
        case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
            std::memcpy(&reuse_[attribute - 1], value, sizeof(int));
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
            std::memcpy(&threshold_, value, sizeof(threshold_));
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
            // A high-water mark can only be reset.
            std::memcpy(&number, value, sizeof(number));
            if (number != 0) return CUDA_ERROR_INVALID_VALUE;
            mostUsed_ = used_;
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

}  // namespace juice::softgpu

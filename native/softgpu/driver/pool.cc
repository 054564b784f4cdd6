#include "native/softgpu/driver/pool.h"

#include <cstring>
#include <map>

#include "native/softgpu/driver/device.h"
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

DevicePools& pools() {
    static auto* const all = new DevicePools;
    return *all;
}

}  // namespace

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

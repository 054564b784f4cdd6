#include "native/softgpu/exec/device_heap.h"

#include <sys/mman.h>

namespace juice::softgpu {

DeviceHeap& DeviceHeap::shared() {
    static auto* heap = new DeviceHeap;
    return *heap;
}

DeviceHeap::DeviceHeap() {
    void* arena = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (arena == MAP_FAILED) return;
    begin_ = reinterpret_cast<uint64_t>(arena);
    size_ = kBytes;
    free_[begin_] = size_;
}

uint64_t DeviceHeap::allocate(uint64_t bytes) {
    if (bytes == 0 || bytes > kBytes) return 0;
    bytes = (bytes + 15) & ~15ull;
    std::lock_guard lock(mutex_);
    for (auto hole = free_.begin(); hole != free_.end(); ++hole) {
        auto [address, size] = *hole;
        if (size < bytes) continue;
        free_.erase(hole);
        if (size > bytes) free_[address + bytes] = size - bytes;
        used_[address] = bytes;
        return address;
    }
    return 0;
}

bool DeviceHeap::release(uint64_t address) {
    std::lock_guard lock(mutex_);
    auto block = used_.find(address);
    if (block == used_.end()) return false;
    uint64_t size = block->second;
    used_.erase(block);
    // Joined with the holes on either side.
    auto after = free_.lower_bound(address);
    if (after != free_.end() && after->first == address + size) {
        size += after->second;
        after = free_.erase(after);
    }
    if (after != free_.begin()) {
        auto before = std::prev(after);
        if (before->first + before->second == address) {
            before->second += size;
            return true;
        }
    }
    free_[address] = size;
    return true;
}

}  // namespace juice::softgpu

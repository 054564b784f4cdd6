#include "native/worker/memory.h"

#include <algorithm>

namespace juice::worker {

void Memory::account() {
    usage_.memoryNow.store(held_, std::memory_order_relaxed);
    if (held_ > usage_.memoryPeak.load(std::memory_order_relaxed))
        usage_.memoryPeak.store(held_, std::memory_order_relaxed);
}

void Memory::add(uint64_t address, uint64_t size, uint32_t context, Owner owner) {
    // A graph that is gone may have left its mark at the address.
    if (const auto old = blocks_.find(address); old != blocks_.end()) held_ -= old->second.size;
    blocks_[address] = {size, context, owner, false};
    held_ += size;
    account();
}

bool Memory::remove(uint64_t address) {
    const auto it = blocks_.find(address);
    if (it == blocks_.end()) return false;
    if (it->second.owner == Owner::graph) return it->second.freed = true;
    held_ -= it->second.size;
    blocks_.erase(it);
    account();
    return true;
}

void Memory::graphIsGone(uint64_t address) {
    const auto it = blocks_.find(address);
    if (it == blocks_.end()) return;
    it->second.owner = Owner::program;
    if (it->second.freed) remove(address);
}

void Memory::removeOf(uint32_t context) {
    for (auto it = blocks_.begin(); it != blocks_.end();) {
        if (it->second.context == context) {
            held_ -= it->second.size;
            it = blocks_.erase(it);
        } else {
            ++it;
        }
    }
    account();
}

bool Memory::accessible(uint64_t address, uint64_t size) const {
    const auto inside = [&](uint64_t begin, uint64_t length) {
        return address >= begin && address - begin <= length && size <= length - (address - begin);
    };
    const auto after = blocks_.upper_bound(address);
    if (after != blocks_.begin()) {
        const auto& [begin, block] = *std::prev(after);
        if (inside(begin, block.size)) return true;
    }
    CUdeviceptr begin = 0;
    size_t length = 0;
    CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                        CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    void* values[] = {&begin, &length};
    return driver_.cuPointerGetAttributes != nullptr &&
           driver_.cuPointerGetAttributes(2, attributes, values, address) == CUDA_SUCCESS &&
           length != 0 && inside(begin, length);
}

void Memory::limitInfo(uint64_t& free, uint64_t& total) const {
    if (limit_ == 0) return;
    total = std::min(total, limit_);
    free = std::min(free, limit_ - held_);
}

}  // namespace juice::worker

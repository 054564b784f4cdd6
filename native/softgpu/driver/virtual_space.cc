#include "native/softgpu/driver/virtual_space.h"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "native/softgpu/driver/device.h"
#include "native/softgpu/driver/memory.h"

namespace juice::softgpu {
namespace {

constexpr uint64_t kUnit = Backing::kUnit;

bool isUnits(uint64_t value) {
    return value % kUnit == 0;
}

bool overflows(uint64_t address, size_t size) {
    return size > UINT64_MAX - address;
}

/// Holds the addresses. A kernel that still runs on memory that was unmapped must not bring the
/// process down: it reads zeros here until it is stopped by the map of what it may access.
void* hold(uint64_t address, size_t size, int flags) {
    return mmap(reinterpret_cast<void*>(address), size, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
}

/// Room for `size` bytes, aligned; 0 when there is none.
uint64_t holdAligned(size_t size, size_t alignment) {
    if (overflows(size, alignment)) return 0;
    void* const mapped = hold(0, size + alignment, 0);
    if (mapped == MAP_FAILED) return 0;
    const auto start = reinterpret_cast<uint64_t>(mapped);
    const uint64_t aligned = (start + alignment - 1) / alignment * alignment;
    if (aligned > start) munmap(mapped, aligned - start);
    const uint64_t end = aligned + size;
    if (start + size + alignment > end) {
        munmap(reinterpret_cast<void*>(end), start + size + alignment - end);
    }
    return aligned;
}

}  // namespace

VirtualSpace& VirtualSpace::instance() {
    static auto* const space = new VirtualSpace;
    return *space;
}

CUresult VirtualSpace::reserve(size_t size, size_t alignment, uint64_t hint, uint64_t& address) {
    if (alignment == 0) alignment = kUnit;
    if (size == 0 || !isUnits(size) || (alignment & (alignment - 1)) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    alignment = std::max<size_t>(alignment, kUnit);
    uint64_t base = 0;
    if (hint != 0 && hint % alignment == 0 && !overflows(hint, size)) {
        void* const there = hold(hint, size, MAP_FIXED_NOREPLACE);
        if (there != MAP_FAILED) {
            base = reinterpret_cast<uint64_t>(there);
            // Kernels from before Linux 4.17 take it for a mere wish.
            if (base != hint) munmap(there, size);
            if (base != hint) base = 0;
        }
    }
    if (base == 0) base = holdAligned(size, alignment);
    if (base == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    const std::lock_guard lock(mutex_);
    reservations_[base] = size;
    address = base;
    return CUDA_SUCCESS;
}

VirtualSpace::Mappings::const_iterator VirtualSpace::holding(uint64_t address) const {
    auto at = mappings_.upper_bound(address);
    if (at == mappings_.begin()) return mappings_.end();
    --at;
    return address - at->first < at->second.size ? at : mappings_.end();
}

bool VirtualSpace::overlaps(uint64_t address, size_t size) const {
    const auto next = mappings_.lower_bound(address);
    return (next != mappings_.end() && next->first < address + size) ||
           holding(address) != mappings_.end();
}

bool VirtualSpace::whole(uint64_t address, size_t size) const {
    if (size == 0 || overflows(address, size)) return false;
    for (uint64_t at = address; at < address + size;) {
        const auto found = mappings_.find(at);
        if (found == mappings_.end() || found->second.size > address + size - at) return false;
        at += found->second.size;
    }
    return true;
}

CUresult VirtualSpace::free(uint64_t address, size_t size) {
    const std::lock_guard lock(mutex_);
    const auto found = reservations_.find(address);
    if (found == reservations_.end() || found->second != size || overlaps(address, size)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    reservations_.erase(found);
    munmap(reinterpret_cast<void*>(address), size);
    return CUDA_SUCCESS;
}

CUresult VirtualSpace::map(uint64_t address, size_t size, std::shared_ptr<Physical> physical) {
    if (size == 0 || !isUnits(size) || !isUnits(address) || overflows(address, size)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (size > physical->size()) return CUDA_ERROR_NOT_SUPPORTED;  // so an H200 says
    const std::lock_guard lock(mutex_);
    auto reserved = reservations_.upper_bound(address);
    if (reserved == reservations_.begin()) return CUDA_ERROR_INVALID_VALUE;
    --reserved;
    if (address + size > reserved->first + reserved->second || overlaps(address, size)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!physical->mapAt(address, size)) return CUDA_ERROR_OUT_OF_MEMORY;
    AddressSpace::instance().enterMapping(address, size, physical->ordinal());
    mappings_[address] = {size, std::move(physical)};
    return CUDA_SUCCESS;
}

CUresult VirtualSpace::unmap(uint64_t address, size_t size) {
    const std::lock_guard lock(mutex_);
    if (!whole(address, size)) return CUDA_ERROR_INVALID_VALUE;
    for (uint64_t at = address; at < address + size;) {
        const auto found = mappings_.find(at);
        AddressSpace::instance().release(at, {MemoryKind::mapped});
        at += found->second.size;
        hold(found->first, found->second.size, MAP_FIXED);
        mappings_.erase(found);
    }
    return CUDA_SUCCESS;
}

CUresult VirtualSpace::setAccess(uint64_t address, size_t size, const Device* device,
                                 CUmemAccess_flags flags) {
    const std::lock_guard lock(mutex_);
    if (!whole(address, size)) return CUDA_ERROR_INVALID_VALUE;
    if (device == nullptr) return CUDA_SUCCESS;
    for (uint64_t at = address; at < address + size; at += mappings_.at(at).size) {
        AddressSpace::instance().setAccess(at, device->ordinal(), flags);
    }
    return CUDA_SUCCESS;
}

CUresult VirtualSpace::access(uint64_t address, const Device* device,
                              CUmemAccess_flags& flags) const {
    const auto found = AddressSpace::instance().find(address);
    if (!found || found->kind != MemoryKind::mapped) return CUDA_ERROR_INVALID_VALUE;
    flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    if (device == nullptr) return CUDA_SUCCESS;
    flags = found->rights.of(device->ordinal());
    return CUDA_SUCCESS;
}

std::shared_ptr<Physical> VirtualSpace::at(uint64_t address) const {
    const std::lock_guard lock(mutex_);
    const auto found = holding(address);
    return found == mappings_.end() ? nullptr : found->second.physical;
}

}  // namespace juice::softgpu

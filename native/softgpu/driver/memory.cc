#include "native/softgpu/driver/memory.h"

#include <algorithm>
#include <utility>

#include "native/softgpu/driver/context.h"
#include "native/softgpu/driver/device.h"
#include "native/softgpu/driver/pool.h"
#include "native/softgpu/driver/registry.h"

namespace juice::softgpu {
namespace {

constexpr uint64_t kPage = 4096;
/// So many freed allocations are remembered for reports.
constexpr size_t kFreed = 1024;

}  // namespace

AddressSpace& AddressSpace::instance() {
    static auto* const space = new AddressSpace;
    return *space;
}

Heap& AddressSpace::heapFor(Context& context, MemoryKind kind) {
    auto& heap = heaps_[{&context, kind}];
    if (!heap) {
        Device& device = context.device();
        const bool charged = kind == MemoryKind::device || kind == MemoryKind::managed;
        heap = std::make_unique<Heap>(
            [&device, charged](size_t bytes) { return !charged || device.charge(bytes); },
            [&device, charged](size_t bytes) {
                if (charged) device.refund(bytes);
            });
    }
    return *heap;
}

AddressSpace::Allocations::const_iterator AddressSpace::holding(uint64_t address) const {
    auto at = allocations_.upper_bound(address);
    if (at == allocations_.begin()) return allocations_.end();
    --at;
    return address < at->second.end() ? at : allocations_.end();
}

void AddressSpace::insert(Context& context, Allocation allocation) {
    allocation.context = &context;
    allocation.device = context.device().ordinal();
    allocation.bufferId = nextBufferId_++;
    allocation.syncMemops = !isHostKind(allocation.kind);
    allocations_[allocation.address] = allocation;
    touch();
}

CUresult AddressSpace::allocate(Context& context, size_t size, MemoryKind kind, unsigned flags,
                                uint64_t& address, void* pool) {
    if (size == 0) return CUDA_ERROR_INVALID_VALUE;
    const std::unique_lock lock(mutex_);
    const auto piece = heapFor(context, kind).allocate(size);
    if (!piece) return CUDA_ERROR_OUT_OF_MEMORY;
    Allocation made;
    made.address = address = piece->address;
    made.size = size;
    made.kind = kind;
    made.flags = flags;
    made.piece = *piece;
    made.pool = pool;
    insert(context, made);
    if (const auto from = softgpu::find<MemoryPool>(pool)) from->took(size);
    return CUDA_SUCCESS;
}

bool AddressSpace::enter(Context& context, uint64_t address, size_t size, MemoryKind kind,
                         unsigned flags) {
    const std::unique_lock lock(mutex_);
    const auto next = allocations_.lower_bound(address);
    if (next != allocations_.end() && next->first < address + size) return false;
    if (holding(address) != allocations_.end()) return false;
    Allocation made;
    made.address = address;
    made.size = size;
    made.kind = kind;
    made.flags = flags;
    // Memory from elsewhere is mapped by its pages.
    const uint64_t start = address / kPage * kPage;
    made.piece = {address, start, (address + size + kPage - 1) / kPage * kPage - start, 0};
    insert(context, made);
    return true;
}

void AddressSpace::returnMemory(const Allocation& allocation) {
    if (const auto pool = softgpu::find<MemoryPool>(allocation.pool)) pool->gave(allocation.size);
    if (allocation.kind == MemoryKind::registered || allocation.kind == MemoryKind::global) return;
    const auto heap = heaps_.find({allocation.context, allocation.kind});
    if (heap != heaps_.end()) heap->second->release(allocation.address, allocation.size);
}

bool AddressSpace::release(uint64_t address, std::initializer_list<MemoryKind> kinds) {
    const std::unique_lock lock(mutex_);
    const auto found = allocations_.find(address);
    if (found == allocations_.end()) return false;
    if (std::find(kinds.begin(), kinds.end(), found->second.kind) == kinds.end()) return false;
    const Allocation gone = found->second;
    allocations_.erase(found);
    touch();
    remember(gone);
    returnMemory(gone);
    return true;
}

void AddressSpace::releaseAll(const Context& context) {
    const std::unique_lock lock(mutex_);
    for (auto at = allocations_.begin(); at != allocations_.end();) {
        const Allocation& allocation = at->second;
        if (allocation.context != &context) {
            ++at;
            continue;
        }
        if (const auto pool = softgpu::find<MemoryPool>(allocation.pool))
            pool->gave(allocation.size);
        at = allocations_.erase(at);
    }
    touch();
    std::erase_if(heaps_, [&](const auto& entry) { return entry.first.first == &context; });
}

std::optional<Allocation> AddressSpace::find(uint64_t address) const {
    const std::shared_lock lock(mutex_);
    const auto found = holding(address);
    return found == allocations_.end() ? std::nullopt : std::optional(found->second);
}

void AddressSpace::remember(const Allocation& gone) {
    freed_.emplace_front(gone.address, gone.end());
    if (freed_.size() > kFreed) freed_.pop_back();
}

NearbyMemory AddressSpace::nearest(uint64_t address) const {
    using State = NearbyMemory::State;
    const std::shared_lock lock(mutex_);
    const auto after = allocations_.upper_bound(address);
    NearbyMemory near;
    if (after != allocations_.begin()) {
        const Allocation& before = std::prev(after)->second;
        near = {State::live, before.address, before.end()};
        if (address < before.end()) return near;
    }
    for (const auto& [begin, end] : freed_) {
        if (address >= begin && address < end) return {State::freed, begin, end};
    }
    if (after != allocations_.end() &&
        (near.state == State::none || after->first - address < address - near.end)) {
        near = {State::live, after->first, after->second.end()};
    }
    return near;
}

bool AddressSpace::startFree(uint64_t address) {
    const std::unique_lock lock(mutex_);
    const auto found = allocations_.find(address);
    if (found == allocations_.end() || found->second.kind != MemoryKind::device) return false;
    Allocation& allocation = found->second;
    if (std::exchange(allocation.leaving, true)) return false;
    if (const auto pool = softgpu::find<MemoryPool>(allocation.pool)) pool->gave(allocation.size);
    allocation.pool = nullptr;
    return true;
}

bool AddressSpace::setSyncMemops(uint64_t address, bool on) {
    const std::unique_lock lock(mutex_);
    const auto found = holding(address);
    if (found == allocations_.end()) return false;
    allocations_.at(found->first).syncMemops = on;
    return true;
}

}  // namespace juice::softgpu

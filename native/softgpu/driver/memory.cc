#include "native/softgpu/driver/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "native/softgpu/driver/advice.h"
#include "native/softgpu/driver/context.h"
#include "native/softgpu/driver/device.h"
#include "native/softgpu/driver/pool.h"
#include "native/softgpu/driver/registry.h"

namespace juice::softgpu {
namespace {

constexpr uint64_t kPage = 4096;
/// So many freed allocations are remembered for reports.
constexpr size_t kFreed = 1024;

/// The device of this process that has the UUID; null when it sees none.
Device* deviceOf(const Uuid& uuid) {
    for (Device* const device : devices()) {
        if (device->uuid() == uuid) return device;
    }
    return nullptr;
}

}  // namespace

AddressSpace& AddressSpace::instance() {
    static auto* const space = new AddressSpace;
    return *space;
}

const std::shared_ptr<Heap>& AddressSpace::heapFor(Context& context, MemoryKind kind,
                                                   const MemoryPool* pool) {
    const uint64_t arena = pool == nullptr ? 0 : pool->arena();
    auto& heap = heaps_[{&context, kind, arena}];
    if (!heap) {
        Device& device = context.device();
        const bool charged = kind == MemoryKind::device || kind == MemoryKind::managed;
        // Device memory may be exported at any time later.
        auto backing =
            kind == MemoryKind::device ? std::make_shared<Backing>() : std::shared_ptr<Backing>();
        if (arena != 0) backing = pool->backing();
        if (backing && backing->file() < 0) backing.reset();
        heap = std::make_shared<Heap>(
            [&device, charged](size_t bytes) { return !charged || device.charge(bytes); },
            [&device, charged](size_t bytes) {
                if (charged) device.refund(bytes);
            },
            std::move(backing), kind == MemoryKind::managed ? kPage : Heap::kAlignment);
    }
    return heap;
}

AddressSpace::Allocations::const_iterator AddressSpace::holding(uint64_t address) const {
    auto at = allocations_.upper_bound(address);
    if (at == allocations_.begin()) return allocations_.end();
    --at;
    return address < at->second.end() ? at : allocations_.end();
}

void AddressSpace::enterMapping(uint64_t address, size_t size, int device) {
    const std::unique_lock lock(mutex_);
    Allocation made;
    made.address = address;
    made.size = size;
    made.kind = MemoryKind::mapped;
    made.device = device;
    made.bufferId = nextBufferId_++;
    made.piece = {address, address, size, 0, 0};
    allocations_[address] = made;
    touch();
}

void AddressSpace::setAccess(uint64_t address, int device, CUmemAccess_flags flags) {
    const std::unique_lock lock(mutex_);
    allocations_.at(address).rights.set(device, flags);
    touch();
}

void AddressSpace::setPoolAccess(const void* pool, int device, CUmemAccess_flags flags) {
    const std::unique_lock lock(mutex_);
    for (auto& [address, allocation] : allocations_) {
        if (allocation.pool == pool) allocation.rights.set(device, flags);
    }
    touch();
}

void AddressSpace::forgetPool(const void* pool) {
    const std::unique_lock lock(mutex_);
    for (auto& [address, allocation] : allocations_) {
        if (allocation.pool == pool) allocation.pool = nullptr;
    }
}

CUresult AddressSpace::importPooled(Context& context, MemoryPool& pool, uint64_t offset,
                                    size_t size, uint64_t& address) {
    const uint64_t start = offset / kPage * kPage;
    const size_t bytes = offset + size - start;
    void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                              pool.backing()->file(), static_cast<off_t>(start));
    if (mapped == MAP_FAILED) return CUDA_ERROR_MAP_FAILED;
    const auto base = reinterpret_cast<uint64_t>(mapped);
    const std::unique_lock lock(mutex_);
    Allocation made;
    made.address = address = base + offset - start;
    made.size = size;
    made.kind = MemoryKind::poolImport;
    made.piece = {address, base, bytes, 0, 0};
    made.pool = &pool;
    made.pooled = true;
    made.rights = pool.rights();
    insert(context, made);
    allocations_.at(address).device = pool.device().ordinal();
    pool.took(size);
    return CUDA_SUCCESS;
}

size_t AddressSpace::bytesFrom(uint64_t address) const {
    const std::shared_lock lock(mutex_);
    auto at = holding(address);
    if (at == allocations_.end()) return 0;
    uint64_t end = at->second.end();
    if (at->second.kind != MemoryKind::mapped) return end - address;
    const auto usable = [&] {
        return at != allocations_.end() && at->second.kind == MemoryKind::mapped &&
               at->second.rights.readable != 0;
    };
    if (!usable()) return 0;
    for (++at; usable() && at->first == end; ++at) end = at->second.end();
    return end - address;
}

std::pair<uint64_t, uint64_t> AddressSpace::mappedRange(uint64_t address, int device) const {
    const std::shared_lock lock(mutex_);
    const auto found = holding(address);
    if (found == allocations_.end() || found->second.kind != MemoryKind::mapped) return {0, 0};
    const CUmemAccess_flags flags = found->second.rights.of(device);
    if (flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) return {0, 0};
    const auto alike = [&](const Allocation& other) {
        return other.kind == MemoryKind::mapped && other.rights.of(device) == flags;
    };
    uint64_t begin = found->first, end = found->second.end();
    for (auto at = found; at != allocations_.begin();) {
        --at;
        if (at->second.end() != begin || !alike(at->second)) break;
        begin = at->first;
    }
    for (auto at = std::next(found); at != allocations_.end() && at->first == end; ++at) {
        if (!alike(at->second)) break;
        end = at->second.end();
    }
    return {begin, end};
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
    const auto from = softgpu::find<MemoryPool>(pool);
    if (from && from->imported()) return CUDA_ERROR_INVALID_VALUE;
    const std::unique_lock lock(mutex_);
    if (from && !from->fits(size)) return CUDA_ERROR_OUT_OF_MEMORY;
    const auto piece = heapFor(context, kind, from.get())->allocate(size);
    if (!piece) return CUDA_ERROR_OUT_OF_MEMORY;
    Allocation made;
    made.address = address = piece->address;
    made.size = size;
    made.kind = kind;
    made.flags = flags;
    made.piece = *piece;
    made.pool = pool;
    if (from) {
        made.pooled = true;
        made.arena = from->arena();
        made.rights = from->rights();
    }
    insert(context, made);
    if (from) from->took(size);
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

/// What is to be told elsewhere of an allocation that is no more.
void AddressSpace::forget(const Allocation& allocation) {
    if (const auto pool = softgpu::find<MemoryPool>(allocation.pool)) pool->gave(allocation.size);
    if (isManagedKind(allocation.kind)) {
        AdviceMap::instance().forget(allocation.address, allocation.end());
    }
}

void AddressSpace::returnMemory(const Allocation& allocation) {
    forget(allocation);
    if (allocation.kind == MemoryKind::poolImport) {
        munmap(reinterpret_cast<void*>(allocation.piece.block), allocation.piece.blockSize);
        return;
    }
    const auto found = heaps_.find({allocation.context, allocation.kind, allocation.arena});
    if (found == heaps_.end()) return;
    const auto& heap = found->second;
    if (const auto ticket = tickets_.extract(allocation.address)) {
        // What another process still has open is not used for anything else.
        const auto later = [this, weak = std::weak_ptr(heap), address = allocation.address,
                            size = allocation.size] {
            const std::unique_lock lock(mutex_);
            if (const auto alive = weak.lock()) alive->release(address, size);
        };
        if (!Door::instance().close(ticket.mapped().id, later)) return;
    }
    heap->release(allocation.address, allocation.size);
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
        // Managed variables go with their image.
        if (allocation.context != &context || allocation.kind == MemoryKind::managedGlobal) {
            ++at;
            continue;
        }
        forget(allocation);
        if (const auto ticket = tickets_.extract(allocation.address)) {
            Door::instance().close(ticket.mapped().id, {});
        }
        if (allocation.kind == MemoryKind::imported) unmapImport(allocation.address);
        if (allocation.kind == MemoryKind::poolImport) returnMemory(allocation);
        at = allocations_.erase(at);
    }
    touch();
    std::erase_if(heaps_, [&](const auto& entry) { return std::get<0>(entry.first) == &context; });
}

CUresult AddressSpace::exportMemory(uint64_t address, Ticket& ticket) {
    const std::unique_lock lock(mutex_);
    const auto found = holding(address);
    if (found == allocations_.end() || found->second.kind != MemoryKind::device ||
        found->second.pool != nullptr || found->second.leaving) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const Allocation& memory = found->second;
    auto made = tickets_.find(memory.address);
    if (made == tickets_.end()) {
        const auto& backing = heaps_.at({memory.context, memory.kind, 0})->backing();
        if (!backing) return CUDA_ERROR_NOT_SUPPORTED;
        const Exported exported{backing->file(), memory.piece.offset, memory.size,
                                memory.context->device().uuid()};
        const auto fresh = Door::instance().open(ExportKind::memory, exported, backing);
        if (!fresh) return CUDA_ERROR_NOT_SUPPORTED;
        made = tickets_.emplace(memory.address, *fresh).first;
    }
    ticket = made->second;
    return CUDA_SUCCESS;
}

bool AddressSpace::openAgain(const Context& context, const Ticket& ticket, uint64_t& address) {
    for (auto& [known, import] : imports_) {
        if (import.ticket.door != ticket.door || import.ticket.id != ticket.id ||
            allocations_.at(known).context != &context) {
            continue;
        }
        ++import.openings;
        address = known;
        return true;
    }
    return false;
}

CUresult AddressSpace::importMemory(Context& context, const Ticket& ticket, uint64_t& address) {
    // The exporter is asked without the lock: it may be asking us.
    Import import;
    import.ticket = ticket;
    if (const CUresult failed = Loan::take(ticket, ExportKind::memory, import.loan)) return failed;
    const std::unique_lock lock(mutex_);
    if (openAgain(context, ticket, address)) return CUDA_SUCCESS;
    const Exported& exported = import.loan->exported();
    Device* const device = deviceOf(exported.device);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    const uint64_t offset = exported.offset / kPage * kPage;
    import.size = exported.offset + exported.size - offset;
    void* const mapped = mmap(nullptr, import.size, PROT_READ | PROT_WRITE, MAP_SHARED,
                              exported.file, static_cast<off_t>(offset));
    if (mapped == MAP_FAILED) return CUDA_ERROR_MAP_FAILED;
    import.base = reinterpret_cast<uint64_t>(mapped);
    address = import.base + exported.offset - offset;
    if (device != &context.device()) context.enablePeer(*device);
    Allocation made;
    made.address = address;
    made.size = exported.size;
    made.kind = MemoryKind::imported;
    made.piece = {address, import.base, import.size, 0, 0};
    insert(context, made);
    allocations_.at(address).device = device->ordinal();
    imports_.emplace(address, std::move(import));
    return CUDA_SUCCESS;
}

void AddressSpace::unmapImport(uint64_t address) {
    const auto import = imports_.extract(address);
    munmap(reinterpret_cast<void*>(import.mapped().base), import.mapped().size);
}

bool AddressSpace::closeImport(uint64_t address) {
    const std::unique_lock lock(mutex_);
    const auto found = imports_.find(address);
    if (found == imports_.end()) return false;
    if (--found->second.openings > 0) return true;
    allocations_.erase(address);
    touch();
    unmapImport(address);
    return true;
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
    if (found == allocations_.end()) return false;
    const MemoryKind kind = found->second.kind;
    if (kind != MemoryKind::device && kind != MemoryKind::poolImport) return false;
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

// All memory that the driver knows, of every context: what was allocated, registered, or belongs to
// a module. Device pointers are addresses of this process.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <utility>

#include "native/abi/cuda_abi.h"
#include "native/softgpu/driver/door.h"
#include "native/softgpu/driver/heap.h"
#include "native/softgpu/engine.h"

namespace juice::softgpu {

class Context;

enum class MemoryKind : uint8_t {
    device,         // cuMemAlloc and its kin
    managed,        // cuMemAllocManaged
    host,           // cuMemHostAlloc and cuMemAllocHost
    registered,     // the program's own memory, cuMemHostRegister
    global,         // a module's variable
    managedGlobal,  // a `__managed__` variable
    imported,       // what another process exported
};

inline bool isManagedKind(MemoryKind kind) {
    return kind == MemoryKind::managed || kind == MemoryKind::managedGlobal;
}

/// Host memory is the program's to read at any time; the rest is the device's.
inline bool isHostKind(MemoryKind kind) {
    return kind == MemoryKind::host || kind == MemoryKind::registered;
}

struct Allocation {
    uint64_t address = 0;
    size_t size = 0;
    MemoryKind kind = MemoryKind::device;
    Context* context = nullptr;
    int device = 0;
    unsigned flags = 0;     // of cuMemHostAlloc, cuMemHostRegister or cuMemAllocManaged
    uint64_t bufferId = 0;  // never reused in this process
    Piece piece;            // where it lies; of memory from elsewhere, itself
    bool syncMemops = true;
    void* pool = nullptr;  // the memory pool that it came from, if any
    bool leaving = false;  // a stream will free it

    uint64_t end() const { return address + size; }
};

class AddressSpace {
  public:
    static AddressSpace& instance();

    /// Allocates for the context. Results: 1 for no bytes, 2 when it does not fit.
    CUresult allocate(Context& context, size_t size, MemoryKind kind, unsigned flags,
                      uint64_t& address, void* pool = nullptr);
    /// Enters memory that exists already. False when it overlaps with something known.
    bool enter(Context& context, uint64_t address, size_t size, MemoryKind kind, unsigned flags);
    /// Forgets the allocation that starts at the address and returns its memory, if it is ours.
    /// False when there is none of one of the `kinds`.
    bool release(uint64_t address, std::initializer_list<MemoryKind> kinds);
    /// The same for everything of a context.
    void releaseAll(const Context& context);

    /// The allocation that holds the address.
    std::optional<Allocation> find(uint64_t address) const;
    /// For reports: the live allocation that is nearest to the address, or, when the address lies
    /// in none, one that held it and was freed not long ago.
    NearbyMemory nearest(uint64_t address) const;
    /// For memory that will be freed in a stream's order: from now on it counts as free in its pool
    /// and cannot be freed again. False when no device memory starts there or its time has come.
    bool startFree(uint64_t address);
    /// Changes an allocation in place. False when none holds the address.
    bool setSyncMemops(uint64_t address, bool on);

    /// The ticket by which other processes open the device memory at the address; always the same.
    /// 1 for memory of another kind, 801 where the system lacks what it takes.
    CUresult exportMemory(uint64_t address, Ticket& ticket);
    /// Maps what the ticket stands for; opened again in the same context it is the same address.
    CUresult importMemory(Context& context, const Ticket& ticket, uint64_t& address);
    /// One opening less; the last one unmaps. False when nothing imported starts there.
    bool closeImport(uint64_t address);

    uint64_t generation() const { return generation_.load(std::memory_order_acquire); }
    /// For changes of what a context may see, as when peer access is enabled.
    void touch() { generation_.fetch_add(1, std::memory_order_acq_rel); }

  private:
    /// Memory of another process, mapped.
    struct Import {
        std::unique_ptr<Loan> loan;
        Ticket ticket;
        unsigned openings = 1;
        uint64_t base = 0;  // of the mapping
        size_t size = 0;
    };
    using HeapKey = std::pair<const Context*, MemoryKind>;
    using Allocations = std::map<uint64_t, Allocation>;

    const std::shared_ptr<Heap>& heapFor(Context& context, MemoryKind kind);
    Allocations::const_iterator holding(uint64_t address) const;
    void returnMemory(const Allocation& allocation);
    void forget(const Allocation& allocation);
    bool openAgain(const Context& context, const Ticket& ticket, uint64_t& address);
    void unmapImport(uint64_t address);
    void insert(Context& context, Allocation allocation);
    void remember(const Allocation& gone);

    mutable std::shared_mutex mutex_;
    Allocations allocations_;
    std::map<HeapKey, std::shared_ptr<Heap>> heaps_;
    std::map<uint64_t, Ticket> tickets_;  // of what was exported, by address
    std::map<uint64_t, Import> imports_;
    std::atomic<uint64_t> generation_{1};
    uint64_t nextBufferId_ = 1;
    std::deque<std::pair<uint64_t, uint64_t>> freed_;  // the latest, begin and end
};

}  // namespace juice::softgpu

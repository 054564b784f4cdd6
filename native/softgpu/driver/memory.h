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
#include <tuple>
#include <utility>

#include "native/abi/cuda_abi.h"
#include "native/softgpu/driver/door.h"
#include "native/softgpu/driver/heap.h"
#include "native/softgpu/engine.h"

namespace juice::softgpu {

class Context;
class MemoryPool;

enum class MemoryKind : uint8_t {
    device,         // cuMemAlloc and its kin
    managed,        // cuMemAllocManaged
    host,           // cuMemHostAlloc and cuMemAllocHost
    registered,     // the program's own memory, cuMemHostRegister
    global,         // a module's variable
    managedGlobal,  // a `__managed__` variable
    imported,       // what another process exported
    poolImport,     // of another process's pool
    mapped,         // physical memory in a reserved range; of no context
};

inline bool isManagedKind(MemoryKind kind) {
    return kind == MemoryKind::managed || kind == MemoryKind::managedGlobal;
}

/// Host memory is the program's to read at any time; the rest is the device's.
inline bool isHostKind(MemoryKind kind) {
    return kind == MemoryKind::host || kind == MemoryKind::registered;
}

/// Which devices may read and write physical memory where it is mapped.
struct Rights {
    uint64_t readable = 0, writable = 0;  // a bit for each device

    CUmemAccess_flags of(int device) const {
        const uint64_t bit = uint64_t{1} << device;
        if ((writable & bit) != 0) return CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        return (readable & bit) != 0 ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                     : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    }
    void set(int device, CUmemAccess_flags flags) {
        const uint64_t bit = uint64_t{1} << device;
        readable = (readable & ~bit) | (flags != CU_MEM_ACCESS_FLAGS_PROT_NONE ? bit : 0);
        writable = (writable & ~bit) | (flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? bit : 0);
    }
};

struct Allocation {
    uint64_t address = 0;
    size_t size = 0;
    MemoryKind kind = MemoryKind::device;
    Context* context = nullptr;  // null for mapped memory
    int device = 0;              // -1 for mapped memory of the host
    unsigned flags = 0;          // of cuMemHostAlloc, cuMemHostRegister or cuMemAllocManaged
    uint64_t bufferId = 0;       // never reused in this process
    Piece piece;                 // where it lies; of memory from elsewhere, itself
    bool syncMemops = true;
    Rights rights;         // of mapped memory, and of a pool's
    void* pool = nullptr;  // the memory pool that it came from, if any
    bool pooled = false;   // from a pool, though that may be no more
    uint64_t arena = 0;    // of a pool that is exported
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
    /// Enters physical memory that was mapped in a free range; no device may access it yet.
    void enterMapping(uint64_t address, size_t size, int device);
    /// Changes what a device may do with the mapping that starts there.
    void setAccess(uint64_t address, int device, CUmemAccess_flags flags);
    /// The same for all that came from a pool.
    void setPoolAccess(const void* pool, int device, CUmemAccess_flags flags);
    /// For a pool that is no more: what came from it is its device's alone.
    void forgetPool(const void* pool);
    /// Maps what another process's pool has in that range of its file.
    CUresult importPooled(Context& context, MemoryPool& pool, uint64_t offset, size_t size,
                          uint64_t& address);
    /// How far memory that some device may access goes on from an address: over the borders of
    /// mappings side by side.
    size_t bytesFrom(uint64_t address) const;
    /// All of the neighbouring mappings with which the device may do the same as with the one at
    /// the address: begin and end. Empty when it may do nothing.
    std::pair<uint64_t, uint64_t> mappedRange(uint64_t address, int device) const;
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
    using HeapKey = std::tuple<const Context*, MemoryKind, uint64_t>;  // with the arena
    using Allocations = std::map<uint64_t, Allocation>;

    const std::shared_ptr<Heap>& heapFor(Context& context, MemoryKind kind, const MemoryPool* pool);
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

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
#include "native/softgpu/driver/heap.h"
#include "native/softgpu/engine.h"

namespace juice::softgpu {

class Context;

enum class MemoryKind : uint8_t {
    device,      // cuMemAlloc and its kin
    managed,     // cuMemAllocManaged
    host,        // cuMemHostAlloc and cuMemAllocHost
    registered,  // the program's own memory, cuMemHostRegister
    global,      // a module's variable
};

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

    uint64_t generation() const { return generation_.load(std::memory_order_acquire); }
    /// For changes of what a context may see, as when peer access is enabled.
    void touch() { generation_.fetch_add(1, std::memory_order_acq_rel); }

  private:
    using HeapKey = std::pair<const Context*, MemoryKind>;
    using Allocations = std::map<uint64_t, Allocation>;

    Heap& heapFor(Context& context, MemoryKind kind);
    Allocations::const_iterator holding(uint64_t address) const;
    void returnMemory(const Allocation& allocation);
    void insert(Context& context, Allocation allocation);
    void remember(const Allocation& gone);

    mutable std::shared_mutex mutex_;
    Allocations allocations_;
    std::map<HeapKey, std::unique_ptr<Heap>> heaps_;
    std::atomic<uint64_t> generation_{1};
    uint64_t nextBufferId_ = 1;
    std::deque<std::pair<uint64_t, uint64_t>> freed_;  // the latest, begin and end
};

}  // namespace juice::softgpu

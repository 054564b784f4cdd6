// Pinned host memory of the client, mirrored here at the same address. Copies run against the
// mirror in stream order; the client's bytes are pushed into it, and what the GPU writes is sent
// back.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <shared_mutex>
#include <vector>

#include "native/gen/driver_table.h"
#include "native/link/codec.h"

namespace juice::worker {

struct Mirror {
    uint64_t begin = 0;
    uint64_t size = 0;
    uint32_t context = 0;  // it dies with this context
    enum class Kind : uint8_t {
        pinned,      // cuMemHostAlloc
        registered,  // cuMemHostRegister
        managed,     // cuMemAllocManaged
        variable,    // managed, of a module
    };
    Kind kind = Kind::registered;
    bool drivers = false;  // managed: by the driver; else it is pinned memory that plays it
    uint64_t owner = 0;    // variable: the id of the module or library
    /// Copies to it whose bytes have not left for the client yet.
    std::atomic<int> leaving{0};
};

/// Used by the executor; `leaving` and write() by any thread.
class Mirrors {
  public:
    explicit Mirrors(const DriverTable& driver);

    /// cuMemHostAlloc. The address must fall into the arena that client and worker agreed on.
    CUresult allocate(uint64_t size, unsigned flags, uint8_t arena, uint32_t context, Mirror*& out);
    /// Maps the client's pages here and registers the range. `out` is null, with success, when the
    /// worker has something else at that address: then there is no mirror.
    CUresult attach(uint64_t address, uint64_t size, unsigned flags, uint32_t context,
                    Mirror*& out);
    /// cuMemAllocManaged.
    CUresult allocateManaged(uint64_t size, uint8_t arena, uint32_t context, Mirror*& out);
    /// The mirror of a managed variable that was found in `owner`; null where it cannot have one.
    Mirror* adopt(uint64_t address, uint64_t size, uint64_t owner, uint32_t context);
    /// The variables whose owner `live` denies.
    std::vector<uint64_t> orphans(const std::function<bool(uint64_t)>& live) const;
    /// A variable's memory is gone with its module.
    void forget(uint64_t begin);
    /// Frees or unregisters the mirror that begins there; nothing may be leaving it.
    CUresult release(Mirror& mirror);
    void removeOf(uint32_t context);

    /// The client's bytes, past all calls. Ignored where no mirror holds all of them.
    void write(uint64_t address, Bytes bytes) const;
    /// Have bytes of any mirror of the context yet to leave?
    bool leaving(uint32_t context) const;
    Mirror* at(uint64_t address) const;
    /// The mirror that holds all of [address, address + size), or null. Any thread.
    std::shared_ptr<Mirror> holding(uint64_t address, uint64_t size) const {
        const std::shared_lock lock(mutex_);
        return findHolding(address, size);
    }

  private:
    /// Maps, or unmaps, those pages of the range that no other registered mirror has.
    bool mapPages(uint64_t begin, uint64_t end);
    void unmapPages(uint64_t begin, uint64_t end);
    template <typename Visit>
    void eachGap(uint64_t begin, uint64_t end, Visit visit) const;
    bool fits(uint64_t size) const { return size <= limit_ - held_; }
    CUresult add(uint64_t begin, uint64_t size, Mirror::Kind kind, uint32_t context, Mirror*& out);
    /// Removes it from what is known.
    std::shared_ptr<Mirror> take(uint64_t begin);
    /// Unmaps the pages of a registered one that no other has.
    void unmap(const Mirror& mirror);
    /// Under the lock.
    std::shared_ptr<Mirror> findHolding(uint64_t address, uint64_t size) const;

    const DriverTable& driver_;
    uint64_t limit_;  // half of the machine's memory: a client must not exhaust it
    uint64_t held_ = 0;
    /// Around changes of live_, and around writes of other threads.
    mutable std::shared_mutex mutex_;
    std::map<uint64_t, std::shared_ptr<Mirror>> live_;
};

}  // namespace juice::worker

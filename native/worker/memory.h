// Device memory that the client holds: what it may name in a copy, and how much of the lease it
// uses. Used by the executor alone.
#pragma once

#include <cstdint>
#include <map>

#include "native/gen/driver_table.h"
#include "native/link/usage.h"

namespace juice::worker {

class Memory {
  public:
    /// `limit`: bytes of device memory the lease allows; 0: no limit.
    Memory(const DriverTable& driver, UsagePage& usage, uint64_t limit)
        : driver_(driver), usage_(usage), limit_(limit) {}

    /// Is there room for `size` more bytes in the lease?
    bool fits(uint64_t size) const { return limit_ == 0 || size <= limit_ - held_; }
    /// What a graph allocates keeps its address, and may be freed and made again by its launches.
    /// It counts until its graph is gone.
    enum class Owner : uint8_t { program, graph };
    void add(uint64_t address, uint64_t size, uint32_t context, Owner owner = Owner::program);
    /// The program frees it. False when no allocation begins there.
    bool remove(uint64_t address);
    /// The graph that made it is gone. What the program has not freed yet it may still free.
    void graphIsGone(uint64_t address);
    void removeOf(uint32_t context);

    /// Does all of [address, address + size) lie in one range that the device may access: an
    /// allocation of the client's, or, as the driver tells it, a variable of a module? Host memory
    /// that is not pinned never does, so that a client cannot name the worker's own.
    bool accessible(uint64_t address, uint64_t size) const;

    /// cuMemGetInfo's figures seen through the lease.
    void limitInfo(uint64_t& free, uint64_t& total) const;

  private:
    struct Block {
        uint64_t size;
        uint32_t context;
        Owner owner;
        bool freed = false;  // a graph's: the program freed it
    };
    void account();

    const DriverTable& driver_;
    UsagePage& usage_;
    const uint64_t limit_;
    uint64_t held_ = 0;
    std::map<uint64_t, Block> blocks_;
};

}  // namespace juice::worker

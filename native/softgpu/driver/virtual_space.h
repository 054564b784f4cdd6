// Reserved ranges of addresses, and the physical memory that is mapped in them.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "native/softgpu/driver/physical.h"

namespace juice::softgpu {

/// Thread-safe. Every error is 1 unless said otherwise.
class VirtualSpace {
  public:
    static VirtualSpace& instance();

    /// At `hint` if that is free, else anywhere. 2 when there is no room.
    CUresult reserve(size_t size, size_t alignment, uint64_t hint, uint64_t& address);
    /// Only a whole reservation in which nothing is mapped.
    CUresult free(uint64_t address, size_t size);
    CUresult map(uint64_t address, size_t size, std::shared_ptr<Physical> physical);
    /// Whole mappings only.
    CUresult unmap(uint64_t address, size_t size);
    /// Lets a device read or write whole mappings, or neither; null: the host, which may anyhow.
    CUresult setAccess(uint64_t address, size_t size, const Device* device,
                       CUmemAccess_flags flags);
    CUresult access(uint64_t address, const Device* device, CUmemAccess_flags& flags) const;
    /// What is mapped at the address; null when nothing is.
    std::shared_ptr<Physical> at(uint64_t address) const;

  private:
    struct Mapping {
        size_t size = 0;
        std::shared_ptr<Physical> physical;
    };
    using Mappings = std::map<uint64_t, Mapping>;

    Mappings::const_iterator holding(uint64_t address) const;
    bool overlaps(uint64_t address, size_t size) const;
    /// Is the range made of whole mappings, without gaps?
    bool whole(uint64_t address, size_t size) const;

    mutable std::mutex mutex_;
    std::map<uint64_t, size_t> reservations_;
    Mappings mappings_;
};

}  // namespace juice::softgpu

// Physical memory of the virtual memory management: allocated apart from the addresses at which it
// is seen, and mapped at none, one or several of them. What may be exported has a file of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "native/abi/cuda_abi.h"
#include "native/softgpu/driver/backing.h"

namespace juice::softgpu {

class Device;

class Physical {
  public:
    /// 2 when the device has not so much left.
    static CUresult create(size_t size, const CUmemAllocationProp& properties,
                           std::shared_ptr<Physical>& made);
    /// From a file descriptor that was exported, in this process or another. 1 for any other.
    static CUresult import(int file, std::shared_ptr<Physical>& made);
    ~Physical();
    Physical(const Physical&) = delete;
    Physical& operator=(const Physical&) = delete;

    size_t size() const { return size_; }
    const CUmemAllocationProp& properties() const { return properties_; }
    /// The device that it lies on; -1 for memory of the host.
    int ordinal() const;
    /// A new descriptor for others to import; -1 when the system has none, or when it was not asked
    /// for at creation.
    int exportFile() const;
    /// Puts `size` bytes of it at an address that is held already.
    bool mapAt(uint64_t address, size_t size) const;

    /// The handles of it that the program holds.
    std::atomic<unsigned> handles{1};

  private:
    Physical(size_t size, const CUmemAllocationProp& properties, Device* charged,
             std::shared_ptr<Backing> backing, uint64_t offset, bool whole);

    const size_t size_;
    const CUmemAllocationProp properties_;
    Device* const charged_;  // null where nobody is charged
    const std::shared_ptr<Backing> backing_;
    const uint64_t offset_;
    const bool whole_;  // the backing is its own
};

/// The device of a location, null for the host. False for what is no location of memory here.
bool deviceAtLocation(const CUmemLocation& location, Device*& device);

}  // namespace juice::softgpu

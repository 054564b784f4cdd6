// The heap that malloc and free in kernels use: one arena for the process, of address space that is
// never given back, so that a stale pointer of a kernel reads garbage and does not crash us.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

namespace juice::softgpu {

class DeviceHeap {
  public:
    static constexpr uint64_t kBytes = 128ull << 20;

    static DeviceHeap& shared();

    /// Begin and end of the arena; {0, 0} if the system has no room for it.
    std::pair<uint64_t, uint64_t> range() const { return {begin_, begin_ + size_}; }

    /// Memory of at least `bytes`, aligned to 16; 0 if there is none.
    uint64_t allocate(uint64_t bytes);
    /// False if `address` is not what allocate() gave and nobody has released.
    bool release(uint64_t address);

  private:
    DeviceHeap();

    std::mutex mutex_;
    uint64_t begin_ = 0, size_ = 0;
    std::map<uint64_t, uint64_t> free_, used_;  // address to bytes
};

}  // namespace juice::softgpu

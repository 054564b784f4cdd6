// What a program said of its managed memory: advice and where it was last prefetched to. Memory
// never moves here, so all that advice does is to be told again.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>

#include "native/abi/cuda_abi.h"

namespace juice::softgpu {

/// Of one stretch of memory.
struct Advice {
    bool readMostly = false;
    /// Of type INVALID where none was given.
    CUmemLocation preferred{CU_MEM_LOCATION_TYPE_INVALID, 0};
    CUmemLocation prefetched{CU_MEM_LOCATION_TYPE_INVALID, 0};
    std::set<int> accessedBy;  // device ordinals and CU_DEVICE_CPU
};

class AdviceMap {
  public:
    static AdviceMap& instance();

    /// Changes the advice of [start, end), whole pages of it.
    void change(uint64_t start, uint64_t end, const std::function<void(Advice&)>& how);
    /// Calls `visit` for each stretch of [start, end), those without advice among them.
    void visit(uint64_t start, uint64_t end, const std::function<void(const Advice&)>& visit) const;
    /// For memory that is freed.
    void forget(uint64_t start, uint64_t end);

  private:
    struct Stretch {
        uint64_t end = 0;
        Advice advice;
    };

    /// Makes a stretch begin at the address if one holds it.
    void split(uint64_t address);

    mutable std::mutex mutex_;
    std::map<uint64_t, Stretch> stretches_;  // by start, never overlapping
};

}  // namespace juice::softgpu

// Where the threads of blocks stand that do not come to an end: for the reports of the watchdog and
// of deadlocks.
#pragma once

#include <map>
#include <string>

#include "native/softgpu/exec/state.h"

namespace juice::softgpu {

class Standing {
  public:
    /// Counts the block's threads. None of its warps may be running.
    void add(const Block& block);
    /// A line for each place, those with most threads first, each line beginning with "\n  ".
    std::string describe(const Code& code) const;

  private:
    struct Threads {
        uint64_t running = 0, waiting = 0;
    };
    std::map<uint32_t, Threads> places_;  // by pc
};

/// Do all threads that still run in this block spin on the word at `address`, in a loop that reads
/// it, while the rest wait for these?
bool spinsOn(const Block& block, const Code& code, uint64_t address);

}  // namespace juice::softgpu

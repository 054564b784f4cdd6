// The running state of a grid: blocks, their warps, and Exec, a worker's view while it runs one.
//
// Warps are plain heap objects that can be left at any instruction and taken up again: a barrier
// parks one by marking its lanes, nothing waits on a thread's stack.
#pragma once

#include <atomic>
#include <bit>
#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include "native/softgpu/exec/code.h"

namespace juice::softgpu {

struct Block;
struct Grid;

struct Warp {
    uint32_t index = 0;         // within the block
    uint32_t live = 0;          // lanes that have not exited
    uint32_t blocked = 0;       // lanes waiting at a barrier of the block
    uint32_t parked = 0;        // lanes waiting for others of this warp at a .sync instruction
    uint32_t arrived = 0;       // those of them that are past it: at bar.warp.sync
    uint32_t clock = 0;         // of stamps
    uint32_t waiting[16] = {};  // lanes at each barrier; their union is `blocked`
    alignas(64) uint32_t pc[kLanes] = {};
    uint32_t frame[kLanes] = {};    // offset of the lane's frame in `registers`
    uint32_t stamp[kLanes] = {};    // when the lane was last scheduled: the oldest goes first
    uint32_t members[kLanes] = {};  // whom an arrived lane waits for
    uint32_t tid[3][kLanes] = {};
    bool numbered = false;  // tid is set
    AlignedBytes registers;
    AlignedBytes local;  // kLanes stacks of localPerLane bytes
    size_t localPerLane = 0;

    uint32_t runnable() const { return live & ~blocked & ~parked; }
};

struct Barrier {
    uint32_t arrived = 0;   // threads
    uint32_t expected = 0;  // threads; 0: all of the block that live
    bool active = false;
    uint32_t votes = 0;                       // threads whose predicate held, for barrier.red
    uint32_t lastVotes = 0, lastArrived = 0;  // of the phase that completed
};

struct Block {
    Grid* grid = nullptr;
    Dim3 id;
    uint64_t linear = 0;
    uint32_t live = 0;  // threads that have not exited
    uint32_t nextWarp = 0;
    std::vector<Warp> warps;
    Barrier barriers[16];
    AlignedBytes shared;
    size_t sharedBytes = 0;  // static and dynamic
    uint64_t spinning = 0;   // of a cooperative launch: see GridWatch
};

/// The first thing that a launch did wrong.
struct Fault {
    int curesult = 0;  // 0: nothing yet
    uint32_t pc = 0;
    std::string what;
    Dim3 block, thread;      // the first to do it
    uint64_t threads = 0;    // that did the same at the same instruction
    std::string further;     // lines for the report's end
    std::string assertions;  // lines
};

/// One launch.
struct Grid {
    const Launch* launch = nullptr;
    const EntryKernel* kernel = nullptr;
    const Code* code = nullptr;
    uint64_t id = 0;
    uint64_t blocks = 0;
    uint32_t threads = 0;  // per block
    AlignedBytes params;
    std::atomic<bool> stopped{false};  // every worker leaves
    std::atomic<bool> faulted{false};  // the launch has failed; others are counted for a while yet
    std::atomic<uint64_t> instructions{0};
    std::chrono::steady_clock::time_point deadline;  // of the watchdog, if there is one
    std::mutex mutex;                                // of what follows, and of printing
    Fault fault;
    bool counted = true;  // the fault's threads were all counted

    void print(std::string_view text);
    /// Fails the launch as a whole, unless it has failed already.
    void fail(int curesult, std::string what);
    /// Adds lines to the report.
    void explain(const std::string& lines);
    bool cancelled() const {
        const auto set = [](const volatile bool* flag) { return flag != nullptr && *flag; };
        return stopped.load(std::memory_order_relaxed) || set(launch->cancel[0]) ||
               set(launch->cancel[1]);
    }
    bool late() const {
        return launch->watchdog.count() != 0 && std::chrono::steady_clock::now() > deadline;
    }
};

/// Ranges of global memory that were found live, so that most accesses need no look-up.
struct RangeCache {
    struct Range {
        uint64_t begin = 0, end = 0;
    };
    static constexpr unsigned kWays = 8;
    Range ways[kWays];  // ways[0] is the one used last
    uint64_t generation = ~0ull;
    unsigned victim = 0;

    void clear() {
        for (Range& way : ways) way = {};
    }
};

/// One worker's registers, so to say. `mask` lanes stand at `pc` with their frame at `frame`; the
/// pc of every other lane is in its warp. A handler that changes who runs sets `stop` to 0, which
/// makes the loop ask the scheduler.
struct Exec {
    uint8_t* bases[2] = {};  // [0] the frame, [1] the constants
    uint32_t mask = 0;
    uint32_t pc = 0;
    uint32_t stop = 0;  // pc at which other lanes wait, or more
    uint32_t frame = 0;
    int32_t fuel = 0;      // backward transfers until others must have a turn
    int32_t budget = 0;    // the same, of the whole warp
    bool alone = true;     // no other lane of the warp can run
    bool rotated = false;  // runs out of turn: keep the group, but look for others at each branch
    Warp* warp = nullptr;
    Block* block = nullptr;
    Grid* grid = nullptr;
    const Code* code = nullptr;
    RangeCache ranges;
    uint64_t executed = 0;
    uint64_t enough = 0;  // of `executed`, once the launch has failed

    template <class T>
    T* to(Ref ref) {
        return reinterpret_cast<T*>(bases[0] + ref);
    }
    template <class T>
    const T* from(Ref ref) const {
        return reinterpret_cast<const T*>(bases[ref >> 31] + (ref & ~kConstant));
    }
    uint32_t predicate(Ref ref) const { return *from<uint32_t>(ref); }
    void setPredicate(Ref ref, uint32_t lanes, uint32_t value) {
        auto* word = to<uint32_t>(ref);
        *word = (*word & ~lanes) | (value & lanes);
    }
    const Ref* more(const Instr& in) const { return code->more.data() + in.more; }

    void setFrame(uint32_t offset) {
        frame = offset;
        bases[0] = warp->registers.data() + offset;
    }

    /// Takes `lanes` out of the running group, to go on at `at`.
    void leave(uint32_t lanes, uint32_t at) {
        for (uint32_t m = lanes; m != 0; m &= m - 1) {
            int lane = std::countr_zero(m);
            warp->pc[lane] = at;
            warp->frame[lane] = frame;
        }
        mask &= ~lanes;
        stop = 0;
    }

    /// Ends the launch: `lane` did something that `what` describes.
    void fail(int curesult, unsigned lane, const Instr& in, const std::string& what);
    /// The same for all of `lanes`, which `what` describes the first of. The launch has failed, but
    /// the threads end one by one, so that the report can say how many do the same. The running
    /// instruction must not have changed anything yet: the other lanes begin it anew.
    void fault(int curesult, uint32_t lanes, const Instr& in, const std::string& what,
               const std::string& assertions = {});
    /// The launch has failed and this worker has counted for long enough.
    bool surveyed();

  private:
    void record(int curesult, uint32_t lanes, const Instr& in, const std::string& what,
                const std::string& assertions);
};

}  // namespace juice::softgpu

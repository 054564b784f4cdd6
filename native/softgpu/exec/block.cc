#include "native/softgpu/exec/block.h"

#include <cstring>

#include "native/softgpu/exec/control.h"
#include "native/softgpu/exec/lanes.h"
#include "native/softgpu/exec/standing.h"

namespace juice::softgpu {
namespace {

/// Visits of warps that end at a barrier and count as one used-up turn.
constexpr uint32_t kVisitsPerTurn = 1024;

/// Zeroed memory of at least `bytes`, reusing what is there.
void clear(AlignedBytes& memory, size_t bytes) {
    if (memory.size() < bytes) {
        memory = AlignedBytes(bytes);
    } else if (bytes != 0) {
        std::memset(memory.data(), 0, bytes);
    }
}

void startWarp(Warp& warp, const Grid& grid, uint32_t index) {
    const EntryKernel& kernel = *grid.kernel;
    const FunctionCode& function = grid.code->functions[kernel.function];
    const Dim3& size = grid.launch->block;
    uint32_t first = index * kLanes;
    uint32_t count = std::min(kLanes, grid.threads - first);
    warp.index = index;
    warp.live = count == kLanes ? kAllLanes : (1u << count) - 1;
    warp.blocked = warp.parked = warp.arrived = warp.clock = 0;
    std::memset(warp.waiting, 0, sizeof warp.waiting);
    for (unsigned i = 0; i < kLanes; ++i) {
        warp.pc[i] = function.entry;
        warp.frame[i] = warp.stamp[i] = 0;
    }
    // The same in every block, and block objects do not outlive their launch.
    for (unsigned i = 0; i < kLanes && !warp.numbered; ++i) {
        uint32_t thread = first + i;
        warp.tid[0][i] = thread % size.x;
        warp.tid[1][i] = thread / size.x % size.y;
        warp.tid[2][i] = thread / size.x / size.y;
    }
    warp.numbered = true;
    clear(warp.registers, function.frameBytes);
    warp.localPerLane = std::max(warp.localPerLane, kernel.localStack);
    // Stacks may be large and are not promised to be zero: only fresh ones are.
    size_t local = warp.localPerLane * kLanes;
    if (warp.local.size() < local) warp.local = AlignedBytes(local);
}

/// Why nothing in this block can go on: what its threads wait for.
void failStuck(Exec& x, Block& block) {
    for (Warp& warp : block.warps) {
        if (warp.live == 0) continue;
        auto lane = static_cast<unsigned>(std::countr_zero(warp.live));
        x.warp = &warp;
        bool atBarrier = warp.blocked >> lane & 1;
        uint32_t pc = warp.pc[lane];
        // Lanes past their instruction: at a barrier, or at bar.warp.sync.
        if ((atBarrier || (warp.arrived >> lane & 1)) && pc > 0) --pc;
        std::string what = "deadlock: this thread waits for lanes that never come";
        for (unsigned i = 0; i < 16 && atBarrier; ++i) {
            if (!(warp.waiting[i] >> lane & 1)) continue;
            const Barrier& barrier = block.barriers[i];
            what = "deadlock: barrier " + std::to_string(i) + " has " +
                   std::to_string(barrier.arrived) + " of " +
                   std::to_string(barrier.expected != 0 ? barrier.expected : block.live) +
                   " threads, and the others cannot come";
        }
        x.fail(719, lane, x.code->instrs[pc], what);
        Standing standing;
        standing.add(block);
        x.grid->explain(standing.describe(*x.code));
        return;
    }
}

}  // namespace

void startBlock(Block& block, Grid& grid, uint64_t linear) {
    const Dim3& size = grid.launch->grid;
    block.grid = &grid;
    block.linear = linear;
    block.id = {static_cast<uint32_t>(linear % size.x),
                static_cast<uint32_t>(linear / size.x % size.y),
                static_cast<uint32_t>(linear / size.x / size.y)};
    block.live = grid.threads;
    block.nextWarp = 0;
    for (Barrier& barrier : block.barriers) barrier = {};
    size_t dynamic = grid.launch->dynamicShared;
    size_t fixed = grid.kernel->staticShared;
    block.sharedBytes = dynamic == 0 ? fixed : ((fixed + 15) & ~size_t{15}) + dynamic;
    clear(block.shared, block.sharedBytes);
    block.warps.resize((grid.threads + kLanes - 1) / kLanes);
    for (uint32_t i = 0; i < block.warps.size(); ++i) startWarp(block.warps[i], grid, i);
}

BlockState runBlock(Exec& x, Block& block, unsigned turns) {
    const auto count = static_cast<uint32_t>(block.warps.size());
    uint32_t idle = 0;  // warps in a row that had nothing to run
    uint32_t visits = 0;
    while (block.live != 0) {
        if (x.grid->cancelled() || x.surveyed()) return BlockState::stopped;
        Warp& warp = block.warps[block.nextWarp];
        block.nextWarp = (block.nextWarp + 1) % count;
        if (warp.runnable() == 0) {
            if (++idle >= count) {
                // Threads that wait for ones that a fault has ended are no second fault.
                if (x.grid->faulted) return BlockState::finished;
                failStuck(x, block);
                return BlockState::stopped;
            }
            continue;
        }
        idle = 0;
        WarpState state = runWarp(x, block, warp);
        if (state == WarpState::stopped || x.grid->late()) return BlockState::stopped;
        // Warps that meet at barriers all the time never use up their turns, but they may wait for
        // another block all the same.
        bool used = state == WarpState::yielded || ++visits % kVisitsPerTurn == 0;
        if (used && --turns == 0) return BlockState::yielded;
    }
    return BlockState::finished;
}

}  // namespace juice::softgpu

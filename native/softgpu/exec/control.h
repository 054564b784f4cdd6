// Who runs next: groups of lanes within a warp, lanes at barriers, the end of a thread.
#pragma once

#include "native/softgpu/exec/state.h"

namespace juice::softgpu {

/// Backward branches that a group may take while other lanes of its warp wait, and that a warp may
/// take while other warps wait.
inline constexpr int32_t kGroupQuantum = 256;
inline constexpr int32_t kWarpQuantum = 1 << 13;

enum class WarpState : uint8_t { blocked, yielded, stopped };

/// Runs one warp until no lane of it can go on (all ended or wait at barriers), its quantum is
/// used up, or the launch has failed.
WarpState runWarp(Exec& x, Block& block, Warp& warp);

/// To `target`; backward jumps use fuel.
inline void jump(Exec& x, uint32_t target) {
    if (target < x.pc && --x.fuel <= 0) x.stop = 0;
    if (x.rotated) x.stop = 0;
    x.pc = target;
}

/// Ends the threads of the lanes in m, which belong to the running group.
void endThreads(Exec& x, uint32_t m);

/// Lets the threads at barrier `index` go on if all that it waits for have arrived.
void tryRelease(Block& block, unsigned index);

/// For an instruction that all lanes of `members` execute together: true if the running group is
/// complete, now including lanes that waited here. Otherwise m's lanes wait at this instruction
/// and the handler must return.
bool gather(Exec& x, uint32_t m, uint32_t members);

/// bar.warp.sync: the lanes in m wait, past the instruction, until all of `members` have come.
void arriveWarp(Exec& x, uint32_t m, uint32_t members);

/// Makes room for a frame of `bytes` at `offset` in the warp's register stack; false if the stack
/// would grow beyond its limit. Moves the running frame.
bool reserveFrame(Exec& x, uint32_t offset, uint32_t bytes);
/// The same for `bytes` of local memory per lane.
bool reserveLocal(Exec& x, uint64_t bytes);

}  // namespace juice::softgpu

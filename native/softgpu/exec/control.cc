#include "native/softgpu/exec/control.h"

#include <algorithm>
#include <cstring>

#include "native/softgpu/exec/lanes.h"

namespace juice::softgpu {
namespace {

constexpr uint64_t kMaxRegisterStack = 64ull << 20;  // bytes of a warp
constexpr uint64_t kMaxLocalStack = 1ull << 19;      // bytes of a lane, if the kernel needs no more

uint64_t placeOf(const Warp& warp, unsigned lane) {
    // Deeper frames first, so that callees finish and meet their callers; then the lowest pc, so
    // that those behind catch up.
    return static_cast<uint64_t>(~warp.frame[lane]) << 32 | warp.pc[lane];
}

/// The lanes of `among` that stand where `lane` stands.
uint32_t groupOf(const Warp& warp, unsigned lane, uint32_t among) {
    uint32_t group = 0;
    eachLane(among, [&](unsigned i) {
        bool together = warp.pc[i] == warp.pc[lane] && warp.frame[i] == warp.frame[lane];
        group |= static_cast<uint32_t>(together) << i;
    });
    return group;
}

unsigned lowest(const Warp& warp, uint32_t among) {
    auto best = static_cast<unsigned>(std::countr_zero(among));
    eachLane(among, [&](unsigned i) {
        if (placeOf(warp, i) < placeOf(warp, best)) best = i;
    });
    return best;
}

unsigned oldest(const Warp& warp, uint32_t among) {
    auto best = static_cast<unsigned>(std::countr_zero(among));
    eachLane(among, [&](unsigned i) {
        if (warp.stamp[i] < warp.stamp[best]) best = i;
    });
    return best;
}

void park(Exec& x) {
    eachLane(x.mask, [&](unsigned i) {
        x.warp->pc[i] = x.pc;
        x.warp->frame[i] = x.frame;
    });
}

/// Makes `group`, which stands at one place, the running one.
void take(Exec& x, uint32_t group, uint32_t runnable) {
    Warp& warp = *x.warp;
    auto lane = static_cast<unsigned>(std::countr_zero(group));
    x.mask = group;
    x.pc = warp.pc[lane];
    x.setFrame(warp.frame[lane]);
    ++warp.clock;
    x.stop = ~0u;
    uint32_t others = runnable & ~group;
    x.alone = others == 0;
    eachLane(group, [&](unsigned i) { warp.stamp[i] = warp.clock; });
    eachLane(others, [&](unsigned i) {
        if (warp.frame[i] == x.frame && warp.pc[i] > x.pc) x.stop = std::min(x.stop, warp.pc[i]);
    });
}

/// Picks the next group. False when the warp must be left.
bool schedule(Exec& x) {
    Warp& warp = *x.warp;
    park(x);
    uint32_t runnable = warp.runnable();
    if (runnable == 0) return false;
    bool tired = x.fuel <= 0;
    if (tired) {
        x.budget -= kGroupQuantum;
        x.fuel = kGroupQuantum;
        if (x.budget <= 0) return false;
    }
    // A group that has its turn out of order keeps it, joined by whoever stands where it stands.
    if (x.rotated && !tired && (x.mask & runnable) != 0) {
        auto lane = static_cast<unsigned>(std::countr_zero(x.mask & runnable));
        take(x, groupOf(warp, lane, runnable), runnable);
        return true;
    }
    // Out of order and in order take turns, so that a group that spins at a low pc can wait for
    // one that is ahead of it.
    bool rotate = tired && !x.rotated;
    unsigned lane = rotate ? oldest(warp, runnable) : lowest(warp, runnable);
    uint32_t group = groupOf(warp, lane, runnable);
    x.rotated = rotate && group != runnable;
    take(x, group, runnable);
    return true;
}

/// Lets arrived lanes go whose fellows have all arrived or ended.
void releaseArrived(Warp& warp) {
    uint32_t complete = 0;
    eachLane(warp.arrived, [&](unsigned i) {
        bool all = (warp.members[i] & warp.live & ~warp.arrived) == 0;
        complete |= static_cast<uint32_t>(all) << i;
    });
    warp.arrived &= ~complete;
    warp.parked &= ~complete;
}

}  // namespace

WarpState runWarp(Exec& x, Block& block, Warp& warp) {
    x.block = &block;
    x.warp = &warp;
    x.mask = 0;
    x.rotated = false;
    x.fuel = kGroupQuantum;
    x.budget = kWarpQuantum;
    const Instr* code = x.code->instrs.data();
    while (schedule(x)) {
        uint64_t executed = 0;
        do {
            const Instr& in = code[x.pc++];
            uint32_t m = x.mask;
            ++executed;
            if (in.guard != kNoRef) {
                m &= *x.to<uint32_t>(in.guard) ^ in.guardFlip;
                if (m == 0) continue;
            }
            in.run(x, in, m);
        } while (x.pc < x.stop);
        x.executed += executed;
        if (x.grid->cancelled()) {
            park(x);
            return WarpState::stopped;
        }
    }
    return warp.runnable() == 0 ? WarpState::blocked : WarpState::yielded;
}

void endThreads(Exec& x, uint32_t m) {
    Warp& warp = *x.warp;
    warp.live &= ~m;
    x.mask &= ~m;
    x.stop = 0;
    x.block->live -= static_cast<uint32_t>(std::popcount(m));
    // Those who wait for these lanes look again.
    warp.parked = warp.arrived;
    releaseArrived(warp);
    for (unsigned i = 0; i < 16; ++i) {
        if (x.block->barriers[i].active) tryRelease(*x.block, i);
    }
}

void tryRelease(Block& block, unsigned index) {
    Barrier& barrier = block.barriers[index];
    uint32_t expected = barrier.expected != 0 ? barrier.expected : block.live;
    if (!barrier.active || barrier.arrived < expected) return;
    barrier.active = false;
    barrier.lastArrived = barrier.arrived;
    barrier.lastVotes = barrier.votes;
    barrier.arrived = barrier.votes = 0;
    for (Warp& warp : block.warps) {
        warp.blocked &= ~warp.waiting[index];
        warp.waiting[index] = 0;
    }
}

bool gather(Exec& x, uint32_t m, uint32_t members) {
    Warp& warp = *x.warp;
    uint32_t here = x.pc - 1;
    uint32_t missing = members & warp.live & ~m;
    if (missing == 0) return true;
    // Lanes that waited at this very instruction join; the group then executes it as one.
    uint32_t waiting = 0;
    eachLane(warp.parked & ~warp.arrived & missing, [&](unsigned i) {
        if (warp.pc[i] == here && warp.frame[i] == x.frame) waiting |= 1u << i;
    });
    if ((missing & ~waiting) == 0) {
        // Run it again with everybody.
        warp.parked &= ~waiting;
        x.leave(m, here);
        return false;
    }
    x.leave(m, here);
    warp.parked |= m;
    return false;
}

void arriveWarp(Exec& x, uint32_t m, uint32_t members) {
    Warp& warp = *x.warp;
    if ((members & warp.live & ~m) == 0) return;
    eachLane(m, [&](unsigned i) { warp.members[i] = members; });
    x.leave(m, x.pc);
    warp.parked |= m;
    warp.arrived |= m;
    releaseArrived(warp);
}

bool reserveFrame(Exec& x, uint32_t offset, uint32_t bytes) {
    uint64_t needed = static_cast<uint64_t>(offset) + bytes;
    AlignedBytes& stack = x.warp->registers;
    if (needed <= stack.size()) return true;
    if (needed > kMaxRegisterStack) return false;
    AlignedBytes grown(
        std::min<uint64_t>(std::max<uint64_t>(needed, stack.size() * 2), kMaxRegisterStack));
    std::memcpy(grown.data(), stack.data(), stack.size());
    stack = std::move(grown);
    x.setFrame(x.frame);
    return true;
}

bool reserveLocal(Exec& x, uint64_t bytes) {
    Warp& warp = *x.warp;
    if (bytes <= warp.localPerLane) return true;
    if (bytes > kMaxLocalStack) return false;
    uint64_t perLane =
        std::min<uint64_t>(std::max<uint64_t>(bytes, warp.localPerLane * 2), kMaxLocalStack);
    perLane = (perLane + 15) & ~15ull;
    AlignedBytes grown(perLane * kLanes);
    for (unsigned i = 0; i < kLanes && warp.localPerLane != 0; ++i) {
        std::memcpy(grown.data() + i * perLane, warp.local.data() + i * warp.localPerLane,
                    warp.localPerLane);
    }
    warp.local = std::move(grown);
    warp.localPerLane = perLane;
    return true;
}

}  // namespace juice::softgpu

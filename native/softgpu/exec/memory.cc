#include "native/softgpu/exec/memory.h"

#include <atomic>

#include "native/softgpu/exec/device_heap.h"
#include "native/softgpu/exec/fault.h"

namespace juice::softgpu {
namespace {

using ptx::Space;

const char* nameOfSpace(Space space) {
    switch (space) {
        case Space::shared:
            return "shared";
        case Space::local:
            return "local";
        case Space::param:
            return "parameter";
        default:
            return "global";
    }
}

/// The addresses of all lanes; lanes outside m get that of m's first, so that sums over all lanes
/// see valid ones only.
JUICE_LOOP void addresses(Exec& x, const Instr& in, uint32_t m, uint64_t* out) {
    auto offset = static_cast<uint64_t>(in.imm);
    if (in.aux & kUniformAddress) {
        for (unsigned i = 0; i < kLanes; ++i) out[i] = offset;
        return;
    }
    if (in.aux & kWideAddress) {
        const auto* a = x.from<uint64_t>(in.a);
        for (unsigned i = 0; i < kLanes; ++i) out[i] = a[i] + offset;
    } else {
        const auto* a = x.from<uint32_t>(in.a);
        for (unsigned i = 0; i < kLanes; ++i) out[i] = a[i] + offset;
    }
    if (m != kAllLanes) {
        uint64_t first = out[std::countr_zero(m)];
        for (unsigned i = 0; i < kLanes; ++i) out[i] = m >> i & 1 ? out[i] : first;
    }
}

/// Are all addresses in [begin, end - bytes] and aligned? All ranges are far below 2^63, so a
/// difference out of range shows in its sign.
JUICE_LOOP bool allInside(const uint64_t* at, uint64_t begin, uint64_t end, unsigned bytes) {
    if (end - begin < bytes) return false;
    uint64_t last = end - bytes, outside = 0, low = 0;
    for (unsigned i = 0; i < kLanes; ++i) {
        outside |= (at[i] - begin) | (last - at[i]);
        low |= at[i];
    }
    return outside >> 63 == 0 && (low & (bytes - 1)) == 0;
}

/// Finds the live range around `address` in the cache, the module's variables, the launch's
/// parameters or the memory map, and makes it ways[0].
bool findRange(Exec& x, uint64_t address, uint64_t bytes) {
    RangeCache& cache = x.ranges;
    auto holds = [&](const RangeCache::Range& range) {
        return address >= range.begin && address < range.end && range.end - address >= bytes;
    };
    for (unsigned way = 0; way < RangeCache::kWays; ++way) {
        if (!holds(cache.ways[way])) continue;
        std::swap(cache.ways[0], cache.ways[way]);
        return true;
    }
    auto whole = [](const auto& memory) {
        auto begin = reinterpret_cast<uint64_t>(memory.data());
        return RangeCache::Range{begin, begin + memory.size()};
    };
    RangeCache::Range found = whole(x.code->globals);
    if (!holds(found)) found = whole(x.grid->params);
    if (!holds(found)) {
        auto [begin, end] = DeviceHeap::shared().range();
        found = {begin, end};
    }
    if (!holds(found)) {
        const MemoryMap* memory = x.grid->launch->memory;
        if (memory == nullptr) return false;
        uint64_t generation = memory->generation();
        if (generation != cache.generation) {
            cache.clear();
            cache.generation = generation;
        }
        auto [begin, end] = memory->rangeOf(address);
        found = {begin, end};
        if (!holds(found)) return false;
    }
    cache.victim = cache.victim % (RangeCache::kWays - 1) + 1;
    cache.ways[cache.victim] = cache.ways[0];
    cache.ways[0] = found;
    return true;
}

struct Window {
    uint8_t* base;
    uint64_t size;
};

Window windowOf(Exec& x, Space space, unsigned lane) {
    switch (space) {
        case Space::shared:
            return {x.block->shared.data(), x.block->sharedBytes};
        case Space::local:
            return {x.warp->local.data() + lane * x.warp->localPerLane, x.warp->localPerLane};
        default:
            return {x.grid->params.data(), x.grid->params.size()};
    }
}

/// One lane's pointer, or null. `space` comes back as the space that a generic address is in.
uint8_t* reachOne(Exec& x, unsigned lane, Space& space, uint64_t address, uint64_t bytes) {
    if (space == Space::generic && address - kSharedWindow < kWindowSize) {
        space = Space::shared;
        address -= kSharedWindow;
    } else if (space == Space::generic && address - kLocalWindow < kWindowSize) {
        space = Space::local;
        address -= kLocalWindow;
    }
    if (space == Space::shared || space == Space::local || space == Space::param) {
        Window window = windowOf(x, space, lane);
        bool inside = address <= window.size && window.size - address >= bytes;
        return inside ? window.base + address : nullptr;
    }
    return findRange(x, address, bytes) ? reinterpret_cast<uint8_t*>(address) : nullptr;
}

/// What the first of several lanes did wrong.
struct Wrong {
    uint32_t lanes = 0;
    int curesult = 0;
    Space space = Space::generic;
    uint64_t address = 0;
};

std::string describe(const Exec& x, const Instr& in, const Wrong& wrong, unsigned bytes) {
    auto pc = static_cast<uint32_t>(&in - x.code->instrs.data());
    std::string what = attemptOf(*x.code, pc) +
                       (" of " + std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes")) +
                       " of " + nameOfSpace(wrong.space) + " memory at " + hex(wrong.address);
    if (wrong.curesult == 716) {
        return what + ", which is not a multiple of " + std::to_string(bytes);
    }
    if (wrong.curesult == 717) return what + ", where only global and shared memory will do";
    switch (wrong.space) {
        case Space::shared:
            return what + ", beyond the block's " + std::to_string(x.block->sharedBytes) + " bytes";
        case Space::local:
            return what + ", beyond the thread's " + std::to_string(x.warp->localPerLane) +
                   " bytes";
        case Space::param:
            return what + ", beyond the kernel's " + std::to_string(x.grid->params.size()) +
                   " bytes";
        default:
            return what + whereabouts(*x.grid, wrong.address);
    }
}

/// Lane by lane. Those that do wrong in the way of the first that does end here.
bool reachEach(Exec& x, const Instr& in, uint32_t m, unsigned bytes, const uint64_t* addresses,
               uint8_t* (&at)[kLanes]) {
    Wrong wrong;
    eachLane(m, [&](unsigned lane) {
        auto space = static_cast<Space>(in.aux & 0xff);
        uint64_t address = addresses[lane];
        int curesult = 0;
        at[lane] = reachOne(x, lane, space, address, bytes);
        if (at[lane] == nullptr) curesult = 700;
        if ((in.aux & kNotLocal) && space == Space::local) curesult = 717;
        if (address & (bytes - 1)) curesult = 716;
        if (curesult == 0) return;
        if (wrong.lanes == 0) wrong = {0, curesult, space, addresses[lane]};
        if (curesult == wrong.curesult) wrong.lanes |= 1u << lane;
    });
    if (wrong.lanes == 0) return true;
    x.fault(wrong.curesult, wrong.lanes, in, describe(x, in, wrong, bytes));
    return false;
}

/// Generic addresses of shared memory: the window of the first lane's is that of all.
bool inSharedWindow(Space space, uint64_t address) {
    return space == Space::generic && address - kSharedWindow < kWindowSize;
}

JUICE_LOOP bool reachLoop(Exec& x, const Instr& in, uint32_t m, unsigned bytes,
                          uint8_t* (&at)[kLanes]) {
    alignas(64) uint64_t place[kLanes];
    addresses(x, in, m, place);
    auto space = static_cast<Space>(in.aux & 0xff);
    uint64_t bias = 0, begin = 0, end = 0;
    switch (space) {
        case Space::shared:
        case Space::param: {
            Window window = windowOf(x, space, 0);
            bias = reinterpret_cast<uint64_t>(window.base);
            end = window.size;
            break;
        }
        case Space::local:
            end = x.warp->localPerLane;
            break;
        default: {
            uint64_t first = place[std::countr_zero(m)];
            if (inSharedWindow(space, first)) {
                begin = kSharedWindow;
                end = begin + x.block->sharedBytes;
                bias = reinterpret_cast<uint64_t>(x.block->shared.data()) - begin;
                break;
            }
            const RangeCache::Range& last = x.ranges.ways[0];
            if (first - last.begin < last.end - last.begin || findRange(x, first, bytes)) {
                begin = last.begin;
                end = last.end;
            }
        }
    }
    if (!allInside(place, begin, end, bytes)) return reachEach(x, in, m, bytes, place, at);
    if (space == Space::local) {
        uint8_t* base = x.warp->local.data();
        for (unsigned i = 0; i < kLanes; ++i) at[i] = base + i * end + place[i];
    } else {
        for (unsigned i = 0; i < kLanes; ++i) at[i] = reinterpret_cast<uint8_t*>(place[i] + bias);
    }
    return true;
}

bool plainReach(Exec& x, const Instr& in, uint32_t m, unsigned bytes, uint8_t* (&at)[kLanes]) {
    return reachLoop(x, in, m, bytes, at);
}
#ifdef JUICE_WIDE
JUICE_WIDE bool wideReach(Exec& x, const Instr& in, uint32_t m, unsigned bytes,
                          uint8_t* (&at)[kLanes]) {
    return reachLoop(x, in, m, bytes, at);
}
#else
constexpr auto wideReach = plainReach;
#endif

}  // namespace

bool (*const reach)(Exec&, const Instr&, uint32_t, unsigned,
                    uint8_t* (&)[kLanes]) = cpuIsWide() ? wideReach : plainReach;

uint8_t* reachRow(Exec& x, Space space, uint64_t address, uint64_t bytes) {
    if (space == Space::local) return nullptr;
    if (space == Space::generic && address - kLocalWindow < kWindowSize) return nullptr;
    return reachOne(x, 0, space, address, bytes);
}

uint8_t* reachGeneric(Exec& x, unsigned lane, uint64_t address, uint64_t bytes) {
    Space space = Space::generic;
    return reachOne(x, lane, space, address, bytes);
}

uint64_t reachableBytes(Exec& x, unsigned lane, uint64_t address) {
    Space space = Space::generic;
    if (reachOne(x, lane, space, address, 1) == nullptr) return 0;
    if (space == Space::shared) return x.block->sharedBytes - (address - kSharedWindow);
    if (space == Space::local) return x.warp->localPerLane - (address - kLocalWindow);
    return x.ranges.ways[0].end - address;
}

void fenceLoop(Exec&, const Instr&, uint32_t) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

ptx::Space takeMemorySpace(ptx::FunctionDecoder& d, const ptx::Operand& address) {
    if (d.takeMod("global")) return Space::global;
    if (d.takeMod("shared") || d.takeMod("shared::cta")) return Space::shared;
    if (d.takeMod("local")) return Space::local;
    if (d.takeMod("const")) return Space::constant;
    if (d.takeMod("param") || d.takeMod("param::entry") || d.takeMod("param::func")) {
        if (address.kind != ptx::Operand::Kind::address) d.refuse("an address is wanted here");
        return d.isLocalParam(address) ? Space::local : Space::param;
    }
    return Space::generic;
}

Ordering takeOrdering(ptx::FunctionDecoder& d) {
    Ordering ordering;
    std::string_view semantics =
        d.takeOneOf({"weak", "relaxed", "acquire", "release", "acq_rel", "volatile"});
    ordering.acquire = semantics == "acquire" || semantics == "acq_rel";
    ordering.release = semantics == "release" || semantics == "acq_rel";
    d.takeMod("mmio");
    d.takeOneOf({"cta", "cluster", "gpu", "sys"});
    d.takeOneOf({"ca", "cg", "cs", "lu", "cv", "wb", "wt"});
    d.takeMod("nc");
    d.takeOneOf({"L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last",
                 "L1::no_allocate"});
    d.takeOneOf({"L2::64B", "L2::128B", "L2::256B"});
    d.takeOneOf({"L2::evict_normal", "L2::evict_first", "L2::evict_last"});
    return ordering;
}

}  // namespace juice::softgpu

// Special registers: %tid, %ctaid, %laneid, %clock and the rest.
#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include "native/softgpu/exec/lanes.h"
#include "native/softgpu/exec/ops.h"
#include "native/softgpu/exec/reserved.h"

namespace juice::softgpu {
namespace {

using ptx::Type;

/// The value for one lane, at most 64 bits.
using Read = uint64_t (*)(const Exec&, unsigned lane);

struct Special {
    std::string_view name;
    Read read;
};

template <class Clock>
uint64_t nanosecondsOf() {
    std::chrono::nanoseconds since = Clock::now().time_since_epoch();
    return static_cast<uint64_t>(since.count());
}

uint64_t nanoseconds() {
    return nanosecondsOf<std::chrono::system_clock>();
}
uint64_t ticks() {
    return nanosecondsOf<std::chrono::steady_clock>();
}
uint64_t dynamicShared(const Exec& x) {
    return x.grid->launch->dynamicShared;
}

/// Program::load has put it at the end of the kernel's static part.
uint64_t reservedShared(const Exec& x, unsigned) {
    return x.grid->kernel->staticShared - kReservedShared;
}

/// A thread of the host is a multiprocessor, and the driver counts them so: programs index by
/// %smid.
uint64_t processors() {
    return std::max(1u, std::thread::hardware_concurrency());
}

constexpr auto kZero = [](const Exec&, unsigned) -> uint64_t { return 0; };
constexpr auto kOne = [](const Exec&, unsigned) -> uint64_t { return 1; };

constexpr std::array<Special, 62> kSpecials{{
    {"%tid.x", [](const Exec& x, unsigned i) -> uint64_t { return x.warp->tid[0][i]; }},
    {"%tid.y", [](const Exec& x, unsigned i) -> uint64_t { return x.warp->tid[1][i]; }},
    {"%tid.z", [](const Exec& x, unsigned i) -> uint64_t { return x.warp->tid[2][i]; }},
    {"%ntid.x", [](const Exec& x, unsigned) -> uint64_t { return x.grid->launch->block.x; }},
    {"%ntid.y", [](const Exec& x, unsigned) -> uint64_t { return x.grid->launch->block.y; }},
    {"%ntid.z", [](const Exec& x, unsigned) -> uint64_t { return x.grid->launch->block.z; }},
    {"%ctaid.x", [](const Exec& x, unsigned) -> uint64_t { return x.block->id.x; }},
    {"%ctaid.y", [](const Exec& x, unsigned) -> uint64_t { return x.block->id.y; }},
    {"%ctaid.z", [](const Exec& x, unsigned) -> uint64_t { return x.block->id.z; }},
    {"%nctaid.x", [](const Exec& x, unsigned) -> uint64_t { return x.grid->launch->grid.x; }},
    {"%nctaid.y", [](const Exec& x, unsigned) -> uint64_t { return x.grid->launch->grid.y; }},
    {"%nctaid.z", [](const Exec& x, unsigned) -> uint64_t { return x.grid->launch->grid.z; }},
    {"%laneid", [](const Exec&, unsigned i) -> uint64_t { return i; }},
    {"%warpid", [](const Exec& x, unsigned) -> uint64_t { return x.warp->index; }},
    {"%nwarpid", [](const Exec&, unsigned) -> uint64_t { return 64; }},
    {"%smid", [](const Exec& x, unsigned) -> uint64_t { return x.block->linear % processors(); }},
    {"%nsmid", [](const Exec&, unsigned) -> uint64_t { return processors(); }},
    {"%gridid", [](const Exec& x, unsigned) -> uint64_t { return x.grid->id; }},
    {"%lanemask_eq", [](const Exec&, unsigned i) -> uint64_t { return 1u << i; }},
    {"%lanemask_lt", [](const Exec&, unsigned i) -> uint64_t { return (1u << i) - 1; }},
    {"%lanemask_le", [](const Exec&, unsigned i) -> uint64_t { return (2ull << i) - 1; }},
    {"%lanemask_ge", [](const Exec&, unsigned i) -> uint64_t { return kAllLanes << i; }},
    {"%lanemask_gt", [](const Exec&, unsigned i) -> uint64_t { return ~((2ull << i) - 1); }},
    {"%clock", [](const Exec&, unsigned) -> uint64_t { return ticks() & 0xffffffff; }},
    {"%clock_hi", [](const Exec&, unsigned) -> uint64_t { return ticks() >> 32; }},
    {"%clock64", [](const Exec&, unsigned) -> uint64_t { return ticks(); }},
    {"%globaltimer", [](const Exec&, unsigned) -> uint64_t { return nanoseconds(); }},
    {"%globaltimer_lo",
     [](const Exec&, unsigned) -> uint64_t { return nanoseconds() & 0xffffffff; }},
    {"%globaltimer_hi", [](const Exec&, unsigned) -> uint64_t { return nanoseconds() >> 32; }},
    {"%dynamic_smem_size", [](const Exec& x, unsigned) -> uint64_t { return dynamicShared(x); }},
    {"%total_smem_size", [](const Exec& x, unsigned) -> uint64_t { return x.block->sharedBytes; }},
    {"%aggr_smem_size", [](const Exec& x, unsigned) -> uint64_t { return x.block->sharedBytes; }},
    {"WARP_SZ", [](const Exec&, unsigned) -> uint64_t { return kLanes; }},
    // A grid without clusters is one of clusters of one block.
    {"%is_explicit_cluster", kZero},
    {"%clusterid.x", [](const Exec& x, unsigned) -> uint64_t { return x.block->id.x; }},
    {"%clusterid.y", [](const Exec& x, unsigned) -> uint64_t { return x.block->id.y; }},
    {"%clusterid.z", [](const Exec& x, unsigned) -> uint64_t { return x.block->id.z; }},
    {"%nclusterid.x", [](const Exec& x, unsigned) -> uint64_t { return x.grid->launch->grid.x; }},
    {"%nclusterid.y", [](const Exec& x, unsigned) -> uint64_t { return x.grid->launch->grid.y; }},
    {"%nclusterid.z", [](const Exec& x, unsigned) -> uint64_t { return x.grid->launch->grid.z; }},
    {"%cluster_ctaid.x", kZero},
    {"%cluster_ctaid.y", kZero},
    {"%cluster_ctaid.z", kZero},
    {"%cluster_nctaid.x", kOne},
    {"%cluster_nctaid.y", kOne},
    {"%cluster_nctaid.z", kOne},
    {"%cluster_ctarank", kZero},
    {"%cluster_nctarank", kOne},
    // Environment registers are the driver's; a plain launch has zeros in them, a cooperative one
    // the address of its workspace.
    {"%envreg0", kZero},
    {"%envreg1",
     [](const Exec& x, unsigned) -> uint64_t { return x.grid->launch->gridWorkspace >> 32; }},
    {"%envreg2",
     [](const Exec& x, unsigned) -> uint64_t {
         return x.grid->launch->gridWorkspace & 0xffffffff;
     }},
    {"%reserved_smem_offset_0", reservedShared},
    {"%reserved_smem_offset_1", reservedShared},
    {"%reserved_smem_offset_begin", reservedShared},
    {"%reserved_smem_offset_end",
     [](const Exec& x, unsigned) -> uint64_t { return x.grid->kernel->staticShared; }},
    {"%reserved_smem_offset_cap",
     [](const Exec&, unsigned) -> uint64_t { return kReservedShared; }},
    {"%tid.w", kZero},
    {"%ctaid.w", kZero},
    {"%ntid.w", kOne},
    {"%nctaid.w", kOne},
    {"%pm0", kZero},
    {"%current_graph_exec", kZero},
}};

template <class T>
void specialLoop(Exec& x, const Instr& in, uint32_t m) {
    T* d = x.to<T>(in.dst);
    Read read = kSpecials[in.aux].read;
    eachLane(m, [&](unsigned i) { d[i] = static_cast<T>(read(x, i)); });
}

/// Clocks read the same in all lanes of one instruction.
template <class T>
void onceLoop(Exec& x, const Instr& in, uint32_t m) {
    T* d = x.to<T>(in.dst);
    auto value = static_cast<T>(kSpecials[in.aux].read(x, 0));
    eachLane(m, [&](unsigned i) { d[i] = value; });
}

}  // namespace

bool isSpecial(std::string_view name) {
    return name[0] == '%' || name == "WARP_SZ";
}

Ref emitSpecial(ptx::FunctionDecoder& d, std::string_view name, Type type) {
    if (type == Type::pred && name == "%is_explicit_cluster") return d.constant(0, 0);
    // Performance counters are still, and the driver sets no more than two environment registers.
    if (name.starts_with("%pm")) name = "%pm0";
    if (name.starts_with("%envreg") && name != "%envreg1" && name != "%envreg2") name = "%envreg0";
    for (uint32_t i = 0; i < kSpecials.size(); ++i) {
        if (kSpecials[i].name != name) continue;
        bool once = name.starts_with("%clock") || name.starts_with("%globaltimer");
        Handler run = nullptr;
        switch (ptx::sizeOf(type)) {
            case 2:
                run = once ? onceLoop<uint16_t> : specialLoop<uint16_t>;
                break;
            case 4:
                run = once ? onceLoop<uint32_t> : specialLoop<uint32_t>;
                break;
            case 8:
                run = once ? onceLoop<uint64_t> : specialLoop<uint64_t>;
                break;
            default:
                d.refuse(std::string(name) + " does not fit here");
        }
        Ref value = d.temporary(type);
        d.emit(run, value).aux = i;
        return value;
    }
    d.unsupported("special register or unknown register " + std::string(name));
}

}  // namespace juice::softgpu

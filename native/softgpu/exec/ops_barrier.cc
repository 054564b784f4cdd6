// Barriers of a block, and fences.
#include <array>

#include "native/softgpu/exec/control.h"
#include "native/softgpu/exec/lanes.h"
#include "native/softgpu/exec/memory.h"
#include "native/softgpu/exec/ops.h"

namespace juice::softgpu {
namespace {

using ptx::FunctionDecoder;
using ptx::Operand;
using ptx::Type;

constexpr uint8_t kWaits = 1, kVotes = 2;

/// `a` is the barrier, `b` the number of threads (kNoRef: all), `c` a predicate to vote with.
void barrierLoop(Exec& x, const Instr& in, uint32_t m) {
    auto first = static_cast<unsigned>(std::countr_zero(m));
    uint32_t index = x.from<uint32_t>(in.a)[first];
    if (index >= 16) return x.fail(715, first, in, "barrier " + std::to_string(index));
    Barrier& barrier = x.block->barriers[index];
    if (!barrier.active) {
        barrier.active = true;
        barrier.expected = in.b == kNoRef ? 0 : x.from<uint32_t>(in.b)[first];
    }
    barrier.arrived += static_cast<uint32_t>(std::popcount(m));
    if (in.flags & kVotes) {
        uint32_t held = x.predicate(in.c) ^ static_cast<uint32_t>(in.imm);
        barrier.votes += static_cast<uint32_t>(std::popcount(held & m));
    }
    if (in.flags & kWaits) {
        x.leave(m, x.pc);
        x.warp->blocked |= m;
        x.warp->waiting[index] |= m;
    }
    tryRelease(*x.block, index);
}

enum Reduction : uint32_t { kPopc, kAnd, kOr };

/// After the barrier: what the threads' votes came to.
void votesLoop(Exec& x, const Instr& in, uint32_t m) {
    auto first = static_cast<unsigned>(std::countr_zero(m));
    const Barrier& barrier = x.block->barriers[x.from<uint32_t>(in.a)[first] & 15];
    if (in.aux == kPopc) {
        auto* d = x.to<uint32_t>(in.dst);
        eachLane(m, [&](unsigned i) { d[i] = barrier.lastVotes; });
        return;
    }
    bool held = in.aux == kAnd ? barrier.lastVotes == barrier.lastArrived : barrier.lastVotes != 0;
    x.setPredicate(in.dst, m, held ? kAllLanes : 0);
}

void warpLoop(Exec& x, const Instr& in, uint32_t m) {
    const auto* members = x.from<uint32_t>(in.a);
    while (m != 0) {
        auto first = static_cast<unsigned>(std::countr_zero(m));
        uint32_t together = 0;
        eachLane(m, [&](unsigned i) {
            together |= static_cast<uint32_t>(members[i] == members[first]) << i;
        });
        arriveWarp(x, together, members[first]);
        m &= ~together;
    }
}

Ref count(FunctionDecoder& d, const Operand& operand) {
    if (operand.kind == Operand::Kind::integer && (operand.bits == 0 || operand.bits % 32 != 0)) {
        d.refuse("the thread count must be a multiple of 32");
    }
    return d.source(operand, Type::u32);
}

void decodeReduction(FunctionDecoder& d) {
    uint32_t reduction;
    if (d.takeMod("popc")) {
        reduction = kPopc;
    } else if (d.takeMod("and")) {
        reduction = kAnd;
    } else if (d.takeMod("or")) {
        reduction = kOr;
    } else {
        d.refuse("needs .popc, .and or .or");
    }
    Type type = d.takeTypeOf({Type::u32, Type::pred});
    if ((reduction == kPopc) != (type == Type::u32)) d.refuse("bad result type");
    bool counted = d.operandCount() == 4;
    if (!counted) d.needOperands(3);
    Ref index = d.source(1, Type::u32);
    Ref threads = counted ? count(d, d.operand(2)) : kNoRef;
    bool flip = false;
    Ref vote = d.predicate(d.operand(counted ? 3 : 2), flip);
    Instr& in = d.emit(barrierLoop, kNoRef, index, threads, vote);
    in.flags = kWaits | kVotes;
    in.imm = flip ? 0xffffffffll : 0;
    d.emit(votesLoop, d.target(0, type), index).aux = reduction;
}

void decodeBarrier(FunctionDecoder& d) {
    if (d.takeMod("cluster")) d.unsupported();
    if (d.takeMod("warp")) {
        if (!d.takeMod("sync")) d.refuse("needs .sync");
        d.needOperands(1);
        Ref members = d.source(0, Type::u32);
        d.emit(warpLoop, kNoRef, members);
        return;
    }
    d.takeMod("cta");
    d.takeMod("aligned");
    if (d.takeMod("red")) return decodeReduction(d);
    bool waits = d.takeMod("sync");
    if (!waits && !d.takeMod("arrive")) d.refuse("needs .sync, .arrive or .red");
    bool counted = d.operandCount() == 2;
    if (!counted) d.needOperands(1);
    if (!waits && !counted) d.refuse(".arrive needs a thread count");
    Ref index = d.source(0, Type::u32);
    Ref threads = counted ? count(d, d.operand(1)) : kNoRef;
    d.emit(barrierLoop, kNoRef, index, threads).flags = waits ? kWaits : 0;
}

void decodeFence(FunctionDecoder& d) {
    d.needOperands(0);
    // Memory is seen one way only here, whatever proxy looks at it.
    if (d.takeMod("proxy")) {
        if (d.takeOneOf({"alias", "async"}).empty()) d.unsupported();
        d.takeOneOf({"global", "shared::cta"});
    }
    d.takeMod("mbarrier_init");
    d.takeOneOf({"sc", "acq_rel", "acquire", "release"});
    d.takeOneOf({"cta", "cluster", "gl", "gpu", "sys"});
    d.emit(fenceLoop);
}

constexpr std::array<ptx::OpEntry, 4> kOps{{
    {"bar", decodeBarrier},
    {"barrier", decodeBarrier},
    {"membar", decodeFence},
    {"fence", decodeFence},
}};

}  // namespace

std::span<const ptx::OpEntry> barrierOps() {
    return kOps;
}

}  // namespace juice::softgpu

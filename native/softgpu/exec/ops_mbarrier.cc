// mbarrier: barriers that are objects of 64 bits in the block's shared memory.
#include <array>
#include <cstring>

#include "native/softgpu/exec/control.h"
#include "native/softgpu/exec/lanes.h"
#include "native/softgpu/exec/memory.h"
#include "native/softgpu/exec/ops_tile.h"

namespace juice::softgpu {
namespace {

using ptx::FunctionDecoder;
using ptx::Operand;
using ptx::Space;
using ptx::Type;

/// The object, which programs treat as opaque: how many arrivals a phase takes, how many are still
/// to come, how many bytes are, and the phase's parity.
struct Object {
    static constexpr uint64_t kCount = (1u << 20) - 1;

    uint64_t expected = 0, pending = 0;
    int64_t bytes = 0;
    uint64_t phase = 0;

    static Object of(uint64_t word) {
        Object object;
        object.expected = word & kCount;
        object.pending = word >> 20 & kCount;
        object.bytes = static_cast<int64_t>(word << 1) >> 41;  // 23 bits with their sign
        object.phase = word >> 63;
        return object;
    }
    uint64_t word() const {
        return expected | pending << 20 | (static_cast<uint64_t>(bytes) & 0x7fffff) << 40 |
               phase << 63;
    }
    void arrive(uint64_t count) {
        pending = count > pending ? 0 : pending - count;
        complete();
    }
    void complete() {
        if (pending != 0 || bytes != 0) return;
        phase ^= 1;
        pending = expected;
    }
};

enum Action : uint8_t { kInit, kArrive, kDrop, kExpect, kArriveExpecting, kDropExpecting, kLanded };

/// `a` is the object's address, `b` a count of arrivals or bytes, dst (64 bits) the object as it
/// was before.
void actLoop(Exec& x, const Instr& in, uint32_t m) {
    uint8_t* at[kLanes];
    if (!reach(x, in, m, 8, at)) return;
    const auto* counts = x.from<uint32_t>(in.b);
    auto* state = in.dst == kNoRef ? nullptr : x.to<uint64_t>(in.dst);
    eachLane(m, [&](unsigned i) {
        uint64_t word;
        std::memcpy(&word, at[i], 8);
        Object object = Object::of(word);
        uint64_t count = counts[i];
        switch (in.n) {
            case kInit:
                object = {};
                object.expected = object.pending = count & Object::kCount;
                break;
            case kArrive:
                object.arrive(count);
                break;
            case kDrop:
                object.expected -= std::min(count, object.expected);
                object.arrive(count);
                break;
            case kExpect:
                object.bytes += static_cast<int64_t>(count);
                break;
            case kArriveExpecting:
                object.bytes += static_cast<int64_t>(count);
                object.arrive(1);
                break;
            case kDropExpecting:
                object.bytes += static_cast<int64_t>(count);
                object.expected -= std::min<uint64_t>(1, object.expected);
                object.arrive(1);
                break;
            default:
                object.bytes -= static_cast<int64_t>(count);
                object.complete();
        }
        if (state != nullptr) state[i] = word;
        word = object.word();
        std::memcpy(at[i], &word, 8);
    });
}

/// Has the phase ended that a state (64 bits), or a parity, names? Those who wait give others a
/// turn.
template <bool Parity>
void testLoop(Exec& x, const Instr& in, uint32_t m) {
    uint8_t* at[kLanes];
    if (!reach(x, in, m, 8, at)) return;
    uint32_t ended = 0;
    eachLane(m, [&](unsigned i) {
        uint64_t word;
        std::memcpy(&word, at[i], 8);
        uint64_t asked = Parity ? x.from<uint32_t>(in.b)[i] & 1 : x.from<uint64_t>(in.b)[i] >> 63;
        ended |= static_cast<uint32_t>(Object::of(word).phase != asked) << i;
    });
    x.setPredicate(in.dst, m, ended);
    if (ended != 0) return;
    x.fuel -= kGroupQuantum / 16;
    if (x.fuel <= 0) x.stop = 0;
}

void pendingLoop(Exec& x, const Instr& in, uint32_t m) {
    const auto* a = x.from<uint64_t>(in.a);
    auto* d = x.to<uint32_t>(in.dst);
    eachLane(m, [&](unsigned i) { d[i] = static_cast<uint32_t>(Object::of(a[i]).pending); });
}

/// Semantics, scope and space; only objects of the own block.
Space takePlace(FunctionDecoder& d, const Operand& address) {
    d.takeOneOf({"release", "relaxed", "acquire"});
    d.takeOneOf({"cta", "cluster"});
    Space space = takeMemorySpace(d, address);
    if (space != Space::shared && space != Space::generic) d.unsupported("this state space");
    return space;
}

void takeB64(FunctionDecoder& d) {
    d.takeTypeOf({Type::b64});
}

void decodeAct(FunctionDecoder& d, Action action, size_t place, Ref count, Ref state) {
    Space space = takePlace(d, d.operand(place));
    takeB64(d);
    FunctionDecoder::Address address = d.address(d.operand(place), space);
    Instr& in = d.emit(actLoop, state, address.base, count);
    setAddress(in, address);
    in.n = action;
}

void decodeArrive(FunctionDecoder& d, bool drop) {
    d.takeMod("noComplete");
    bool expecting = d.takeMod("expect_tx");
    if (d.operandCount() != 3) d.needOperands(2);
    bool counted = d.operandCount() == 3;
    if (expecting && !counted) d.refuse(".expect_tx needs a count");
    Action action =
        drop ? (expecting ? kDropExpecting : kDrop) : (expecting ? kArriveExpecting : kArrive);
    Ref count = counted ? d.source(2, Type::u32) : d.constant(1, 4);
    decodeAct(d, action, 1, count, d.target(0, Type::b64));
}

void decodeWait(FunctionDecoder& d) {
    bool parity = d.takeMod("parity");
    if (d.operandCount() != 4) d.needOperands(3);
    Space space = takePlace(d, d.operand(1));
    takeB64(d);
    Ref asked = d.source(2, parity ? Type::u32 : Type::b64);
    if (d.operandCount() == 4) d.source(3, Type::u32);  // for how long to wait at most
    FunctionDecoder::Address address = d.address(d.operand(1), space);
    setAddress(d.emit(parity ? testLoop<true> : testLoop<false>, d.target(0, Type::pred),
                      address.base, asked),
               address);
}

void decodeMbarrier(FunctionDecoder& d) {
    if (d.takeMod("init")) {
        d.needOperands(2);
        return decodeAct(d, kInit, 0, d.source(1, Type::u32), kNoRef);
    }
    if (d.takeMod("inval")) {
        d.needOperands(1);
        return decodeAct(d, kInit, 0, d.constant(0, 4), kNoRef);
    }
    if (d.takeMod("arrive")) return decodeArrive(d, false);
    if (d.takeMod("arrive_drop")) return decodeArrive(d, true);
    if (!d.takeOneOf({"test_wait", "try_wait"}).empty()) return decodeWait(d);
    if (d.takeMod("pending_count")) {
        d.needOperands(2);
        takeB64(d);
        Ref state = d.source(1, Type::b64);
        d.emit(pendingLoop, d.target(0, Type::b32), state);
        return;
    }
    std::string_view bytes = d.takeOneOf({"expect_tx", "complete_tx"});
    if (bytes.empty()) d.unsupported();
    d.needOperands(2);
    decodeAct(d, bytes == "expect_tx" ? kExpect : kLanded, 0, d.source(1, Type::u32), kNoRef);
}

constexpr std::array<ptx::OpEntry, 1> kOps{{{"mbarrier", decodeMbarrier}}};

}  // namespace

std::span<const ptx::OpEntry> mbarrierOps() {
    return kOps;
}

/// cp.async.mbarrier.arrive: copies are done when they are issued, so the arrival is at once.
/// Without .noinc it was added to those expected before, and changes nothing.
void decodeCopyArrival(FunctionDecoder& d) {
    if (!d.takeMod("arrive")) d.unsupported();
    bool counts = d.takeMod("noinc");
    d.needOperands(1);
    if (counts) return decodeAct(d, kArrive, 0, d.constant(1, 4), kNoRef);
    takePlace(d, d.operand(0));
    takeB64(d);
}

}  // namespace juice::softgpu

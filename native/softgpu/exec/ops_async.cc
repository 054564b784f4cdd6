// cp.async: copies from global to shared memory. Each is done when it is issued, so its groups are
// always complete.
#include <array>
#include <cstring>

#include "native/softgpu/exec/lanes.h"
#include "native/softgpu/exec/memory.h"
#include "native/softgpu/exec/ops_tile.h"

namespace juice::softgpu {
namespace {

using ptx::FunctionDecoder;
using ptx::Operand;
using ptx::Space;
using ptx::Type;

constexpr uint8_t kIgnores = 1;  // further operand: a predicate that says to read nothing

/// `a` is the place in shared memory, `b` the one in global memory (64 bits), `c` how many bytes to
/// read (kNoRef: all `n`); the rest is filled with zeros.
void copyLoop(Exec& x, const Instr& in, uint32_t m) {
    uint8_t* at[kLanes];
    if (!reach(x, in, m, in.n, at)) return;
    const auto* from = x.from<uint64_t>(in.b);
    uint32_t ignored = 0;
    if (in.flags & kIgnores) ignored = x.predicate(*x.more(in)) ^ (in.flags & 2 ? ~0u : 0);
    for (; m != 0; m &= m - 1) {
        auto lane = static_cast<unsigned>(std::countr_zero(m));
        uint32_t bytes =
            in.c == kNoRef ? in.n : std::min<uint32_t>(x.from<uint32_t>(in.c)[lane], in.n);
        if (ignored >> lane & 1) bytes = 0;
        uint8_t data[16] = {};
        if (bytes != 0) {
            if (from[lane] & (in.n - 1u)) {
                return x.fail(716, lane, in, "misaligned source of an asynchronous copy");
            }
            const uint8_t* source = reachGeneric(x, lane, from[lane], bytes);
            if (source == nullptr) {
                return x.fail(700, lane, in, "source of an asynchronous copy");
            }
            std::memcpy(data, source, bytes);
        }
        std::memcpy(at[lane], data, in.n);
    }
}

/// The address as 64 bits in a register.
Ref wholeAddress(FunctionDecoder& d, const Operand& operand, Space space) {
    FunctionDecoder::Address address = d.address(operand, space);
    Ref offset = d.constant(static_cast<uint64_t>(address.offset), 8);
    if (address.uniform) return offset;
    if (!address.wide) d.refuse("a global address has 64 bits");
    Ref sum = d.temporary(Type::b64);
    d.emit(addHandler(Type::u64), sum, address.base, offset);
    return sum;
}

void decodeCopy(FunctionDecoder& d) {
    bool all = d.takeMod("ca");
    if (!all && !d.takeMod("cg")) d.unsupported();
    if (d.takeOneOf({"shared", "shared::cta"}).empty() || !d.takeMod("global")) d.unsupported();
    d.takeOneOf({"L2::64B", "L2::128B", "L2::256B"});
    bool hint = d.takeMod("L2::cache_hint");
    size_t count = d.operandCount() - (hint ? 1 : 0);
    if (count != 3 && count != 4) d.needOperands(hint ? 4 : 3);
    int64_t bytes = d.immediate(d.operand(2));
    if (bytes != 16 && (!all || (bytes != 4 && bytes != 8))) d.refuse("bad size");
    FunctionDecoder::Address to = d.address(d.operand(0), Space::shared);
    Ref from = wholeAddress(d, d.operand(1), Space::global);
    Ref size = kNoRef, ignore = kNoRef;
    bool flip = false;
    if (count == 4) {
        const Operand& last = d.operand(3);
        bool predicate = d.isRegister(last) && d.registerType(last) == Type::pred;
        if (predicate)
            ignore = d.predicate(last, flip);
        else
            size = d.source(last, Type::u32);
    }
    Instr& in = d.emit(copyLoop, kNoRef, to.base, from, size);
    setAddress(in, to);
    in.n = static_cast<uint8_t>(bytes);
    if (ignore == kNoRef) return;
    in.flags = static_cast<uint8_t>(kIgnores | (flip ? 2 : 0));
    d.setMore({}, {ignore});
}

void decodeCp(FunctionDecoder& d) {
    if (!d.takeMod("async") || d.takeMod("bulk")) d.unsupported();
    if (d.takeMod("commit_group") || d.takeMod("wait_all")) return d.needOperands(0);
    if (d.takeMod("wait_group")) {
        d.needOperands(1);
        d.immediate(d.operand(0));
        return;
    }
    if (d.takeMod("mbarrier")) return decodeCopyArrival(d);
    decodeCopy(d);
}

/// A cache policy has no meaning here.
void decodePolicy(FunctionDecoder& d) {
    if (d.takeOneOf({"fractional", "range", "cvt"}).empty()) d.unsupported();
    d.takeMod("global");
    d.takeMod("L2");
    for (int i = 0; i < 2; ++i) {
        d.takeOneOf(
            {"L2::evict_last", "L2::evict_normal", "L2::evict_first", "L2::evict_unchanged"});
    }
    d.takeTypeOf({Type::b64});
    if (d.operandCount() == 0) d.needOperands(1);
    d.emit(copyHandler(Type::b64), d.target(0, Type::b64), d.constant(0, 8));
}

constexpr std::array<ptx::OpEntry, 2> kOps{{{"cp", decodeCp}, {"createpolicy", decodePolicy}}};

}  // namespace

std::span<const ptx::OpEntry> asyncOps() {
    return kOps;
}

}  // namespace juice::softgpu

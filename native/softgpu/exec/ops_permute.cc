// Bytes and bits by table: prmt and lop3.
#include <array>

#include "native/softgpu/exec/lanes.h"
#include "native/softgpu/exec/ops.h"

namespace juice::softgpu {
namespace {

using ptx::FunctionDecoder;
using ptx::Type;

uint32_t selectByte(uint64_t pair, uint32_t selector) {
    uint32_t byte = pair >> (8 * (selector & 7)) & 0xff;
    if (selector & 8) byte = byte & 0x80 ? 0xff : 0;  // replicate the sign
    return byte;
}

constexpr auto kPrmt = [](uint32_t a, uint32_t b, uint32_t c) {
    uint64_t pair = uint64_t{b} << 32 | a;
    uint32_t result = 0;
    for (unsigned i = 0; i < 4; ++i) result |= selectByte(pair, c >> (4 * i) & 15) << (8 * i);
    return result;
};

/// The prmt modes: for each mode and each selector 0-3, the four byte indices.
uint32_t prmtMode(std::string_view mode, uint32_t c) {
    c &= 3;
    if (mode == "f4e") return 0x3210 + 0x1111 * c;
    if (mode == "b4e") {
        constexpr uint32_t kBack[4] = {0x5670, 0x6701, 0x7012, 0x0123};
        return kBack[c];
    }
    if (mode == "rc8") return 0x1111 * c;
    if (mode == "rc16") return c & 1 ? 0x3232 : 0x1010;
    constexpr uint32_t kLeft[4] = {0x3210, 0x3211, 0x3222, 0x3333};
    constexpr uint32_t kRight[4] = {0x0000, 0x1110, 0x2210, 0x3210};
    return mode == "ecl" ? kLeft[c] : kRight[c];
}

constexpr std::array<std::string_view, 6> kPrmtModes{"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"};

void prmtModeLoop(Exec& x, const Instr& in, uint32_t m) {
    auto* d = x.to<uint32_t>(in.dst);
    const auto* a = x.from<uint32_t>(in.a);
    const auto* b = x.from<uint32_t>(in.b);
    const auto* c = x.from<uint32_t>(in.c);
    eachLane(m, [&](unsigned i) { d[i] = kPrmt(a[i], b[i], prmtMode(kPrmtModes[in.aux], c[i])); });
}

/// lop3 as a sum of the minterms that the table names.
JUICE_LOOP void lop3Loop(Exec& x, const Instr& in, uint32_t m) {
    auto* d = x.to<uint32_t>(in.dst);
    const auto* a = x.from<uint32_t>(in.a);
    const auto* b = x.from<uint32_t>(in.b);
    const auto* c = x.from<uint32_t>(in.c);
    uint32_t table[8];
    for (unsigned k = 0; k < 8; ++k) table[k] = in.aux >> k & 1 ? ~0u : 0;
    forLanes(m, [&](unsigned i) {
        uint32_t p = a[i], q = b[i], r = c[i];
        uint32_t high =
            (q & ((r & table[7]) | (~r & table[6]))) | (~q & ((r & table[5]) | (~r & table[4])));
        uint32_t low =
            (q & ((r & table[3]) | (~r & table[2]))) | (~q & ((r & table[1]) | (~r & table[0])));
        d[i] = (p & high) | (~p & low);
    });
}

/// lop3.BoolOp: also p = (result != 0) op q.
template <bool Or>
void lop3PredicateLoop(Exec& x, const Instr& in, uint32_t m) {
    lop3Loop(x, in, m);
    const auto* d = x.from<uint32_t>(in.dst);
    uint32_t nonzero = 0;
    eachLane(m, [&](unsigned i) { nonzero |= static_cast<uint32_t>(d[i] != 0) << i; });
    uint32_t q = x.predicate(x.more(in)[1]) ^ static_cast<uint32_t>(in.imm);
    x.setPredicate(x.more(in)[0], m, Or ? nonzero | q : nonzero & q);
}

void decodePrmt(FunctionDecoder& d) {
    d.needOperands(4);
    d.takeTypeOf({Type::b32});
    Ref a = d.source(1, Type::b32), b = d.source(2, Type::b32), c = d.source(3, Type::b32);
    for (uint32_t mode = 0; mode < kPrmtModes.size(); ++mode) {
        if (!d.takeMod(kPrmtModes[mode])) continue;
        d.emit(prmtModeLoop, d.target(0, Type::b32), a, b, c).aux = mode;
        return;
    }
    d.emit(lanes<map3<kPrmt, uint32_t, uint32_t>>(), d.target(0, Type::b32), a, b, c);
}

void decodeLop3(FunctionDecoder& d) {
    std::string_view boolean = d.takeOneOf({"and", "or"});
    d.takeTypeOf({Type::b32});
    d.needOperands(boolean.empty() ? 5 : 6);
    Ref a = d.source(1, Type::b32), b = d.source(2, Type::b32), c = d.source(3, Type::b32);
    auto table = static_cast<uint32_t>(d.immediate(d.operand(4)));
    if (table > 255) d.refuse("the table must be 0 to 255");
    if (boolean.empty()) {
        d.emit(lanes<lop3Loop>(), d.target(0, Type::b32), a, b, c).aux = table;
        return;
    }
    const ptx::Operand& results = d.operand(0);
    if (results.kind != ptx::Operand::Kind::pair) d.refuse("needs d|p");
    bool flip = false;
    Ref q = d.predicate(d.operand(5), flip);
    Ref value = d.target(results.items[0], Type::b32);
    Ref p = d.target(results.items[1], Type::pred);
    Instr& in = d.emit(boolean == "or" ? lop3PredicateLoop<true> : lop3PredicateLoop<false>, value,
                       a, b, c);
    in.aux = table;
    in.imm = flip ? 0xffffffffll : 0;
    d.setMore({p}, {q});
}

constexpr std::array<ptx::OpEntry, 2> kOps{{{"prmt", decodePrmt}, {"lop3", decodeLop3}}};

}  // namespace

std::span<const ptx::OpEntry> permuteOps() {
    return kOps;
}

}  // namespace juice::softgpu

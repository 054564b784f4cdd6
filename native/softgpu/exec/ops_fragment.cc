// ldmatrix, stmatrix and movmatrix: 8 x 8 matrices of 16-bit elements between shared memory and the
// lanes of a warp. Lane l holds columns 2 * (l % 4) and the next of row l / 4.
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

constexpr unsigned kRows = 8, kRowBytes = 16;
constexpr uint8_t kTransposed = 1;

/// Where a lane's half `part` stands, as row * 8 + column.
unsigned placeOf(unsigned lane, unsigned part, bool transposed) {
    unsigned row = lane / 4, column = lane % 4 * 2 + part;
    return transposed ? column * kRows + row : row * kRows + column;
}

/// Pointers to the rows, which lanes 0 to 8 * n - 1 name. False: the launch has failed.
bool rowsOf(Exec& x, const Instr& in, uint32_t m, uint8_t* (&at)[kLanes]) {
    uint32_t naming = in.n == 4 ? kAllLanes : (1u << (kRows * in.n)) - 1;
    return reach(x, in, m & naming, kRowBytes, at);
}

void loadLoop(Exec& x, const Instr& in, uint32_t m) {
    if (!gather(x, m, kAllLanes)) return;
    uint8_t* at[kLanes];
    if (!rowsOf(x, in, m, at)) return;
    // The results may take the place of the addresses: everything is read first.
    uint16_t matrices[4][kRows * kRows];
    for (unsigned row = 0; row < kRows * in.n; ++row) {
        if (!(m >> row & 1)) continue;
        std::memcpy(&matrices[row / kRows][row % kRows * kRows], at[row], kRowBytes);
    }
    bool transposed = in.flags & kTransposed;
    for (unsigned k = 0; k < in.n; ++k) {
        auto* d = x.to<uint32_t>(x.more(in)[k]);
        eachLane(m, [&](unsigned lane) {
            d[lane] = static_cast<uint32_t>(matrices[k][placeOf(lane, 1, transposed)]) << 16 |
                      matrices[k][placeOf(lane, 0, transposed)];
        });
    }
}

void storeLoop(Exec& x, const Instr& in, uint32_t m) {
    if (!gather(x, m, kAllLanes)) return;
    uint8_t* at[kLanes];
    if (!rowsOf(x, in, m, at)) return;
    bool transposed = in.flags & kTransposed;
    for (unsigned k = 0; k < in.n; ++k) {
        uint16_t matrix[kRows * kRows];
        const auto* s = x.from<uint32_t>(x.more(in)[k]);
        for (unsigned lane = 0; lane < kLanes; ++lane) {
            matrix[placeOf(lane, 0, transposed)] = static_cast<uint16_t>(s[lane]);
            matrix[placeOf(lane, 1, transposed)] = static_cast<uint16_t>(s[lane] >> 16);
        }
        for (unsigned row = 0; row < kRows; ++row) {
            unsigned naming = k * kRows + row;
            if (m >> naming & 1) std::memcpy(at[naming], &matrix[row * kRows], kRowBytes);
        }
    }
}

void transposeLoop(Exec& x, const Instr& in, uint32_t m) {
    if (!gather(x, m, kAllLanes)) return;
    const auto* a = x.from<uint32_t>(in.a);
    uint16_t matrix[kRows * kRows];
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        matrix[placeOf(lane, 0, true)] = static_cast<uint16_t>(a[lane]);
        matrix[placeOf(lane, 1, true)] = static_cast<uint16_t>(a[lane] >> 16);
    }
    auto* d = x.to<uint32_t>(in.dst);
    eachLane(m, [&](unsigned lane) {
        d[lane] = static_cast<uint32_t>(matrix[placeOf(lane, 1, false)]) << 16 |
                  matrix[placeOf(lane, 0, false)];
    });
}

void decodeTransfer(FunctionDecoder& d, bool load) {
    if (!d.takeMod("sync") || !d.takeMod("aligned") || !d.takeMod("m8n8")) d.unsupported();
    std::string_view count = d.takeOneOf({"x1", "x2", "x4"});
    if (count.empty()) d.refuse("needs .x1, .x2 or .x4");
    auto n = static_cast<unsigned>(count[1] - '0');
    bool transposed = d.takeMod("trans");
    d.needOperands(2);
    size_t place = load ? 1 : 0;
    Space space = takeMemorySpace(d, d.operand(place));
    if (space != Space::shared && space != Space::generic) d.unsupported("this state space");
    d.takeTypeOf({Type::b16});
    const Operand& operand = d.operand(load ? 0 : 1);
    std::vector<Operand> items =
        operand.kind == Operand::Kind::vector ? operand.items : std::vector<Operand>{operand};
    if (items.size() != n) d.refuse("needs " + std::to_string(n) + " registers");
    FunctionDecoder::Address address = d.address(d.operand(place), space);
    std::vector<Ref> refs;
    refs.reserve(items.size());
    for (const Operand& item : items) {
        refs.push_back(load ? d.target(item, Type::b32) : d.source(item, Type::b32));
    }
    Instr& in = d.emit(load ? loadLoop : storeLoop, kNoRef, address.base);
    setAddress(in, address);
    in.n = static_cast<uint8_t>(n);
    in.flags = transposed ? kTransposed : 0;
    load ? d.setMore(refs, {}) : d.setMore({}, refs);
}

void decodeLoad(FunctionDecoder& d) {
    decodeTransfer(d, true);
}
void decodeStore(FunctionDecoder& d) {
    decodeTransfer(d, false);
}

void decodeMove(FunctionDecoder& d) {
    if (!d.takeMod("sync") || !d.takeMod("aligned") || !d.takeMod("m8n8") || !d.takeMod("trans")) {
        d.unsupported();
    }
    d.takeTypeOf({Type::b16});
    d.needOperands(2);
    Ref a = d.source(1, Type::b32);
    d.emit(transposeLoop, d.target(0, Type::b32), a);
}

constexpr std::array<ptx::OpEntry, 3> kOps{{
    {"ldmatrix", decodeLoad},
    {"stmatrix", decodeStore},
    {"movmatrix", decodeMove},
}};

}  // namespace

std::span<const ptx::OpEntry> fragmentOps() {
    return kOps;
}

}  // namespace juice::softgpu

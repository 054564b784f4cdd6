// mma.sync: products of small matrices whose elements lie spread over the lanes of a warp.
#include <array>
#include <memory>

#include "native/softgpu/exec/control.h"
#include "native/softgpu/exec/lanes.h"
#include "native/softgpu/exec/matrix.h"
#include "native/softgpu/exec/ops_tile.h"

namespace juice::softgpu {
namespace {

using ptx::FunctionDecoder;
using ptx::Operand;
using ptx::Type;

/// What an instruction multiplies, packed into Instr::imm: the types of d, a, b, c, and into
/// Instr::aux: the shape.
int64_t packTypes(const std::array<Element, 4>& types) {
    int64_t packed = 0;
    for (size_t i = 0; i < 4; ++i) packed |= static_cast<int64_t>(types[i]) << (8 * i);
    return packed;
}
Element typeAt(const Instr& in, unsigned i) {
    return static_cast<Element>(in.imm >> (8 * i) & 0xff);
}
uint32_t packShape(const MatrixShape& shape) {
    return shape.m | shape.n << 8 | shape.k << 16;
}

unsigned registersOf(unsigned elements, Element element) {
    unsigned bits = bitsOf(element);
    return elements / kLanes / (bits == 64 ? 1 : 32 / bits);
}

/// Places of the elements, by lane: rows (of a, c) and columns (of b) go by fours of lanes, what is
/// summed over goes by neighbours, as many in a register as fit.
struct Place {
    unsigned along, across;  // the index that is summed over, the other one
};
Place placeInA(unsigned lane, unsigned e, unsigned perRegister, bool sixteen) {
    unsigned reg = e / perRegister, part = e % perRegister;
    unsigned block = sixteen ? reg >> 1 : reg;
    return {(block * 4 + lane % 4) * perRegister + part, lane / 4 + (sixteen && (reg & 1) ? 8 : 0)};
}

void mmaLoop(Exec& x, const Instr& in, uint32_t m) {
    if (!gather(x, m, kAllLanes)) return;
    auto product = std::make_unique<Product>();
    product->shape = {in.aux & 0xff, in.aux >> 8 & 0xff, in.aux >> 16};
    product->d = typeAt(in, 0);
    product->a = typeAt(in, 1);
    product->b = typeAt(in, 2);
    product->c = typeAt(in, 3);
    product->flags = in.flags;
    const MatrixShape& shape = product->shape;
    const Ref* d = x.more(in);
    const Ref* a = d + registersOf(shape.m * shape.n, product->d);
    const Ref* b = a + registersOf(shape.m * shape.k, product->a);
    const Ref* c = b + registersOf(shape.k * shape.n, product->b);
    unsigned bits = bitsOf(product->a);
    unsigned perRegister = bits == 64 ? 1 : 32 / bits;
    bool floating = isFloating(product->a);
    unsigned inA = shape.m * shape.k / kLanes, inB = shape.k * shape.n / kLanes;
    unsigned inC = shape.m * shape.n / kLanes;
    auto placeInC = [&](unsigned lane, unsigned e) {
        return (lane / 4 + e / 2 * 8) * shape.n + lane % 4 * 2 + e % 2;
    };
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        for (unsigned e = 0; e < inA; ++e) {
            Place at = placeInA(lane, e, perRegister, shape.m == 16);
            unsigned index = at.across * shape.k + at.along;
            if (floating)
                product->left[index] = readFloating(x, a, lane, e, product->a);
            else
                product->ints[index] = readInteger(x, a, lane, e, product->a);
        }
        for (unsigned e = 0; e < inB; ++e) {
            Place at = placeInA(lane, e, perRegister, false);
            unsigned index = at.along * shape.n + at.across;
            if (floating)
                product->right[index] = readFloating(x, b, lane, e, product->b);
            else
                product->other[index] = readInteger(x, b, lane, e, product->b);
        }
        for (unsigned e = 0; e < inC; ++e) {
            product->sum[placeInC(lane, e)] = isFloating(product->c)
                                                  ? readFloating(x, c, lane, e, product->c)
                                                  : readInteger(x, c, lane, e, product->c);
        }
    }
    product->multiply();
    eachLane(m, [&](unsigned lane) {
        for (unsigned e = 0; e < inC; ++e) {
            writeElement(x, d, lane, e, product->d, product->sum[placeInC(lane, e)], in.flags);
        }
    });
}

struct Allowed {
    Element a;
    std::array<std::string_view, 4> shapes;
};
constexpr std::array<Allowed, 11> kAllowed{{
    {Element::f16, {"m16n8k8", "m16n8k16"}},
    {Element::bf16, {"m16n8k8", "m16n8k16"}},
    {Element::tf32, {"m16n8k4", "m16n8k8"}},
    {Element::e4m3, {"m16n8k16", "m16n8k32"}},
    {Element::e5m2, {"m16n8k16", "m16n8k32"}},
    {Element::f64, {"m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"}},
    {Element::u8, {"m8n8k16", "m16n8k16", "m16n8k32"}},
    {Element::s8, {"m8n8k16", "m16n8k16", "m16n8k32"}},
    {Element::u4, {"m8n8k32", "m16n8k32", "m16n8k64"}},
    {Element::s4, {"m8n8k32", "m16n8k32", "m16n8k64"}},
    {Element::b1, {"m8n8k128", "m16n8k128", "m16n8k256"}},
}};

bool isAllowed(Element a, std::string_view shape) {
    for (const Allowed& allowed : kAllowed) {
        if (allowed.a != a) continue;
        for (std::string_view one : allowed.shapes) {
            if (one == shape) return true;
        }
    }
    return false;
}

/// May a and b be multiplied, and their products be added to c?
bool goTogether(const std::array<Element, 4>& types) {
    auto [d, a, b, c] = types;
    auto family = [](Element element) {
        if (element == Element::u8 || element == Element::s8) return 8;
        if (element == Element::u4 || element == Element::s4) return 4;
        if (element == Element::e4m3 || element == Element::e5m2) return 2;
        return 16 + static_cast<int>(element);
    };
    if (family(a) != family(b)) return false;
    auto half = [](Element e) { return e == Element::f16 || e == Element::f32; };
    if (a == Element::f64) return c == Element::f64 && d == Element::f64;
    if (a == Element::f16 || family(a) == 2) return half(c) && half(d);
    if (isFloating(a)) return c == Element::f32 && d == Element::f32;
    return c == Element::s32 && d == Element::s32;
}

Type registerType(Element element) {
    return element == Element::f64 ? Type::f64 : Type::b32;
}

void decodeMma(FunctionDecoder& d) {
    if (!d.takeMod("sync") || !d.takeMod("aligned")) d.unsupported();
    MatrixShape shape;
    std::string_view shapeName;
    std::array<Element, 4> types{};
    size_t found = 0;
    const auto& mods = d.instruction().mods;
    for (std::string_view mod : mods) {
        Element element;
        if (shapeOf(mod, shape)) {
            shapeName = mod;
            d.takeMod(mod);
        } else if (elementOf(mod, element) && found < 4) {
            types[found++] = element;
            d.takeMod(mod);
        }
    }
    if (shapeName.empty() || found != 4) d.unsupported();
    if (!isAllowed(types[1], shapeName) || !goTogether(types)) {
        d.unsupported("this shape with these types");
    }
    if (!d.takeMod("row") || !d.takeMod("col")) d.unsupported("a layout other than .row.col");
    uint8_t flags = d.takeMod("satfinite") ? kSatFinite : 0;
    if (types[1] == Element::b1) {
        flags = d.takeMod("xor") ? kBitXor : d.takeMod("and") ? kBitAnd : 0;
        if (flags == 0 || !d.takeMod("popc")) d.refuse("needs .xor.popc or .and.popc");
    }
    d.needOperands(4);
    const std::array<unsigned, 4> elements = {shape.m * shape.n, shape.m * shape.k,
                                              shape.k * shape.n, shape.m * shape.n};
    std::vector<Ref> results, sources;
    for (size_t i = 0; i < 4; ++i) {
        const Operand& operand = d.operand(i);
        std::vector<Operand> items =
            operand.kind == Operand::Kind::vector ? operand.items : std::vector<Operand>{operand};
        if (items.size() != registersOf(elements[i], types[i])) {
            d.refuse("operand " + std::to_string(i) + " must be " +
                     std::to_string(registersOf(elements[i], types[i])) + " registers");
        }
        for (const Operand& item : items) {
            Type type = registerType(types[i]);
            if (i == 0)
                results.push_back(d.target(item, type));
            else
                sources.push_back(d.source(item, type));
        }
    }
    Instr& in = d.emit(mmaLoop);
    in.imm = packTypes(types);
    in.aux = packShape(shape);
    in.flags = flags;
    d.setMore(results, sources);
}

constexpr std::array<ptx::OpEntry, 1> kOps{{{"mma", decodeMma}}};

}  // namespace

std::span<const ptx::OpEntry> mmaOps() {
    return kOps;
}

}  // namespace juice::softgpu

// wmma: loads, products and stores of matrices whose distribution over the lanes is ours to choose.
// Lane by lane, each holds a run of a matrix's elements, row after row; where a fragment has more
// room than that, the run repeats. Accumulators of one shape are distributed alike for all types.
#include <array>
#include <cstring>
#include <memory>

#include "native/softgpu/exec/control.h"
#include "native/softgpu/exec/lanes.h"
#include "native/softgpu/exec/matrix.h"
#include "native/softgpu/exec/memory.h"
#include "native/softgpu/exec/ops_tile.h"

namespace juice::softgpu {
namespace {

using ptx::FunctionDecoder;
using ptx::Operand;
using ptx::Space;
using ptx::Type;

struct Fragment {
    unsigned rows = 0, columns = 0;
    Element element = Element::f16;

    unsigned perLane() const { return rows * columns / kLanes; }
    unsigned perRegister() const { return element == Element::f64 ? 1 : 32 / bitsOf(element); }
    /// f16 operands have eight registers in every shape.
    unsigned registers(char matrix) const {
        if (element == Element::f16 && matrix != 'c' && matrix != 'd') return 8;
        return perLane() / perRegister();
    }
};

Fragment fragmentOf(char matrix, const MatrixShape& shape, Element element) {
    if (matrix == 'a') return {shape.m, shape.k, element};
    if (matrix == 'b') return {shape.k, shape.n, element};
    return {shape.m, shape.n, element};
}

/// Instr::imm of a load or store holds the offset; `n` the element, `flags` the layout and `c` the
/// leading dimension. The first further operand is a constant: rows | columns << 16.
constexpr uint8_t kByColumns = 1;

uint64_t addressOf(Exec& x, const Instr& in, unsigned lane) {
    auto offset = static_cast<uint64_t>(in.imm);
    if (!(in.aux & kUniformAddress)) {
        offset += in.aux & kWideAddress ? x.from<uint64_t>(in.a)[lane]
                                        : uint64_t{x.from<uint32_t>(in.a)[lane]};
    }
    return static_cast<Space>(in.aux & 0xff) == Space::shared ? kSharedWindow + offset : offset;
}

struct Transfer {
    Fragment fragment;
    unsigned registers;
    const Ref* refs;

    Transfer(const Exec& x, const Instr& in) {
        uint32_t size = x.from<uint32_t>(in.b)[0];
        fragment = {size & 0xff, size >> 8 & 0xff, static_cast<Element>(in.n)};
        registers = size >> 16;
        refs = x.more(in);
    }
    /// The place of a lane's element in memory, in bits.
    uint64_t bitOf(const Instr& in, unsigned lane, unsigned e, uint64_t leading) const {
        unsigned index = lane * fragment.perLane() + e % fragment.perLane();
        unsigned row = index / fragment.columns, column = index % fragment.columns;
        uint64_t place = in.flags & kByColumns ? column * leading + row : row * leading + column;
        return place * bitsOf(fragment.element);
    }
};

bool refuseAccess(Exec& x, const Instr& in, unsigned lane) {
    x.fail(700, lane, in, "matrix access outside of any allocation");
    return false;
}

void loadLoop(Exec& x, const Instr& in, uint32_t m) {
    if (!gather(x, m, kAllLanes)) return;
    Transfer transfer(x, in);
    unsigned bits = bitsOf(transfer.fragment.element),
             perRegister = transfer.fragment.perRegister();
    for (; m != 0; m &= m - 1) {
        auto lane = static_cast<unsigned>(std::countr_zero(m));
        uint64_t base = addressOf(x, in, lane), leading = x.from<uint32_t>(in.c)[lane];
        for (unsigned reg = 0; reg < transfer.registers; ++reg) {
            uint64_t word = 0;
            for (unsigned part = 0; part < perRegister; ++part) {
                uint64_t bit = transfer.bitOf(in, lane, reg * perRegister + part, leading);
                unsigned bytes = bits < 8 ? 1 : bits / 8;
                const uint8_t* from = reachGeneric(x, lane, base + bit / 8, bytes);
                if (from == nullptr) {
                    refuseAccess(x, in, lane);
                    return;
                }
                uint64_t value = 0;
                std::memcpy(&value, from, bytes);
                if (bits < 8) value = value >> (bit % 8) & ((1u << bits) - 1);
                word |= value << (part * bits);
            }
            if (bits == 64)
                x.to<uint64_t>(transfer.refs[reg])[lane] = word;
            else
                x.to<uint32_t>(transfer.refs[reg])[lane] = static_cast<uint32_t>(word);
        }
    }
}

void storeLoop(Exec& x, const Instr& in, uint32_t m) {
    if (!gather(x, m, kAllLanes)) return;
    Transfer transfer(x, in);
    unsigned bytes = bitsOf(transfer.fragment.element) / 8;
    for (; m != 0; m &= m - 1) {
        auto lane = static_cast<unsigned>(std::countr_zero(m));
        uint64_t base = addressOf(x, in, lane), leading = x.from<uint32_t>(in.c)[lane];
        for (unsigned e = 0; e < transfer.fragment.perLane(); ++e) {
            uint64_t bit = transfer.bitOf(in, lane, e, leading);
            uint8_t* to = reachGeneric(x, lane, base + bit / 8, bytes);
            if (to == nullptr) {
                refuseAccess(x, in, lane);
                return;
            }
            unsigned perRegister = transfer.fragment.perRegister();
            Ref ref = transfer.refs[e / perRegister];
            uint64_t word = bytes == 8
                                ? x.from<uint64_t>(ref)[lane]
                                : x.from<uint32_t>(ref)[lane] >> (e % perRegister * bytes * 8);
            std::memcpy(to, &word, bytes);
        }
    }
}

/// Instr::imm holds the types of d, a, b, c, a byte each, aux the shape.
void productLoop(Exec& x, const Instr& in, uint32_t m) {
    if (!gather(x, m, kAllLanes)) return;
    auto product = std::make_unique<Product>();
    product->shape = {in.aux & 0xff, in.aux >> 8 & 0xff, in.aux >> 16};
    auto type = [&](unsigned i) { return static_cast<Element>(in.imm >> (8 * i) & 0xff); };
    product->d = type(0);
    product->a = type(1);
    product->b = type(2);
    product->c = type(3);
    product->flags = in.flags;
    const MatrixShape& shape = product->shape;
    Fragment fragments[4] = {fragmentOf('d', shape, product->d), fragmentOf('a', shape, product->a),
                             fragmentOf('b', shape, product->b),
                             fragmentOf('c', shape, product->c)};
    const Ref* refs[4];
    refs[0] = x.more(in);
    for (unsigned i = 1; i < 4; ++i) {
        refs[i] = refs[i - 1] + fragments[i - 1].registers("dabc"[i - 1]);
    }
    bool floating = isFloating(product->a);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        for (unsigned e = 0, n = fragments[1].perLane(); e < n; ++e) {
            if (floating)
                product->left[lane * n + e] = readFloating(x, refs[1], lane, e, product->a);
            else
                product->ints[lane * n + e] = readInteger(x, refs[1], lane, e, product->a);
        }
        for (unsigned e = 0, n = fragments[2].perLane(); e < n; ++e) {
            if (floating)
                product->right[lane * n + e] = readFloating(x, refs[2], lane, e, product->b);
            else
                product->other[lane * n + e] = readInteger(x, refs[2], lane, e, product->b);
        }
        for (unsigned e = 0, n = fragments[3].perLane(); e < n; ++e) {
            product->sum[lane * n + e] = isFloating(product->c)
                                             ? readFloating(x, refs[3], lane, e, product->c)
                                             : readInteger(x, refs[3], lane, e, product->c);
        }
    }
    product->multiply();
    eachLane(m, [&](unsigned lane) {
        for (unsigned e = 0, n = fragments[0].perLane(); e < n; ++e) {
            writeElement(x, refs[0], lane, e, product->d, product->sum[lane * n + e], in.flags);
        }
    });
}

bool fits(Element element, std::string_view shape) {
    switch (element) {
        case Element::f16:
        case Element::bf16:
        case Element::u8:
        case Element::s8:
            return shape == "m16n16k16" || shape == "m8n32k16" || shape == "m32n8k16";
        case Element::tf32:
            return shape == "m16n16k8";
        case Element::f64:
            return shape == "m8n8k4";
        case Element::u4:
        case Element::s4:
            return shape == "m8n8k32";
        case Element::b1:
            return shape == "m8n8k128";
        default:
            return false;
    }
}

/// The modifiers of a shape and of elements, taken in the order that they stand in.
struct Words {
    MatrixShape shape;
    std::string_view shapeName;
    std::vector<Element> elements;
};

Words takeWords(FunctionDecoder& d) {
    Words words;
    for (std::string_view mod : d.instruction().mods) {
        Element element;
        if (shapeOf(mod, words.shape)) {
            words.shapeName = mod;
            d.takeMod(mod);
        } else if (elementOf(mod, element)) {
            words.elements.push_back(element);
            d.takeMod(mod);
        }
    }
    if (words.shapeName.empty() || words.shape.m > 32 || words.shape.n > 32) d.unsupported();
    return words;
}

std::vector<Operand> itemsOf(const Operand& operand) {
    return operand.kind == Operand::Kind::vector ? operand.items : std::vector<Operand>{operand};
}

Type registerType(Element element) {
    return element == Element::f64 ? Type::f64 : Type::b32;
}

void needRegisters(FunctionDecoder& d, size_t given, unsigned wanted) {
    if (given == wanted) return;
    d.refuse("a fragment of " + std::to_string(wanted) + " registers is wanted, not of " +
             std::to_string(given));
}

/// wmma.load.{a,b,c} and wmma.store.d.
void decodeTransfer(FunctionDecoder& d, bool load) {
    std::string_view matrix = load ? d.takeOneOf({"a", "b", "c"}) : d.takeOneOf({"d"});
    bool byColumns = d.takeOneOf({"row", "col"}) == "col";
    size_t place = load ? 1 : 0;
    if (d.operandCount() != 3) d.needOperands(2);
    Space space = takeMemorySpace(d, d.operand(place));
    Words words = takeWords(d);
    if (matrix.empty() || words.elements.size() != 1) d.unsupported();
    Element element = words.elements[0];
    bool accumulates = matrix == "c" || matrix == "d";
    bool known = accumulates ? element == Element::f16 || element == Element::f32 ||
                                   element == Element::s32 || element == Element::f64
                             : fits(element, words.shapeName);
    if (!known) d.unsupported("this shape with this type");
    Fragment fragment = fragmentOf(matrix[0], words.shape, element);
    std::vector<Operand> items = itemsOf(d.operand(load ? 0 : 1));
    unsigned registers = fragment.registers(matrix[0]);
    needRegisters(d, items.size(), registers);
    FunctionDecoder::Address address = d.address(d.operand(place), space);
    Ref size = d.constant(fragment.rows | fragment.columns << 8 | registers << 16, 4);
    Ref leading = d.operandCount() == 3
                      ? d.source(2, Type::u32)
                      : d.constant(byColumns ? fragment.rows : fragment.columns, 4);
    std::vector<Ref> refs;
    refs.reserve(items.size());
    for (const Operand& item : items) {
        refs.push_back(load ? d.target(item, registerType(element))
                            : d.source(item, registerType(element)));
    }
    Instr& in = d.emit(load ? loadLoop : storeLoop, kNoRef, address.base, size, leading);
    setAddress(in, address);
    in.n = static_cast<uint8_t>(element);
    in.flags = byColumns ? kByColumns : 0;
    load ? d.setMore(refs, {}) : d.setMore({}, refs);
}

void decodeProduct(FunctionDecoder& d) {
    uint8_t flags = d.takeMod("satfinite") ? kSatFinite : 0;
    if (d.takeMod("popc")) flags |= d.takeMod("xor") ? kBitXor : d.takeMod("and") ? kBitAnd : 0;
    // The layouts are those of the loads, and elements know their places.
    for (int i = 0; i < 2; ++i) {
        if (d.takeOneOf({"row", "col"}).empty()) d.refuse("needs two layouts");
    }
    std::string_view rounding = d.takeOneOf({"rn", "rz", "rm", "rp"});
    Words words = takeWords(d);
    if (words.elements.size() == 2) {  // of f16: only the types of d and c are named
        words.elements = {words.elements[0], Element::f16, Element::f16, words.elements[1]};
    }
    if (words.elements.size() != 4 || !fits(words.elements[1], words.shapeName) ||
        words.elements[1] != words.elements[2]) {
        d.unsupported("these types");
    }
    if (!rounding.empty() && rounding != "rn") d.unsupported("." + std::string(rounding));
    if ((words.elements[1] == Element::b1) != ((flags & (kBitAnd | kBitXor)) != 0)) {
        d.refuse(".b1 needs .xor.popc or .and.popc");
    }
    d.needOperands(4);
    std::vector<Ref> results, sources;
    int64_t types = 0;
    for (unsigned i = 0; i < 4; ++i) {
        Element element = words.elements[i];
        types |= static_cast<int64_t>(element) << (8 * i);
        std::vector<Operand> items = itemsOf(d.operand(i));
        needRegisters(d, items.size(),
                      fragmentOf("dabc"[i], words.shape, element).registers("dabc"[i]));
        for (const Operand& item : items) {
            Type type = registerType(element);
            if (i == 0)
                results.push_back(d.target(item, type));
            else
                sources.push_back(d.source(item, type));
        }
    }
    Instr& in = d.emit(productLoop);
    in.imm = types;
    in.aux = words.shape.m | words.shape.n << 8 | words.shape.k << 16;
    in.flags = flags;
    d.setMore(results, sources);
}

void decodeWmma(FunctionDecoder& d) {
    if (!d.takeMod("sync") || !d.takeMod("aligned")) d.unsupported();
    if (d.takeMod("load")) return decodeTransfer(d, true);
    if (d.takeMod("store")) return decodeTransfer(d, false);
    if (d.takeMod("mma")) return decodeProduct(d);
    d.unsupported();
}

constexpr std::array<ptx::OpEntry, 1> kOps{{{"wmma", decodeWmma}}};

}  // namespace

std::span<const ptx::OpEntry> wmmaOps() {
    return kOps;
}

}  // namespace juice::softgpu

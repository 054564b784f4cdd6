#include "native/softgpu/exec/matrix.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "native/softgpu/exec/floats.h"
#include "native/softgpu/exec/half.h"

namespace juice::softgpu {
namespace {

constexpr std::array<std::pair<std::string_view, unsigned>, 13> kElements{{
    {"f16", 16},
    {"bf16", 16},
    {"tf32", 32},
    {"e4m3", 8},
    {"e5m2", 8},
    {"f64", 64},
    {"u8", 8},
    {"s8", 8},
    {"u4", 4},
    {"s4", 4},
    {"b1", 1},
    {"f32", 32},
    {"s32", 32},
}};

/// The bits of element `e`, which has at most 32.
uint32_t fieldOf(const Exec& x, const Ref* refs, unsigned lane, unsigned e, unsigned bits) {
    unsigned perRegister = 32 / bits;
    uint32_t word = x.from<uint32_t>(refs[e / perRegister])[lane];
    uint32_t field = word >> (e % perRegister * bits);
    return bits == 32 ? field : field & ((1u << bits) - 1);
}

/// .satfinite of floats: no infinity, and zero for NaN.
double finite(double value, double largest) {
    if (value != value) return 0;
    return std::clamp(value, -largest, largest);
}

}  // namespace

bool elementOf(std::string_view word, Element& element) {
    for (size_t i = 0; i < kElements.size(); ++i) {
        if (kElements[i].first != word) continue;
        element = static_cast<Element>(i);
        return true;
    }
    return false;
}

unsigned bitsOf(Element element) {
    return kElements[static_cast<size_t>(element)].second;
}

bool shapeOf(std::string_view word, MatrixShape& shape) {
    if (word.empty() || word[0] != 'm') return false;
    std::array<uint32_t*, 3> sizes = {&shape.m, &shape.n, &shape.k};
    constexpr std::string_view kLetters = "mnk";
    size_t at = 0;
    for (size_t i = 0; i < 3; ++i) {
        if (at >= word.size() || word[at] != kLetters[i]) return false;
        *sizes[i] = 0;
        for (++at; at < word.size() && word[at] >= '0' && word[at] <= '9'; ++at) {
            *sizes[i] = std::min(*sizes[i] * 10 + static_cast<uint32_t>(word[at] - '0'), 1000u);
        }
        if (*sizes[i] == 0) return false;
    }
    return at == word.size();
}

double readFloating(const Exec& x, const Ref* refs, unsigned lane, unsigned e, Element element) {
    if (element == Element::f64) return x.from<double>(refs[e])[lane];
    uint32_t bits = fieldOf(x, refs, lane, e, bitsOf(element));
    switch (element) {
        case Element::f16:
            return static_cast<double>(halfToFloat(static_cast<uint16_t>(bits)));
        case Element::bf16:
            return static_cast<double>(bf16ToFloat(static_cast<uint16_t>(bits)));
        case Element::tf32:  // the last 13 digits do not count
            return static_cast<double>(std::bit_cast<float>(bits & ~0x1fffu));
        case Element::e4m3:
            return static_cast<double>(eightToFloat<false>(static_cast<uint8_t>(bits)));
        case Element::e5m2:
            return static_cast<double>(eightToFloat<true>(static_cast<uint8_t>(bits)));
        default:
            return static_cast<double>(std::bit_cast<float>(bits));
    }
}

int32_t readInteger(const Exec& x, const Ref* refs, unsigned lane, unsigned e, Element element) {
    unsigned bits = bitsOf(element);
    uint32_t field = fieldOf(x, refs, lane, e, bits);
    bool isSigned = element == Element::s8 || element == Element::s4;
    if (isSigned && bits < 32 && (field >> (bits - 1) & 1)) field |= ~0u << bits;
    return static_cast<int32_t>(field);
}

void writeElement(Exec& x, const Ref* refs, unsigned lane, unsigned e, Element element,
                  double value, uint8_t flags) {
    switch (element) {
        case Element::f64:
            x.to<double>(refs[e])[lane] = value;
            return;
        case Element::f32:
            if (flags & kSatFinite) value = finite(value, std::numeric_limits<float>::max());
            x.to<float>(refs[e])[lane] = canonical(static_cast<float>(value));
            return;
        case Element::f16: {
            if (flags & kSatFinite) value = finite(value, 65504);
            auto* words = reinterpret_cast<uint16_t*>(&x.to<uint32_t>(refs[e / 2])[lane]);
            words[e % 2] = Half<false>::narrow(value);
            return;
        }
        default: {
            auto whole = static_cast<int64_t>(value);
            if (flags & kSatFinite) whole = std::clamp<int64_t>(whole, INT32_MIN, INT32_MAX);
            x.to<uint32_t>(refs[e])[lane] = static_cast<uint32_t>(whole);
        }
    }
}

void Product::multiply() {
    for (unsigned row = 0; row < shape.m; ++row) {
        for (unsigned column = 0; column < shape.n; ++column) {
            double& total = sum[row * shape.n + column];
            if (a == Element::f64) {
                for (unsigned i = 0; i < shape.k; ++i) {
                    total = std::fma(left[row * shape.k + i], right[i * shape.n + column], total);
                }
            } else if (isFloating(a)) {
                double products = 0;
                for (unsigned i = 0; i < shape.k; ++i) {
                    products += left[row * shape.k + i] * right[i * shape.n + column];
                }
                total += products;
            } else {
                int64_t products = 0;
                for (unsigned i = 0; i < shape.k; ++i) {
                    int64_t p = ints[row * shape.k + i], q = other[i * shape.n + column];
                    products += flags & kBitXor ? p ^ q : flags & kBitAnd ? p & q : p * q;
                }
                total += static_cast<double>(products);
            }
        }
    }
}

}  // namespace juice::softgpu

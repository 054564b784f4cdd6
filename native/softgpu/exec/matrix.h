// What mma and wmma share: the element types of matrices, and the product itself.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "native/softgpu/exec/state.h"

namespace juice::softgpu {

enum class Element : uint8_t { f16, bf16, tf32, e4m3, e5m2, f64, u8, s8, u4, s4, b1, f32, s32 };

/// The element type that a modifier names; false if it names none.
bool elementOf(std::string_view word, Element& element);
unsigned bitsOf(Element element);
inline bool isFloating(Element element) {
    return element <= Element::f64 || element == Element::f32;
}

struct MatrixShape {
    uint32_t m = 0, n = 0, k = 0;
};
/// "m16n8k16"; false if it is no shape.
bool shapeOf(std::string_view word, MatrixShape& shape);

inline constexpr uint8_t kSatFinite = 1, kBitAnd = 2, kBitXor = 4;

/// One product d = a * b + c: rows of a, of b and of c one after the other.
struct Product {
    static constexpr unsigned kMost = 4096;
    MatrixShape shape;
    Element a, b, c, d;
    uint8_t flags = 0;
    std::array<double, kMost> left, right;   // of floats
    std::array<int32_t, kMost> ints, other;  // of integers and bits
    std::array<double, kMost / 8> sum;       // c, then d; whole numbers for integers

    void multiply();
};

/// Reads and writes one element of a fragment: number `e` of the registers `refs` in a lane.
double readFloating(const Exec& x, const Ref* refs, unsigned lane, unsigned e, Element element);
int32_t readInteger(const Exec& x, const Ref* refs, unsigned lane, unsigned e, Element element);
void writeElement(Exec& x, const Ref* refs, unsigned lane, unsigned e, Element element,
                  double value, uint8_t flags);

}  // namespace juice::softgpu

// Opcodes that integers and floats share: hands each on by its type.
#include <array>

#include "native/softgpu/exec/ops.h"

namespace juice::softgpu {
namespace {

void decodeArithmetic(ptx::FunctionDecoder& d) {
    std::string_view op = d.instruction().op;
    ptx::Type type = d.takeType();
    switch (type) {
        case ptx::Type::f32:
        case ptx::Type::f64:
            return decodeFloatArithmetic(d, op, type);
        case ptx::Type::f16:
        case ptx::Type::f16x2:
        case ptx::Type::bf16:
        case ptx::Type::bf16x2:
            return decodeHalfArithmetic(d, op, type);
        case ptx::Type::u16x2:
        case ptx::Type::s16x2:
            return decodePackedArithmetic(d, op, type);
        default:
            if (!ptx::isInteger(type)) d.unsupported("." + std::string(nameOf(type)) + " here");
            return decodeIntegerArithmetic(d, op, type);
    }
}

constexpr std::array<ptx::OpEntry, 10> kOps{{
    {"add", decodeArithmetic},
    {"sub", decodeArithmetic},
    {"mul", decodeArithmetic},
    {"mad", decodeArithmetic},
    {"fma", decodeArithmetic},
    {"div", decodeArithmetic},
    {"abs", decodeArithmetic},
    {"neg", decodeArithmetic},
    {"min", decodeArithmetic},
    {"max", decodeArithmetic},
}};

}  // namespace

std::span<const ptx::OpEntry> arithmeticOps() {
    return kOps;
}

}  // namespace juice::softgpu

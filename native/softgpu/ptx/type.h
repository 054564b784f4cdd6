// The scalar types of PTX, and how wide each is in memory and in a register.
#pragma once

#include <cstdint>
#include <string_view>

namespace juice::softgpu::ptx {

enum class Type : uint8_t {
    none,
    pred,
    b8,
    b16,
    b32,
    b64,
    b128,
    u8,
    u16,
    u32,
    u64,
    s8,
    s16,
    s32,
    s64,
    u16x2,
    s16x2,
    f16,
    f16x2,
    bf16,
    bf16x2,
    f32,
    f64,
};

/// The type that a modifier such as "u32" names; Type::none if it names none.
Type typeOf(std::string_view word);

/// The word of a type, without its dot, for messages.
std::string_view nameOf(Type type);

/// Bytes of one value in memory. Predicates have none and give 0.
constexpr unsigned sizeOf(Type type) {
    switch (type) {
        case Type::b8:
        case Type::u8:
        case Type::s8:
            return 1;
        case Type::b16:
        case Type::u16:
        case Type::s16:
        case Type::f16:
        case Type::bf16:
            return 2;
        case Type::b32:
        case Type::u32:
        case Type::s32:
        case Type::f32:
        case Type::u16x2:
        case Type::s16x2:
        case Type::f16x2:
        case Type::bf16x2:
            return 4;
        case Type::b64:
        case Type::u64:
        case Type::s64:
        case Type::f64:
            return 8;
        case Type::b128:
            return 16;
        case Type::none:
        case Type::pred:
            return 0;
    }
    return 0;
}

constexpr bool isSigned(Type type) {
    return type == Type::s8 || type == Type::s16 || type == Type::s32 || type == Type::s64;
}

constexpr bool isUnsigned(Type type) {
    return type == Type::u8 || type == Type::u16 || type == Type::u32 || type == Type::u64;
}

constexpr bool isInteger(Type type) {
    return isSigned(type) || isUnsigned(type);
}

constexpr bool isBits(Type type) {
    return type == Type::b8 || type == Type::b16 || type == Type::b32 || type == Type::b64 ||
           type == Type::b128;
}

constexpr bool isFloat(Type type) {
    return type >= Type::f16;
}

/// The untyped (.bN) type of the same width: what registers are allocated by.
constexpr Type bitsOf(Type type) {
    if (type == Type::pred || type == Type::none) return type;
    switch (sizeOf(type)) {
        case 1:
            return Type::b8;
        case 2:
            return Type::b16;
        case 4:
            return Type::b32;
        case 8:
            return Type::b64;
        default:
            return Type::b128;
    }
}

}  // namespace juice::softgpu::ptx

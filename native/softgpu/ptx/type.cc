#include "native/softgpu/ptx/type.h"

#include <array>
#include <utility>

namespace juice::softgpu::ptx {
namespace {

constexpr std::array<std::pair<std::string_view, Type>, 22> kNames{{
    {"pred", Type::pred}, {"b8", Type::b8},       {"b16", Type::b16},     {"b32", Type::b32},
    {"b64", Type::b64},   {"b128", Type::b128},   {"u8", Type::u8},       {"u16", Type::u16},
    {"u32", Type::u32},   {"u64", Type::u64},     {"s8", Type::s8},       {"s16", Type::s16},
    {"s32", Type::s32},   {"s64", Type::s64},     {"u16x2", Type::u16x2}, {"s16x2", Type::s16x2},
    {"f16", Type::f16},   {"f16x2", Type::f16x2}, {"bf16", Type::bf16},   {"bf16x2", Type::bf16x2},
    {"f32", Type::f32},   {"f64", Type::f64},
}};

}  // namespace

Type typeOf(std::string_view word) {
    for (const auto& [name, type] : kNames) {
        if (name == word) return type;
    }
    return Type::none;
}

std::string_view nameOf(Type type) {
    for (const auto& [name, named] : kNames) {
        if (named == type) return name;
    }
    return "none";
}

}  // namespace juice::softgpu::ptx

// Bounds-checked little-endian reads from image bytes.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>

namespace juice::image {

/// Memory from `at` on, of which `limit` bytes may be read.
struct Source {
    const uint8_t* at;
    uint64_t limit;

    bool holds(uint64_t offset, uint64_t size) const {
        return offset <= limit && size <= limit - offset;
    }

    /// The T at `offset`, or nothing when it lies outside.
    template <typename T>
    std::optional<T> read(uint64_t offset) const {
        if (!holds(offset, sizeof(T))) return std::nullopt;
        T value;
        std::memcpy(&value, at + offset, sizeof(T));
        return value;
    }
};

}  // namespace juice::image

// MD2 (RFC 1319) and HMAC over it (RFC 2104). For one purpose: the answer of the runtime's validity
// table. Nothing else should use so old a hash.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace juice::tables {

using Digest = std::array<uint8_t, 16>;

Digest md2(std::span<const uint8_t> message);

/// HMAC-MD2 with MD2's block size of 16 bytes. The key is at most 16 bytes long.
Digest hmacMd2(std::span<const uint8_t> key, std::span<const uint8_t> message);

}  // namespace juice::tables

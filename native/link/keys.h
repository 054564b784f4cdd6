// Keys of a session. The session key never leaves broker and host; everything else is derived.
//
//   broker key    HKDF-SHA256(session key, salt = session id (16 bytes), info = "broker")
//   process key   HKDF-SHA256(session key, salt = session id, info = "process/<decimal number>")
//
// src/protocol/seal.ts derives the same keys; the golden vectors of test/data/wire/keys.json hold
// both to it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "native/link/codec.h"
#include "native/link/wire.h"

namespace juice {

using Key = std::array<uint8_t, 32>;
using SessionId = std::array<uint8_t, 16>;

/// Who opens a lane, and the key that proves it.
struct Credentials {
    SessionId session{};
    uint64_t process = 0;
    Key key{};
};

std::array<uint8_t, 32> sha256(Bytes message);
std::array<uint8_t, 32> hmacSha256(Bytes key, Bytes message);
/// RFC 5869; at most 255 * 32 bytes.
void hkdfSha256(Bytes secret, Bytes salt, Bytes info, std::span<uint8_t> out);
Key deriveKey(const Key& sessionKey, const SessionId& session, std::string_view info);
/// Constant-time comparison.
bool sameBytes(Bytes a, Bytes b);
/// From the kernel. Ends the process when the kernel has none to give: there is no safe answer.
void randomBytes(uint8_t* out, size_t size);

/// The bytes of a struct, or of a text (without a terminator), to be hashed or compared.
template <typename T>
requires std::is_trivially_copyable_v<T> Bytes bytesOf(const T& value) {
    return {reinterpret_cast<const uint8_t*>(&value), sizeof value};
}
inline Bytes textBytes(std::string_view text) {
    return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

/// A preface with a fresh nonce, proven with the credentials' key.
wire::Preface makePreface(const Credentials& who, uint16_t lane);
/// Magic, version and proof; false on any mismatch.
bool provesKey(const wire::Preface& preface, const Key& key);

}  // namespace juice

// Keys of a session. The session key never leaves broker and host; everything else is derived.
//
//   broker key    HKDF-SHA256(session key, salt = session id (16 bytes), info = "broker")
//   process key   HKDF-SHA256(session key, salt = session id, info = "process/<decimal number>")
//
// src/protocol/seal.ts derives the same keys; golden vectors hold both to it.
#pragma once

#include <array>
#include <cstdint>

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

std::array<uint8_t, 32> hmacSha256(const Key& key, Bytes message);
std::array<uint8_t, 32> sha256(Bytes message);
Key deriveKey(const Key& sessionKey, const SessionId& session, std::string_view info);
/// Constant-time comparison.
bool sameBytes(Bytes a, Bytes b);
void randomBytes(uint8_t* out, size_t size);

/// A preface with a fresh nonce, proven with the credentials' key.
wire::Preface makePreface(const Credentials& who, uint16_t lane);
/// Magic, version and proof; false on any mismatch.
bool provesKey(const wire::Preface& preface, const Key& key);

}  // namespace juice

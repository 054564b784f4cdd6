// libcrypto's plain SHA-256 functions are deprecated in favour of EVP. They are used on purpose:
// they allocate nothing, need no library state and leave no exit handler or thread key behind,
// which is what a guest in somebody's process wants. HMAC and HKDF are a few lines above them.
#define OPENSSL_SUPPRESS_DEPRECATED

#include "native/link/keys.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace juice {
namespace {

using Digest = std::array<uint8_t, 32>;
constexpr size_t kBlock = 64;

/// HMAC in pieces, so that HKDF needs no buffer for what it chains.
class Hmac {
  public:
    explicit Hmac(Bytes key) {
        std::array<uint8_t, kBlock> block{};
        if (key.size() > kBlock) {
            const Digest hashed = sha256(key);
            std::copy(hashed.begin(), hashed.end(), block.begin());
        } else {
            std::copy(key.begin(), key.end(), block.begin());
        }
        for (auto& byte : block) byte ^= 0x36;
        SHA256_Init(&inner_);
        SHA256_Update(&inner_, block.data(), kBlock);
        for (auto& byte : block) byte ^= 0x36 ^ 0x5c;
        SHA256_Init(&outer_);
        SHA256_Update(&outer_, block.data(), kBlock);
        OPENSSL_cleanse(block.data(), kBlock);
    }
    ~Hmac() {
        OPENSSL_cleanse(&inner_, sizeof inner_);
        OPENSSL_cleanse(&outer_, sizeof outer_);
    }
    Hmac(const Hmac&) = delete;
    Hmac& operator=(const Hmac&) = delete;

    Hmac& add(Bytes message) {
        if (!message.empty()) SHA256_Update(&inner_, message.data(), message.size());
        return *this;
    }
    Digest finish() {
        Digest out;
        SHA256_Final(out.data(), &inner_);
        SHA256_Update(&outer_, out.data(), out.size());
        SHA256_Final(out.data(), &outer_);
        return out;
    }

  private:
    SHA256_CTX inner_, outer_;
};

constexpr size_t kProven = offsetof(wire::Preface, proof);

Digest proofOf(const wire::Preface& preface, const Key& key) {
    return Hmac(key).add(textBytes("preface")).add(bytesOf(preface).first(kProven)).finish();
}

}  // namespace

std::array<uint8_t, 32> sha256(Bytes message) {
    SHA256_CTX state;
    Digest out;
    SHA256_Init(&state);
    if (!message.empty()) SHA256_Update(&state, message.data(), message.size());
    SHA256_Final(out.data(), &state);
    return out;
}

std::array<uint8_t, 32> hmacSha256(Bytes key, Bytes message) {
    return Hmac(key).add(message).finish();
}

void hkdfSha256(Bytes secret, Bytes salt, Bytes info, std::span<uint8_t> out) {
    Digest extracted = hmacSha256(salt, secret);
    Digest block{};
    uint8_t counter = 0;
    while (!out.empty()) {
        Hmac mac(extracted);
        if (counter > 0) mac.add(block);
        ++counter;
        block = mac.add(info).add({&counter, 1}).finish();
        const size_t size = std::min(out.size(), block.size());
        std::copy_n(block.begin(), size, out.begin());
        out = out.subspan(size);
    }
    OPENSSL_cleanse(extracted.data(), extracted.size());
    OPENSSL_cleanse(block.data(), block.size());
}

Key deriveKey(const Key& sessionKey, const SessionId& session, std::string_view info) {
    Key key;
    hkdfSha256(sessionKey, session, textBytes(info), key);
    return key;
}

bool sameBytes(Bytes a, Bytes b) {
    return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

void randomBytes(uint8_t* out, size_t size) {
    while (size > 0) {
        const ssize_t got = getrandom(out, size, 0);
        if (got < 0) {
            if (errno == EINTR) continue;
            std::abort();
        }
        out += got;
        size -= static_cast<size_t>(got);
    }
}

wire::Preface makePreface(const Credentials& who, uint16_t lane) {
    wire::Preface preface{};
    std::memcpy(preface.magic, wire::kMagic, sizeof preface.magic);
    preface.version = wire::kVersion;
    preface.lane = lane;
    std::copy(who.session.begin(), who.session.end(), preface.session);
    preface.process = who.process;
    randomBytes(preface.nonce, sizeof preface.nonce);
    const Digest proof = proofOf(preface, who.key);
    std::copy_n(proof.begin(), sizeof preface.proof, preface.proof);
    return preface;
}

bool provesKey(const wire::Preface& preface, const Key& key) {
    if (std::memcmp(preface.magic, wire::kMagic, sizeof preface.magic) != 0) return false;
    if (preface.version != wire::kVersion || preface.flags != 0) return false;
    const Digest proof = proofOf(preface, key);
    return sameBytes(preface.proof, Bytes(proof).first(sizeof preface.proof));
}

}  // namespace juice

// Keys against the RFCs' vectors and against the golden vectors that the TypeScript side shares.
#include "native/link/keys.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

namespace juice {
namespace {

std::vector<uint8_t> unhex(const std::string& hex) {
    std::vector<uint8_t> out;
    for (size_t i = 0; i + 1 < hex.size(); i += 2)
        out.push_back(static_cast<uint8_t>(std::stoul(hex.substr(i, 2), nullptr, 16)));
    return out;
}
std::string hex(Bytes bytes) {
    std::string out;
    char digits[3];
    for (const uint8_t byte : bytes) {
        std::snprintf(digits, sizeof digits, "%02x", byte);
        out += digits;
    }
    return out;
}
template <size_t N>
std::array<uint8_t, N> fixed(const std::string& text) {
    const auto bytes = unhex(text);
    std::array<uint8_t, N> out{};
    EXPECT_EQ(bytes.size(), N);
    std::copy_n(bytes.begin(), std::min(N, bytes.size()), out.begin());
    return out;
}

/// Every value of `field` in the golden file, in order.
std::vector<std::string> golden(const std::string& field) {
    std::ifstream file(JUICE_WIRE_DATA "/keys.json");
    const std::string before = "\"" + field + "\": ";
    std::vector<std::string> out;
    for (std::string line; std::getline(file, line);) {
        size_t at = line.find(before);
        if (at == std::string::npos) continue;
        at = line.find_first_not_of('"', at + before.size());
        out.push_back(line.substr(at, line.find_first_of("\",", at) - at));
    }
    return out;
}

std::string hmacHex(const std::string& key, const std::string& message) {
    return hex(hmacSha256(unhex(key), unhex(message)));
}

TEST(Keys, HmacGivesTheAnswersOfRfc4231) {
    EXPECT_EQ(hmacHex("0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b", "4869205468657265"),
              "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    EXPECT_EQ(hex(hmacSha256(textBytes("Jefe"), textBytes("what do ya want for nothing?"))),
              "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    const std::vector<uint8_t> aa(20, 0xaa), dd(50, 0xdd), longKey(131, 0xaa), cd(50, 0xcd);
    EXPECT_EQ(hex(hmacSha256(aa, dd)),
              "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
    EXPECT_EQ(hex(hmacSha256(unhex("0102030405060708090a0b0c0d0e0f10111213141516171819"), cd)),
              "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
    EXPECT_EQ(hex(hmacSha256(longKey,
                             textBytes("Test Using Larger Than Block-Size Key - Hash Key First"))),
              "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    EXPECT_EQ(hex(hmacSha256(
                  longKey,
                  textBytes("This is a test using a larger than block-size key and a larger than "
                            "block-size data. The key needs to be hashed before being used by the "
                            "HMAC algorithm."))),
              "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

TEST(Keys, HkdfGivesTheAnswersOfRfc5869) {
    std::vector<uint8_t> out(42);
    const std::vector<uint8_t> secret(22, 0x0b);
    hkdfSha256(secret, unhex("000102030405060708090a0b0c"), unhex("f0f1f2f3f4f5f6f7f8f9"), out);
    EXPECT_EQ(
        hex(out),
        "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865");
    hkdfSha256(secret, {}, {}, out);
    EXPECT_EQ(
        hex(out),
        "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8");
    std::vector<uint8_t> ikm, salt, info;
    for (int i = 0; i < 80; ++i) {
        ikm.push_back(static_cast<uint8_t>(i));
        salt.push_back(static_cast<uint8_t>(0x60 + i));
        info.push_back(static_cast<uint8_t>(0xb0 + i));
    }
    out.resize(82);
    hkdfSha256(ikm, salt, info, out);
    EXPECT_EQ(
        hex(out),
        "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c6"
        "5e590e09da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87");
}

TEST(Keys, DerivedKeysAreThoseOfTheGoldenVectors) {
    const auto sessionKeys = golden("sessionKey"), sessions = golden("session"),
               labels = golden("label"), keys = golden("key");
    ASSERT_GE(labels.size(), 5u);
    ASSERT_GE(keys.size(), labels.size());
    for (size_t i = 0; i < labels.size(); ++i)
        EXPECT_EQ(hex(deriveKey(fixed<32>(sessionKeys[i]), fixed<16>(sessions[i]), labels[i])),
                  keys[i])
            << labels[i];
}

TEST(Keys, PrefacesOfTheGoldenVectorsProveTheirKeys) {
    const auto prefaces = golden("bytes"), keys = golden("key");
    ASSERT_EQ(prefaces.size(), 2u);
    for (size_t i = 0; i < prefaces.size(); ++i) {
        const auto bytes = fixed<64>(prefaces[i]);
        wire::Preface preface;
        std::memcpy(&preface, bytes.data(), sizeof preface);
        EXPECT_TRUE(provesKey(preface, fixed<32>(keys[keys.size() - prefaces.size() + i])));
    }
}

TEST(Keys, APrefaceProvesItsKeyAndNoOther) {
    Credentials who{{1, 2, 3}, 7, {9, 9, 9}};
    const auto preface = makePreface(who, 3);
    EXPECT_EQ(preface.lane, 3);
    EXPECT_EQ(preface.process, 7u);
    EXPECT_TRUE(provesKey(preface, who.key));
    Key other = who.key;
    other[31] ^= 1;
    EXPECT_FALSE(provesKey(preface, other));
    const auto again = makePreface(who, 3);
    EXPECT_NE(std::memcmp(preface.nonce, again.nonce, sizeof preface.nonce), 0);
}

TEST(Keys, APrefaceWithAnyBitChangedProvesNothing) {
    Credentials who{{1, 2, 3}, 7, {9, 9, 9}};
    const auto preface = makePreface(who, 0);
    for (size_t bit = 0; bit < sizeof preface * 8; ++bit) {
        auto changed = preface;
        reinterpret_cast<uint8_t*>(&changed)[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
        EXPECT_FALSE(provesKey(changed, who.key)) << "bit " << bit;
    }
}

TEST(Keys, BytesAreTheSameOnlyInLengthAndContent) {
    const std::vector<uint8_t> a{1, 2, 3}, b{1, 2, 4}, c{1, 2};
    EXPECT_TRUE(sameBytes(a, a));
    EXPECT_FALSE(sameBytes(a, b));
    EXPECT_FALSE(sameBytes(a, c));
}

}  // namespace
}  // namespace juice

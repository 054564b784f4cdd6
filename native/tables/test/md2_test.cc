#include "native/tables/md2.h"

#include <gtest/gtest.h>

#include <string>

#include "native/tables/integrity.h"

namespace juice::tables {
namespace {

std::span<const uint8_t> bytes(const std::string& text) {
    return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::string hex(const Digest& digest) {
    std::string text;
    for (const uint8_t byte : digest) {
        text += "0123456789abcdef"[byte >> 4];
        text += "0123456789abcdef"[byte & 15];
    }
    return text;
}

TEST(Md2, GivesTheRfcsTestVectors) {
    const auto of = [](const std::string& text) { return hex(md2(bytes(text))); };
    EXPECT_EQ(of(""), "8350e5a3e24c153df2275c9f80692773");
    EXPECT_EQ(of("a"), "32ec01ec4a6dac72c0ab96fb34c0b5d1");
    EXPECT_EQ(of("abc"), "da853b0d3f88d99b30283a69e6ded6bb");
    EXPECT_EQ(of("message digest"), "ab4f496bfb2a530b219ff33031fe06b0");
    EXPECT_EQ(of("abcdefghijklmnopqrstuvwxyz"), "4e8ddff3650292ab5a4108c3aa47940b");
    EXPECT_EQ(of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"),
              "da33def2a42df13975352846c30338cd");
    EXPECT_EQ(of("1234567890123456789012345678901234567890123456789012345678901234567890123456"
                 "7890"),
              "d5976f79d83d3a0dc9806c3c66f3efd8");
}

TEST(HmacMd2, IsTheHashOfTheOuterKeyAndTheInnerHash) {
    const std::string key(16, 'k');
    std::string inner, outer;
    for (const char c : key) inner += static_cast<char>(c ^ 0x36);
    for (const char c : key) outer += static_cast<char>(c ^ 0x5c);
    const Digest first = md2(bytes(inner + "message"));
    const Digest expected = md2(bytes(outer + std::string(first.begin(), first.end())));
    EXPECT_EQ(hex(hmacMd2(bytes(key), bytes("message"))), hex(expected));
}

TEST(HmacMd2, FillsAShortKeyWithZeroes) {
    const std::string padded = std::string("key") + std::string(13, '\0');
    EXPECT_EQ(hex(hmacMd2(bytes("key"), bytes("x"))), hex(hmacMd2(bytes(padded), bytes("x"))));
}

TEST(IntegrityAnswer, IsConstantForTwoOfTheThreeQuestions) {
    IntegrityQuestion question{};
    question.version = 13000;
    EXPECT_EQ(hex(answer(question)), "5c67cb031c184133e8d14c1faa83d38e");
    question.version = 13001;
    EXPECT_EQ(hex(answer(question)), "5c67cb031c184118e8d14c1faa83d38e");
}

TEST(IntegrityAnswer, DependsOnEverythingInTheThird) {
    IntegrityQuestion base{13000, 13002, 1, 2, 3, 4, 5, 6, {DeviceIdentity{}}};
    const Digest first = answer(base);
    EXPECT_EQ(answer(base), first);
    const auto differs = [&](auto change) {
        IntegrityQuestion other = base;
        change(other);
        EXPECT_NE(answer(other), first);
    };
    differs([](auto& q) { q.driverVersion++; });
    differs([](auto& q) { q.pid++; });
    differs([](auto& q) { q.thread++; });
    differs([](auto& q) { q.cudartInterface++; });
    differs([](auto& q) { q.integrityCheck++; });
    differs([](auto& q) { q.checkFunction++; });
    differs([](auto& q) { q.unixSeconds++; });
    differs([](auto& q) { q.devices[0].uuid[0]++; });
    differs([](auto& q) { q.devices[0].pciDevice++; });
    differs([](auto& q) { q.devices.push_back({}); });
}

}  // namespace
}  // namespace juice::tables

// The encoders against the golden frames, which every version 1 of the link must produce byte for
// byte; and the small parts that frames are made of.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <map>

#include "native/link/coverage.h"
#include "native/link/frame.h"
#include "native/link/handshake.h"
#include "native/link/test/raw.h"

namespace juice::test {
namespace {

using wire::Kind;

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
std::array<uint8_t, N> counting(uint8_t from) {
    std::array<uint8_t, N> out;
    for (auto& byte : out) byte = from++;
    return out;
}

TEST(Frames, AreEncodedAsTheGoldenOnes) {
    std::map<std::string, std::string> golden;
    std::ifstream file(JUICE_WIRE_DATA "/frames.txt");
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with('#')) continue;
        const size_t space = line.find(' ');
        golden[line.substr(0, space)] = line.substr(space + 1);
    }
    const auto check = [&](const std::string& name, Bytes bytes) {
        EXPECT_EQ(hex(bytes), golden[name]) << name;
        golden.erase(name);
    };

    wire::Header header = immediate(Kind::call, 0);
    header.opcode = 0x1234;
    header.thread = 2;
    header.context = 0x01000007;
    header.sequence = 9;
    header.request = 4;
    Writer payload;
    payload.put(uint32_t{3}).put(uint64_t{0x1122334455667788}).text("hello");
    check("call", frameBytes(header, payload.view()));
    check("call-posted-empty", callBytes(1, 0, 1, {}));

    header.kind = static_cast<uint8_t>(Kind::reply);
    header.sequence = 5;
    const wire::ReplyHead head{0, 700, 0x55, 0, -1, 9, 3};
    payload.clear();
    payload.raw(&head, sizeof head);
    payload.put(uint32_t{0x04030201});
    check("reply", frameBytes(header, payload.view()));

    check("fault", faultFrame(719, 0x55));
    check("chunk", chunkBytes({6, 2, 0x80000}, std::vector<uint8_t>{0xaa, 0xbb, 0xcc}));
    check("chunk-granted", chunkBytes({6, 0, 0}, std::vector<uint8_t>{0xdd}, wire::kGranted));
    check("credit", creditFrame(wire::kChunkSize, 0));
    check("grant", creditFrame(2 * wire::kChunkSize, 6));
    check("ack", ackFrame(300, 256));
    check("goodbye", goodbyeFrame(wire::GoodbyeReason::session_ended, "the session has expired"));

    const Key key = deriveKey(counting<32>(0), counting<16>(0), "process/1");
    wire::Preface preface = makePreface({counting<16>(0), 1, key}, 0);
    const auto nonce = counting<8>(0xa0);
    std::copy(nonce.begin(), nonce.end(), preface.nonce);
    Writer proven;
    proven.raw("preface", 7);
    proven.raw(&preface, offsetof(wire::Preface, proof));
    const auto proof = hmacSha256(key, proven.view());
    std::copy_n(proof.begin(), sizeof preface.proof, preface.proof);
    const HelloNonce helloNonce = counting<16>(0xc0);
    check("hello-worker", workerHello(key, preface, helloNonce, wire::kBulkLanes));
    check("hello-client", clientHello(key, preface, helloNonce, {wire::kBulkLanes, 3, 4242}));
    check("welcome", welcomeFrame({1, 56 * wire::kChunkSize, "a worker"}));
    EXPECT_TRUE(golden.empty()) << golden.begin()->first << " is encoded by nobody";
}

TEST(Frames, AGoodbyeDecodesToWhatItSays) {
    const auto frame = goodbyeFrame(wire::GoodbyeReason::arena, "no\narena");
    Goodbye out;
    ASSERT_TRUE(decodeGoodbye(Bytes(frame).subspan(wire::kHeaderSize), out));
    EXPECT_EQ(out.reason, wire::GoodbyeReason::arena);
    EXPECT_EQ(out.sentence, "no arena");
    EXPECT_FALSE(decodeGoodbye(Bytes(frame).subspan(wire::kHeaderSize + 1), out));
}

TEST(Frames, ALongSentenceIsCutToWhatAGoodbyeMayHold) {
    const auto frame = goodbyeFrame(wire::GoodbyeReason::protocol, std::string(5000, 'x'));
    wire::Header header;
    std::memcpy(&header, frame.data(), sizeof header);
    EXPECT_EQ(checkHeader(header, From::worker, 0), "");
    EXPECT_EQ(frame.size(), wire::kHeaderSize + header.size);
}

TEST(Frames, OnlyChunksAndTheirKindTravelOnBulkLanes) {
    for (int kind = 0; kind < 256; ++kind) {
        wire::Header header = immediate(static_cast<Kind>(kind), 100);
        const bool allowed = kind == static_cast<int>(Kind::chunk) ||
                             kind == static_cast<int>(Kind::hello) ||
                             kind == static_cast<int>(Kind::goodbye);
        EXPECT_EQ(checkHeader(header, From::client, 1).empty(), allowed) << kind;
    }
}

TEST(Coverage, KnowsWhatItHasSeen) {
    Coverage seen;
    EXPECT_TRUE(seen.add(10, 10));
    EXPECT_FALSE(seen.add(10, 10));
    EXPECT_FALSE(seen.add(19, 5));
    EXPECT_FALSE(seen.add(5, 6));
    EXPECT_FALSE(seen.add(0, 100));
    EXPECT_FALSE(seen.add(12, 2));
    EXPECT_TRUE(seen.add(30, 10));
    EXPECT_EQ(seen.pieces(), 2u);
    EXPECT_TRUE(seen.add(20, 10));
    EXPECT_EQ(seen.pieces(), 1u);
    EXPECT_TRUE(seen.add(0, 10));
    EXPECT_EQ(seen.pieces(), 1u);
    EXPECT_EQ(seen.seen(), 40u);
}

TEST(Codec, AReaderNeverReadsPastItsEnd) {
    Writer out;
    out.put(uint32_t{5}).raw("abc", 3);
    Reader in(out.view());
    EXPECT_TRUE(in.bytes().empty());
    EXPECT_FALSE(in.ok());
    EXPECT_EQ(in.get<uint64_t>(), 0u);
    EXPECT_FALSE(in.done());
    EXPECT_EQ(in.remaining(), 0u);
}

TEST(Codec, WhatIsWrittenIsRead) {
    Writer out;
    out.put(int8_t{-1}).put(3.5).text("x").bytes(nullptr, 0).address(&out);
    Reader in(out.view());
    EXPECT_EQ(in.get<int8_t>(), -1);
    EXPECT_EQ(in.get<double>(), 3.5);
    EXPECT_EQ(in.text(), "x");
    EXPECT_TRUE(in.bytes().empty());
    EXPECT_EQ(in.get<uint64_t>(), reinterpret_cast<uint64_t>(&out));
    EXPECT_TRUE(in.done());
}

}  // namespace
}  // namespace juice::test

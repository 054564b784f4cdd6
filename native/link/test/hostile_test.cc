// Peers that break the protocol: each link is broken with a sentence that names the cause, and
// nothing else happens.
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "native/link/test/raw.h"
#include "native/link/test/rig.h"
#include "native/link/thread.h"

namespace juice::test {
namespace {

using wire::Kind;

std::vector<uint8_t> join(std::initializer_list<std::vector<uint8_t>> frames) {
    std::vector<uint8_t> all;
    for (const auto& frame : frames) all.insert(all.end(), frame.begin(), frame.end());
    return all;
}

std::vector<uint8_t> headerOnly(const std::function<void(wire::Header&)>& change) {
    wire::Header header = immediate(Kind::call, 0);
    header.sequence = 1;
    change(header);
    Writer out;
    out.raw(&header, sizeof header);
    return out.take();
}

struct Hostility {
    const char* name;
    std::vector<uint8_t> bytes;
    const char* sentence;
};

void PrintTo(const Hostility& hostility, std::ostream* out) {
    *out << hostility.name;
}

// ---- against a worker

class HostileClient : public testing::TestWithParam<Hostility> {};

const std::vector<uint8_t> kByte(1, 7);
const std::vector<uint8_t> kLarge(wire::kChunkSize, 7);

std::vector<Hostility> hostileClients() {
    return {
        {"UnknownKind", headerOnly([](auto& h) { h.kind = 99; }), "unknown kind 99"},
        {"HugeCall", headerOnly([](auto& h) { h.size = wire::kMaxPayload + 1; }),
         "a call frame of 1048577 bytes"},
        {"ReservedByte", headerOnly([](auto& h) { h.reserved = 1; }), "unknown flags"},
        {"Flags", headerOnly([](auto& h) { h.flags = 1; }), "unknown flags"},
        {"Epoch", headerOnly([](auto& h) { h.epoch = 1; }), "of epoch 1"},
        {"SequenceGap", callBytes(2, 0, 1, {}), "sequence 2 where 1 was next"},
        {"SequenceRepeated", join({callBytes(1, 0, 1, {}), callBytes(1, 0, 1, {})}),
         "sequence 1 where 2 was next"},
        {"RequestRepeated", join({callBytes(1, 5, 1, {}), callBytes(2, 5, 1, {})}),
         "used request number 5"},
        {"Reply", replyBytes(1, 1, 1, {}, {}), "from the wrong end"},
        {"Credit", creditFrame(wire::kChunkSize, 0), "from the wrong end"},
        {"SecondHello", immediateFrame(Kind::hello, std::vector<uint8_t>(43)), "second handshake"},
        {"AckOfTheFuture", ackFrame(1, 1), "impossible acknowledgement"},
        {"MalformedGoodbye", immediateFrame(Kind::goodbye, std::vector<uint8_t>(9, 255)),
         "malformed goodbye"},
        {"OrderedAck", headerOnly([](auto& h) {
             h.kind = static_cast<uint8_t>(Kind::ack);
             h.size = 16;
         }),
         "fields of an ordered one"},
        {"EmptyChunk", chunkBytes({1, 0, 0}, {}), "a chunk frame of 24 bytes"},
        {"ChunkOfTransferNought", chunkBytes({0, 0, 0}, kByte), "transfer 0"},
        {"ChunkWithOrdinal", chunkBytes({1, 1, 0}, kByte), "ordinal 1"},
        {"ChunkBeyondAllMemory", chunkBytes({1, 0, UINT64_MAX}, kByte), "beyond all memory"},
        {"ChunkTwice", join({chunkBytes({1, 0, 4}, kByte), chunkBytes({1, 0, 4}, kByte)}),
         "repeats bytes"},
        {"GrantNeverGiven", chunkBytes({1, 0, 0}, kByte, wire::kGranted), "beyond the credit"},
        {"ChunksBeyondCredit",
         join({chunkBytes({1, 0, 0}, kByte), chunkBytes({2, 0, 0}, kByte),
               chunkBytes({3, 0, 0}, kByte), chunkBytes({4, 0, 0}, kByte),
               chunkBytes({5, 0, 0}, kByte), chunkBytes({6, 0, 0}, kByte),
               chunkBytes({7, 0, 0}, kByte), chunkBytes({8, 0, 0}, kByte)}),
         "beyond the credit"}};
}

INSTANTIATE_TEST_SUITE_P(Frames, HostileClient, testing::ValuesIn(hostileClients()),
                         [](const auto& info) { return info.param.name; });

TEST_P(HostileClient, BreaksItsOwnLinkOnly) {
    RawClient raw;
    raw.send(GetParam().bytes);
    Call call;
    while (raw.server().next(call, 0, 2000) == Next::call) {
    }
    EXPECT_EQ(raw.server().ending(), Ending::violation);
    EXPECT_NE(raw.server().reason().find(GetParam().sentence), std::string::npos)
        << raw.server().reason();
}

TEST_P(HostileClient, IsFoundOutWhileTheExecutorIsAway) {
    RawClient raw;
    Call call;
    raw.send(GetParam().bytes);
    for (int i = 0; i < 2000 && raw.server().ending() == Ending::open; ++i) napNanos(kMilli);
    EXPECT_EQ(raw.server().ending(), Ending::violation);
    EXPECT_EQ(raw.server().next(call, 0, 0), Next::closed);
}

TEST(HostileClientData, BeyondTheAnnouncedSizeBreaksTheLink) {
    for (const bool early : {true, false}) {
        RawClient raw;
        std::thread sender([&] {
            if (!early) napNanos(30 * kMilli);
            raw.send(chunkBytes({1, 0, 90}, std::vector<uint8_t>(11)));
        });
        if (early) {
            sender.join();
            for (int i = 0; i < 1000 && raw.server().bytesIn() < 75; ++i) napNanos(kMilli);
            napNanos(5 * kMilli);
        }
        EXPECT_FALSE(raw.server().receive(1, 100, [&](uint64_t, void* slot, size_t) {
            ADD_FAILURE() << "nothing of it may reach the consumer";
            raw.server().release(slot);
        }));
        if (!early) sender.join();
        EXPECT_EQ(raw.server().ending(), Ending::violation);
        EXPECT_NE(raw.server().reason().find("reaches beyond its 100 bytes"), std::string::npos)
            << raw.server().reason();
    }
}

TEST(HostileClientData, ForACompleteTransferBreaksTheLink) {
    RawClient raw;
    raw.send(chunkBytes({1, 0, 0}, kByte));
    EXPECT_TRUE(raw.server().receive(
        1, 1, [&](uint64_t, void* slot, size_t) { raw.server().release(slot); }));
    raw.send(chunkBytes({1, 0, 0}, kByte));
    for (int i = 0; i < 2000 && raw.server().ending() == Ending::open; ++i) napNanos(kMilli);
    EXPECT_NE(raw.server().reason().find("which is complete"), std::string::npos)
        << raw.server().reason();
}

TEST(HostileClientData, ScatteredToEatMemoryBreaksTheLink) {
    RawClient raw;
    uint64_t pieces = 0;
    const auto sendOne = [&] { raw.send(chunkBytes({1, 0, 2 * pieces++}, kByte)); };
    sendOne();
    EXPECT_FALSE(raw.server().receive(1, 100'000, [&](uint64_t, void* slot, size_t) {
        raw.server().release(slot);  // gives credit for the next
        sendOne();
    }));
    EXPECT_NE(raw.server().reason().find("scatters"), std::string::npos) << raw.server().reason();
    EXPECT_LT(pieces, 20u);
}

TEST(HostileClientData, NamedByTwoCallsBreaksTheLink) {
    RawClient raw;
    raw.send(chunkBytes({1, 0, 0}, kByte));
    const auto consume = [&](uint64_t, void* slot, size_t) { raw.server().release(slot); };
    EXPECT_TRUE(raw.server().receive(1, 1, consume));
    EXPECT_FALSE(raw.server().receive(1, 1, consume));
    EXPECT_EQ(raw.server().ending(), Ending::violation);
}

TEST(HostileClientData, MoreCallsThanTheWindowBreakTheLink) {
    RawClient raw;
    const std::vector<uint8_t> payload(wire::kMaxPayload);
    std::thread sender([&] {
        for (uint64_t i = 1; i <= 10; ++i) raw.send(callBytes(i, 0, 1, payload));
    });
    for (int i = 0; i < 5000 && raw.server().ending() == Ending::open; ++i) napNanos(kMilli);
    EXPECT_NE(raw.server().reason().find("beyond the window"), std::string::npos)
        << raw.server().reason();
    sender.join();
}

// ---- against a client

class HostileWorker : public testing::TestWithParam<Hostility> {};

wire::ReplyHead head(uint64_t executed, uint64_t landed) {
    wire::ReplyHead out{};
    out.executed = executed;
    out.landed = landed;
    return out;
}

std::vector<Hostility> hostileWorkers() {
    return {
        {"UnknownKind", headerOnly([](auto& h) { h.kind = 99; }), "unknown kind 99"},
        {"Call", callBytes(1, 0, 1, {}), "from the wrong end"},
        {"ShortReply",
         frameBytes(
             [] {
                 auto h = immediate(Kind::reply, 0);
                 h.sequence = 1;
                 return h;
             }(),
             kByte),
         "a reply frame of 1 bytes"},
        {"SequenceGap", replyBytes(2, 1, 7, {}, {}), "sequence 2 where 1 was next"},
        {"UnknownRequest", replyBytes(1, 9, 7, {}, {}), "which was never made"},
        {"AnsweredTwice", join({replyBytes(1, 2, 7, {}, {}), replyBytes(2, 2, 7, {}, {})}),
         "a second answer to request 2"},
        {"OtherOpcode", replyBytes(1, 1, 8, {}, {}), "another opcode"},
        {"ExecutedTheFuture", replyBytes(1, 1, 7, head(3, 0), {}), "impossible number of executed"},
        {"LandedTheFuture", replyBytes(1, 1, 7, head(0, 3), {}), "impossible transfers"},
        {"LandedBackwards",
         join({chunkBytes({1, 1, 0}, std::vector<uint8_t>(100)),
               replyBytes(1, 2, 7, head(0, 1), {}), replyBytes(2, 1, 7, head(0, 0), {})}),
         "impossible transfers"},
        {"AckOfTheFuture", ackFrame(5, 1), "impossible acknowledgement"},
        {"ExecutedMoreThanReceived", ackFrame(1, 2), "impossible acknowledgement"},
        {"CreditOverflow", creditFrame(wire::kChunkSize, 0), "more credit than its window"},
        {"OddCredit", creditFrame(1, 0), "a credit of 1 bytes"},
        {"HugeCredit", creditFrame(UINT64_MAX / wire::kChunkSize * wire::kChunkSize, 0),
         "a credit of"},
        {"GrantForNothing", creditFrame(wire::kChunkSize, 77), "does not exist"},
        {"UnexpectedChunk", chunkBytes({9, 1, 0}, kByte), "which nobody expects"},
        {"ChunkBeyond", chunkBytes({1, 1, 100}, kByte), "reaches beyond its 100 bytes"},
        {"ChunkFarBeyond", chunkBytes({1, 1, UINT64_MAX}, kByte), "reaches beyond its 100 bytes"},
        {"ChunkTwice", join({chunkBytes({1, 1, 4}, kByte), chunkBytes({1, 1, 4}, kByte)}),
         "repeats bytes"},
        {"OrdinalNought", chunkBytes({1, 0, 0}, kByte), "impossible ordinal"},
        {"OrdinalOfTheFuture", chunkBytes({1, 3, 0}, kByte), "impossible ordinal"},
        {"TwoOrdinals", join({chunkBytes({1, 1, 0}, kByte), chunkBytes({1, 2, 1}, kByte)}),
         "under two ordinals"},
        {"OrdinalShared", join({chunkBytes({1, 1, 0}, kByte), chunkBytes({2, 1, 0}, kByte)}),
         "impossible ordinal"},
        {"ShortFault", immediateFrame(Kind::fault, kByte), "a fault frame of 1 bytes"}};
}

INSTANTIATE_TEST_SUITE_P(Frames, HostileWorker, testing::ValuesIn(hostileWorkers()),
                         [](const auto& info) { return info.param.name; });

TEST(HostileWorkers, AreToldWhatTheyDidWrong) {
    RawServer raw;
    raw.send(creditFrame(1, 0));
    wire::Header header{};
    Goodbye goodbye;
    ASSERT_TRUE(raw.receive(&header, sizeof header));
    std::vector<uint8_t> payload(header.size);
    ASSERT_TRUE(raw.receive(payload.data(), payload.size()));
    EXPECT_EQ(header.kind, static_cast<uint8_t>(Kind::goodbye));
    ASSERT_TRUE(decodeGoodbye(payload, goodbye));
    EXPECT_EQ(goodbye.reason, wire::GoodbyeReason::protocol);
    EXPECT_NE(goodbye.sentence.find("a credit of 1 bytes"), std::string::npos) << goodbye.sentence;
}

TEST_P(HostileWorker, BreaksTheLinkAndReleasesWhoWaits) {
    RawServer raw;
    std::vector<uint8_t> memory(100), more(100);
    raw.client().expect(memory.data(), memory.size());
    raw.client().expect(more.data(), more.size());
    const auto first = raw.client().ask(7, 1, 0, {});
    raw.client().ask(7, 1, 0, {});
    ASSERT_TRUE(raw.skip(2 * wire::kHeaderSize));
    raw.send(GetParam().bytes);
    EXPECT_TRUE(raw.client().take(first).broken);
    EXPECT_NE(raw.client().reason().find(GetParam().sentence), std::string::npos)
        << raw.client().reason();
}

// ---- random changes to valid streams

/// Changes, drops, repeats or cuts at random.
std::vector<uint8_t> mutate(std::vector<uint8_t> bytes, std::mt19937& random) {
    const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
    for (size_t times = 1 + below(4); times > 0 && !bytes.empty(); --times) {
        const size_t at = below(bytes.size());
        switch (below(5)) {
            case 0:
                bytes[at] ^= static_cast<uint8_t>(1 << below(8));
                break;
            case 1:
                bytes[at] = static_cast<uint8_t>(random());
                break;
            case 2:
                bytes.erase(bytes.begin() + at,
                            bytes.begin() + at + std::min(bytes.size() - at, below(64) + 1));
                break;
            case 3: {
                const std::vector<uint8_t> piece(
                    bytes.begin() + at,
                    bytes.begin() + at + std::min(bytes.size() - at, below(200) + 1));
                bytes.insert(bytes.begin() + below(bytes.size()), piece.begin(), piece.end());
                break;
            }
            default:
                bytes.resize(at);
        }
    }
    return bytes;
}

TEST(HostileStreams, ChangedAtRandomNeverHangOrCrashAWorker) {
    std::mt19937 random(20'240'607);
    const auto valid =
        join({callBytes(1, 0, 1, std::vector<uint8_t>(100)), chunkBytes({1, 0, 0}, kByte),
              callBytes(2, 1, 2, kByte), chunkBytes({2, 0, 0}, std::vector<uint8_t>(5000)),
              callBytes(3, 0, 3, std::vector<uint8_t>(3000)), chunkBytes({1, 0, 1}, kByte),
              callBytes(4, 2, 1, {}), goodbyeFrame(wire::GoodbyeReason::done, "done")});
    for (int round = 0; round < 150; ++round) {
        RawClient raw(4);
        raw.send(mutate(valid, random));
        raw.hangUp(round % 3 == 0);
        Call call;
        Next next;
        while ((next = raw.server().next(call, 0, 2000)) == Next::call) {
            if (call.header.opcode == 2)
                raw.server().receive(
                    1, 2, [&](uint64_t, void* slot, size_t) { raw.server().release(slot); });
            if (call.header.request != 0) raw.server().reply(call.header, {}, call.payload);
        }
        ASSERT_EQ(next, Next::closed) << round;
        ASSERT_NE(raw.server().ending(), Ending::open);
    }
}

TEST(HostileStreams, ChangedAtRandomNeverHangOrCrashAClient) {
    std::mt19937 random(7);
    const auto valid = join({chunkBytes({1, 1, 0}, std::vector<uint8_t>(60)),
                             replyBytes(1, 1, 7, head(1, 1), kByte),
                             chunkBytes({1, 1, 60}, std::vector<uint8_t>(40)), faultFrame(700, 3),
                             replyBytes(2, 2, 7, head(2, 1), {}), ackFrame(2, 2),
                             goodbyeFrame(wire::GoodbyeReason::session_ended, "over")});
    for (int round = 0; round < 150; ++round) {
        RawServer raw;
        std::vector<uint8_t> memory(100);
        raw.client().expect(memory.data(), memory.size());
        const auto first = raw.client().ask(7, 1, 0, {});
        const auto second = raw.client().ask(7, 1, 0, {});
        raw.send(mutate(valid, random));
        raw.hangUp(round % 3 == 0);
        raw.client().take(first);
        raw.client().take(second);
        for (int i = 0; i < 2000 && !raw.client().broken(); ++i) napNanos(kMilli);
        ASSERT_TRUE(raw.client().broken()) << round;
        ASSERT_FALSE(raw.client().reason().empty());
    }
}

}  // namespace
}  // namespace juice::test

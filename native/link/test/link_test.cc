// Both ends of a link over loopback.
#include <gtest/gtest.h>

#include <thread>

#include "native/link/test/rig.h"
#include "native/link/thread.h"

namespace juice::test {
namespace {

TEST(Link, TheWelcomeSaysWhatTheEndsAgreedOn) {
    Rig rig({.slots = 16, .clientArenas = 2, .serverArenas = 3});
    EXPECT_EQ(rig.client().welcome().arena, 1);
    EXPECT_EQ(rig.server().arena(), 1);
    EXPECT_EQ(rig.client().welcome().window, 14 * wire::kChunkSize);
    EXPECT_EQ(rig.client().welcome().worker, "a worker for tests");
    EXPECT_EQ(rig.server().clientPid(), 4242u);
}

TEST(Link, AWaitedCallIsAnsweredWithItsResults) {
    Rig rig;
    Writer payload;
    payload.text("how are you");
    const Reply reply = rig.call(kEcho, payload);
    ASSERT_FALSE(reply.broken) << rig.client().reason();
    EXPECT_EQ(reply.reader().text(), "how are you");
    EXPECT_EQ(rig.client().counters().waited, 1u);
}

TEST(Link, PayloadsOfEverySizeTravel) {
    Rig rig;
    for (const size_t size : {size_t{0}, size_t{1}, size_t{39}, size_t{4096}, size_t{65537},
                              wire::kMaxPayload - sizeof(wire::ReplyHead)}) {
        Writer payload;
        const auto data = pattern(size, size);
        payload.raw(data.data(), data.size());
        const Reply reply = rig.call(kEcho, payload);
        ASSERT_FALSE(reply.broken) << size << rig.client().reason();
        EXPECT_TRUE(sameBytes(reply.payload, data)) << size << rig.client().reason();
    }
}

TEST(Link, PostedCallsArriveInOrderWithoutAnyoneWaiting) {
    Rig rig;
    constexpr uint64_t kCount = 20'000;
    for (uint64_t i = 0; i < kCount; ++i) {
        Writer payload;
        payload.put(uint32_t{1}).put(i);
        rig.client().post(kNote, 1, 0, payload.view());
    }
    ASSERT_FALSE(rig.call(kEcho, {}).broken) << rig.client().reason();
    const auto notes = rig.notes();
    ASSERT_EQ(notes.size(), kCount);
    for (uint64_t i = 0; i < kCount; ++i) ASSERT_EQ(notes[i].number, i);
}

TEST(Link, ALonePostLeavesSoonWithoutAFlush) {
    Rig rig({.run = false});
    napNanos(20 * kMilli);  // the flusher sleeps by now
    rig.client().post(kEcho, 1, 0, {});
    Call call;
    const int64_t begin = nowNanos();
    ASSERT_EQ(rig.server().next(call, 0, 2000), Next::call);
    EXPECT_LT(nowNanos() - begin, 500 * kMilli);
}

TEST(Link, CallsOfManyThreadsKeepOneTicketOrder) {
    Rig rig;
    constexpr int kThreads = 8, kCalls = 500;
    std::vector<std::thread> threads;
    for (uint32_t t = 1; t <= kThreads; ++t)
        threads.emplace_back([&rig, t] {
            for (uint64_t i = 0; i < kCalls; ++i) {
                Writer payload;
                payload.put(t).put(i);
                if (i % 7 == 0)
                    ASSERT_FALSE(rig.client().call(kNote, t, 0, payload.view()).broken)
                        << rig.client().reason();
                else
                    rig.client().post(kNote, t, 0, payload.view());
            }
        });
    for (auto& thread : threads) thread.join();
    ASSERT_FALSE(rig.call(kEcho, {}).broken) << rig.client().reason();
    const auto notes = rig.notes();
    ASSERT_EQ(notes.size(), size_t{kThreads * kCalls});
    std::map<uint32_t, uint64_t> next;
    uint64_t sequence = 0;
    for (const auto& note : notes) {
        EXPECT_EQ(note.number, next[note.thread]++);
        EXPECT_EQ(note.sequence, ++sequence);
    }
}

TEST(Link, WaitedCallsOfManyThreadsGetTheirOwnAnswers) {
    Rig rig;
    std::vector<std::thread> threads;
    for (uint32_t t = 1; t <= 8; ++t)
        threads.emplace_back([&rig, t] {
            for (uint64_t i = 0; i < 300; ++i) {
                Writer payload;
                payload.put(t).put(i);
                const Reply reply = rig.client().call(kEcho, t, 0, payload.view());
                ASSERT_FALSE(reply.broken) << rig.client().reason();
                Reader in = reply.reader();
                EXPECT_EQ(in.get<uint32_t>(), t);
                EXPECT_EQ(in.get<uint64_t>(), i);
            }
        });
    for (auto& thread : threads) thread.join();
}

TEST(Link, AskedAnswersAreTakenInAnyOrder) {
    Rig rig;
    std::vector<uint64_t> requests;
    for (uint32_t i = 0; i < 10; ++i) {
        Writer payload;
        payload.put(i);
        requests.push_back(rig.client().ask(kEcho, 1, 0, payload.view()));
    }
    for (uint32_t i = 10; i-- > 0;) {
        const Reply reply = rig.client().take(requests[i]);
        ASSERT_FALSE(reply.broken) << rig.client().reason();
        EXPECT_EQ(reply.reader().get<uint32_t>(), i);
    }
    EXPECT_TRUE(rig.client().take(requests[0]).broken) << "an answer is taken once";
    EXPECT_FALSE(rig.client().broken());
}

TEST(Link, MoreCallsThanTheWindowWaitForTheWorker) {
    Rig rig;
    Writer sleep;
    sleep.put(uint32_t{100});
    rig.client().post(kSleep, 1, 0, sleep.view());
    Writer payload;
    payload.put(uint32_t{1}).put(uint64_t{7});
    const std::vector<uint8_t> filler(60'000);
    payload.raw(filler.data(), filler.size());
    const size_t count = 3 * wire::kCallWindow / payload.size();
    const int64_t begin = nowNanos();
    for (size_t i = 0; i < count; ++i) rig.client().post(kNote, 1, 0, payload.view());
    EXPECT_GT(nowNanos() - begin, 80 * kMilli) << "the window was not respected";
    ASSERT_FALSE(rig.call(kEcho, {}).broken) << rig.client().reason();
    EXPECT_EQ(rig.notes().size(), count);
}

TEST(Link, AStickyErrorIsToldAtOnce) {
    Rig rig;
    std::atomic<int> told{0};
    rig.client().onFault([&](int result, uint16_t opcode) {
        EXPECT_EQ(opcode, kFault);
        told = result;
    });
    rig.client().post(kFault, 1, 0, {});
    for (int i = 0; i < 2000 && told == 0; ++i) napNanos(kMilli);
    EXPECT_EQ(told, 719);
}

TEST(Link, CountersCountBothEnds) {
    Rig rig;
    for (int i = 0; i < 5; ++i) ASSERT_FALSE(rig.call(kEcho, Writer().put(uint64_t{1})).broken);
    const auto counters = rig.client().counters();
    EXPECT_EQ(counters.calls, 5u);
    EXPECT_EQ(counters.bytesOut, 5 * (wire::kHeaderSize + 8));
    EXPECT_EQ(rig.server().bytesIn(), counters.bytesOut);
    EXPECT_EQ(counters.bytesIn, 5 * (wire::kHeaderSize + sizeof(wire::ReplyHead) + 8));
    EXPECT_EQ(rig.server().bytesOut(), counters.bytesIn);
}

}  // namespace
}  // namespace juice::test

// Bulk transfers in both directions, with and without bulk lanes.
#include <gtest/gtest.h>

#include <thread>

#include "native/link/test/rig.h"
#include "native/link/thread.h"

namespace juice::test {
namespace {

class Bulk : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Lanes, Bulk, testing::Values(0, 1, 4),
                         [](const auto& info) { return std::to_string(info.param); });

const size_t kSizes[] = {1,         70'000,   wire::kChunkSize,     wire::kChunkSize + 1,
                         3'333'333, 5u << 20, (40u << 20) + 12'345, 0};

TEST_P(Bulk, UploadsOfEverySizeArriveWhole) {
    Rig rig({.lanes = GetParam()});
    for (const size_t size : kSizes)
        if (size > 0) rig.upload(size);
}

TEST_P(Bulk, DownloadsOfEverySizeArriveWhole) {
    Rig rig({.lanes = GetParam()});
    for (const size_t size : kSizes) rig.download(size);
}

TEST_P(Bulk, AReplyIsBelievedOnlyWhenItsTransfersHaveLanded) {
    Rig rig({.lanes = GetParam()});
    for (const size_t size : {size_t{100'000}, size_t{6} << 20}) {
        const int64_t begin = nowNanos();
        rig.download(size, 1, kLate);  // checks landed() and the content when the reply is there
        EXPECT_GE(nowNanos() - begin, 20 * kMilli);
    }
}

TEST_P(Bulk, APostedDownloadLandsWhileNobodyWaits) {
    Rig rig({.lanes = GetParam()});
    std::vector<uint8_t> data(5u << 20);
    const uint64_t transfer = rig.client().expect(data.data(), data.size());
    Writer payload;
    payload.put(transfer).put(uint64_t{data.size()});
    rig.client().post(kDownload, 1, 0, payload.view());
    for (int i = 0; i < 5000 && !rig.client().landed(transfer); ++i) napNanos(kMilli);
    ASSERT_TRUE(rig.client().landed(transfer)) << rig.client().reason();
    EXPECT_EQ(data, pattern(transfer, data.size()));
}

TEST_P(Bulk, ManyThreadsMoveDataBothWaysAtOnce) {
    Rig rig({.lanes = GetParam(), .slots = 8});
    std::vector<std::thread> threads;
    for (uint32_t t = 1; t <= 6; ++t)
        threads.emplace_back([&rig, t] {
            for (size_t i = 0; i < 4; ++i) {
                const size_t size = 200'000 + t * 777'777 + i * 2'000'000;
                if ((t + i) % 2 == 0)
                    rig.upload(size, t);
                else
                    rig.download(size, t);
                Writer payload;
                payload.put(t);
                ASSERT_FALSE(rig.client().call(kEcho, t, 0, payload.view()).broken);
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_FALSE(rig.client().broken()) << rig.client().reason();
}

/// The calls are made in one order and their data is sent in the other: without grants the first
/// would hold the whole window and the second, which the worker waits for, would starve.
TEST_P(Bulk, DataSentInAnotherOrderThanItsCallsDoesNotStarve) {
    Rig rig({.lanes = GetParam(), .slots = 6});
    constexpr size_t kSize = 12u << 20;
    const auto first = rig.client().mintTransfer(), second = rig.client().mintTransfer();
    const auto firstData = pattern(first, kSize), secondData = pattern(second, kSize);
    Writer a, b;
    a.put(first).put(uint64_t{kSize});
    b.put(second).put(uint64_t{kSize});
    const auto firstAsked = rig.client().ask(kUpload, 1, 0, a.view());
    const auto secondAsked = rig.client().ask(kUpload, 2, 0, b.view());
    std::thread later([&] {
        napNanos(100 * kMilli);
        rig.client().send(first, firstData.data(), kSize);
    });
    rig.client().send(second, secondData.data(), kSize);
    later.join();
    EXPECT_TRUE(sameBytes(rig.client().take(firstAsked).payload, sha256(firstData)));
    EXPECT_TRUE(sameBytes(rig.client().take(secondAsked).payload, sha256(secondData)));
    // The window is whole again: nothing has leaked.
    rig.upload(20u << 20);
    rig.upload(20u << 20);
}

TEST_P(Bulk, ASenderWithoutCreditWaitsForTheWorker) {
    Rig rig({.lanes = GetParam(), .slots = 4});
    rig.holdReceive = true;
    std::atomic<bool> sent{false};
    std::thread sender([&] {
        rig.upload(8u << 20);
        sent = true;
    });
    napNanos(50 * kMilli);
    EXPECT_FALSE(sent);
    EXPECT_LE(rig.server().bytesIn(), 4 * wire::kChunkSize);
    rig.holdReceive = false;
    sender.join();
}

TEST(BulkLanes, AreOpenedByTheFirstLargeTransferOnly) {
    Rig rig({.lanes = 3});
    rig.upload(3u << 20);
    EXPECT_EQ(rig.lanesAdded(), 0);
    rig.upload(4u << 20);
    for (int i = 0; i < 2000 && rig.lanesAdded() < 3; ++i) napNanos(kMilli);
    EXPECT_EQ(rig.lanesAdded(), 3);
    rig.upload(30u << 20);
    rig.download(30u << 20);
    EXPECT_EQ(rig.lanesAdded(), 3);
}

TEST(BulkLanes, ACancelledExpectationTakesNothingAndBlocksNothing) {
    Rig rig;
    std::vector<uint8_t> never(100'000);
    const uint64_t transfer = rig.client().expect(never.data(), never.size());
    rig.client().cancel(transfer);
    rig.download(200'000);
    EXPECT_FALSE(rig.client().broken());
}

TEST(BulkLanes, AChunkForACancelledTransferBreaksTheLink) {
    Rig rig;
    std::vector<uint8_t> memory(100'000);
    const uint64_t transfer = rig.client().expect(memory.data(), memory.size());
    rig.client().cancel(transfer);
    Writer payload;
    payload.put(transfer).put(uint64_t{memory.size()});
    rig.client().call(kDownload, 1, 0, payload.view());
    for (int i = 0; i < 2000 && !rig.client().broken(); ++i) napNanos(kMilli);
    EXPECT_NE(rig.client().reason().find("which nobody expects"), std::string::npos)
        << rig.client().reason();
}

}  // namespace
}  // namespace juice::test

#include "native/link/delta.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <random>
#include <thread>

namespace juice::delta {
namespace {

constexpr size_t kPages = 16 * 4096;

/// Two memories that play one that two machines have, each under its own address: a patch's
/// addresses are moved from one to the other.
class DeltaTest : public testing::Test {
  protected:
    void SetUp() override {
        for (uint8_t*& memory : memory_)
            memory = static_cast<uint8_t*>(
                mmap(nullptr, kPages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    }
    void TearDown() override {
        for (uint8_t* const memory : memory_) munmap(memory, kPages);
    }
    uint64_t at(int end, size_t offset) const {
        return reinterpret_cast<uint64_t>(memory_[end]) + offset;
    }
    static Writer collect(Shadow& shadow) {
        Writer patch;
        EXPECT_EQ(shadow.collect(shadow.begin(), shadow.end(), SIZE_MAX, patch), shadow.end());
        return patch;
    }
    void apply(const Writer& patch, int from, Shadow& shadow) {
        Reader in(patch.view());
        for (Piece piece; next(in, piece);) {
            piece.address += at(1 - from, 0) - at(from, 0);
            shadow.apply(piece);
        }
        EXPECT_TRUE(in.ok());
    }

    uint8_t* memory_[2] = {};
};

TEST_F(DeltaTest, NothingIsSaidOfWhatHasNotChanged) {
    Shadow shadow(at(0, 0), kPages);
    EXPECT_EQ(collect(shadow).size(), 0u);
    memory_[0][5000] = 1;
    EXPECT_NE(collect(shadow).size(), 0u);
    EXPECT_EQ(collect(shadow).size(), 0u);
}

TEST_F(DeltaTest, ChangesArriveAndDoNotComeBack) {
    Shadow here(at(0, 3), 20'000), there(at(1, 3), 20'000);
    std::mt19937 random(1);
    for (int round = 0; round < 200; ++round) {
        const int changes = round % 7 == 0 ? 5000 : 20;
        for (int i = 0; i < changes; ++i)
            memory_[0][3 + random() % 20'000] = static_cast<uint8_t>(random());
        const Writer patch = collect(here);
        apply(patch, 0, there);
        ASSERT_EQ(std::memcmp(memory_[0], memory_[1], kPages), 0) << round;
        ASSERT_EQ(collect(there).size(), 0u);
    }
}

TEST_F(DeltaTest, BytesAroundTheRangeAreNeitherSentNorWritten) {
    Shadow here(at(0, 5), 4097), there(at(1, 5), 4097);
    std::memset(memory_[0], 0xaa, kPages);
    const Writer patch = collect(here);
    apply(patch, 0, there);
    for (size_t i = 0; i < kPages; ++i)
        ASSERT_EQ(memory_[1][i], i >= 5 && i < 5 + 4097 ? 0xaa : 0) << i;
}

TEST_F(DeltaTest, NeighboursThatBothEndsChangeAreMerged) {
    Shadow here(at(0, 0), kPages), there(at(1, 0), kPages);
    for (size_t i = 0; i < kPages; i += 2) memory_[0][i] = 1;
    for (size_t i = 1; i < kPages; i += 2) memory_[1][i] = 2;
    const Writer forth = collect(here), back = collect(there);
    apply(forth, 0, there);
    apply(back, 1, here);
    for (size_t i = 0; i < kPages; ++i)
        ASSERT_TRUE(memory_[0][i] == 1 + i % 2 && memory_[1][i] == 1 + i % 2) << i;
    EXPECT_EQ(collect(here).size() + collect(there).size(), 0u);
}

TEST_F(DeltaTest, ALimitIsKeptAndGoneOnFrom) {
    Shadow here(at(0, 0), kPages), there(at(1, 0), kPages);
    std::memset(memory_[0], 7, kPages);
    int patches = 0;
    for (uint64_t from = here.begin(); from < here.end(); ++patches) {
        Writer patch;
        from = here.collect(from, here.end(), 10'000, patch);
        EXPECT_LE(patch.size(), 15'000u);
        apply(patch, 0, there);
    }
    EXPECT_GT(patches, 5);
    EXPECT_EQ(std::memcmp(memory_[0], memory_[1], kPages), 0);
}

TEST_F(DeltaTest, WordsAreNeverSeenHalfWrittenAndNeighboursAreNotLost) {
    Shadow here(at(0, 0), 16), there(at(1, 0), 16);
    auto* const written = reinterpret_cast<uint32_t*>(memory_[0]);
    auto* const seen = reinterpret_cast<uint32_t*>(memory_[1]);
    std::atomic<bool> over{false};
    unsigned torn = 0, lost = 0;
    std::thread neighbour([&] {
        // The other half of the word that patches are written into.
        uint32_t mine = 0;
        while (!over) {
            __atomic_store_n(&seen[1], ++mine, __ATOMIC_RELAXED);
            lost += __atomic_load_n(&seen[1], __ATOMIC_RELAXED) != mine;
            const uint32_t value = __atomic_load_n(&seen[0], __ATOMIC_RELAXED);
            torn += value >> 16 != (value & 0xffff);
        }
    });
    for (uint32_t i = 1; i < 60'000; ++i) {
        written[0] = i << 16 | i;
        apply(collect(here), 0, there);
    }
    over = true;
    neighbour.join();
    EXPECT_EQ(torn, 0u);
    EXPECT_EQ(lost, 0u);
}

TEST(DeltaPatch, WhatIsMalformedIsRefused) {
    const auto refused = [](const Writer& patch) {
        Reader in(patch.view());
        for (Piece piece; next(in, piece);) {
        }
        return !in.ok();
    };
    Writer odd, empty, huge, high, cut;
    odd.put(uint64_t{4}).put(uint32_t{1}).put(uint32_t{0}).raw("123456789", 9);
    empty.put(uint64_t{8}).put(uint32_t{0}).put(uint32_t{0});
    huge.put(uint64_t{8}).put(uint32_t{1u << 30}).put(uint32_t{0});
    high.put(UINT64_MAX - 7).put(uint32_t{1}).put(uint32_t{0}).raw("123456789", 9);
    cut.put(uint64_t{8}).put(uint32_t{1}).put(uint32_t{0}).raw("12345678", 8);
    for (const Writer* const patch : {&odd, &empty, &huge, &high, &cut})
        EXPECT_TRUE(refused(*patch));
}

}  // namespace
}  // namespace juice::delta

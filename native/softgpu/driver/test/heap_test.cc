#include "native/softgpu/driver/heap.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>

namespace juice::softgpu {
namespace {

/// A heap that may grow to a limit.
struct Limited {
    explicit Limited(size_t limit)
        : heap(
              [this, limit](size_t bytes) {
                  if (bytes > limit - used) return false;
                  used += bytes;
                  return true;
              },
              [this](size_t bytes) { used -= bytes; }) {}
    size_t used = 0;
    Heap heap;
};

TEST(Heap, PacksSmallPiecesIntoOneBlock) {
    Limited limited(Heap::kBlock);
    const auto first = limited.heap.allocate(1);
    const auto second = limited.heap.allocate(513);
    ASSERT_TRUE(first && second);
    EXPECT_EQ(first->block, second->block);
    EXPECT_EQ(first->blockSize, Heap::kBlock);
    EXPECT_EQ(first->address % Heap::kAlignment, 0U);
    EXPECT_EQ(second->address, first->address + Heap::kAlignment);
    EXPECT_EQ(limited.used, Heap::kBlock);
}

TEST(Heap, GivesBackABlockWithItsLastPiece) {
    Limited limited(4 * Heap::kBlock);
    const auto small = limited.heap.allocate(100);
    const auto large = limited.heap.allocate(Heap::kBlock + 1);
    ASSERT_TRUE(small && large);
    EXPECT_EQ(limited.used, 3 * Heap::kBlock);
    limited.heap.release(large->address, Heap::kBlock + 1);
    EXPECT_EQ(limited.used, Heap::kBlock);
    limited.heap.release(small->address, 100);
    EXPECT_EQ(limited.used, 0U);
}

TEST(Heap, RefusesWhatDoesNotFit) {
    Limited limited(Heap::kBlock);
    EXPECT_FALSE(limited.heap.allocate(Heap::kBlock + 1));
    EXPECT_FALSE(limited.heap.allocate(SIZE_MAX));
    EXPECT_TRUE(limited.heap.allocate(Heap::kBlock));
    EXPECT_FALSE(limited.heap.allocate(1));
}

TEST(Heap, NeverOverlapsPiecesAndReusesEverything) {
    Limited limited(8 * Heap::kBlock);
    std::mt19937 random(3);
    std::map<uint64_t, std::pair<size_t, uint8_t>> live;
    for (int step = 0; step < 4000; ++step) {
        if (live.size() < 40 && random() % 2 == 0) {
            const size_t size = 1 + random() % 200000;
            const auto piece = limited.heap.allocate(size);
            if (!piece) continue;
            const auto mark = static_cast<uint8_t>(random());
            std::memset(reinterpret_cast<void*>(piece->address), mark, size);
            live[piece->address] = {size, mark};
        } else if (!live.empty()) {
            const auto at = std::next(live.begin(), random() % live.size());
            const auto [size, mark] = at->second;
            const auto* bytes = reinterpret_cast<const uint8_t*>(at->first);
            for (const size_t i : {size_t{0}, size / 2, size - 1}) ASSERT_EQ(bytes[i], mark);
            limited.heap.release(at->first, size);
            live.erase(at);
        }
    }
    for (const auto& [address, piece] : live) limited.heap.release(address, piece.first);
    EXPECT_EQ(limited.used, 0U);
}

}  // namespace
}  // namespace juice::softgpu

#include "native/softgpu/driver/advice.h"

#include <gtest/gtest.h>

#include <vector>

namespace juice::softgpu {
namespace {

constexpr uint64_t kPage = 4096;

std::vector<bool> readMostly(const AdviceMap& map, uint64_t start, uint64_t end) {
    std::vector<bool> found;
    map.visit(start * kPage, end * kPage,
              [&](const Advice& advice) { found.push_back(advice.readMostly); });
    return found;
}

void set(AdviceMap& map, uint64_t start, uint64_t end, bool on) {
    map.change(start * kPage, end * kPage, [&](Advice& advice) { advice.readMostly = on; });
}

TEST(AdviceMap, SaysNothingOfMemoryThatNobodySpokeOf) {
    const AdviceMap map;
    EXPECT_EQ(readMostly(map, 0, 10), std::vector<bool>{false});
}

TEST(AdviceMap, ChangesTheRangeAndNothingElse) {
    AdviceMap map;
    set(map, 2, 4, true);
    EXPECT_EQ(readMostly(map, 2, 4), std::vector<bool>{true});
    EXPECT_EQ(readMostly(map, 1, 2), std::vector<bool>{false});
    EXPECT_EQ(readMostly(map, 4, 5), std::vector<bool>{false});
    EXPECT_EQ(readMostly(map, 0, 6), (std::vector<bool>{false, true, false}));
    EXPECT_EQ(readMostly(map, 3, 6), (std::vector<bool>{true, false}));
}

TEST(AdviceMap, ChangesTheMiddleOfWhatWasChangedBefore) {
    AdviceMap map;
    set(map, 0, 10, true);
    set(map, 4, 6, false);
    EXPECT_EQ(readMostly(map, 0, 10), (std::vector<bool>{true, false, true}));
    set(map, 5, 12, true);
    EXPECT_EQ(readMostly(map, 4, 5), std::vector<bool>{false});
    for (const bool on : readMostly(map, 5, 12)) EXPECT_TRUE(on);
}

TEST(AdviceMap, FillsGapsBetweenStretches) {
    AdviceMap map;
    set(map, 0, 1, true);
    set(map, 2, 3, true);
    set(map, 0, 4, true);
    for (const bool on : readMostly(map, 0, 4)) EXPECT_TRUE(on);
    EXPECT_EQ(readMostly(map, 4, 5), std::vector<bool>{false});
}

TEST(AdviceMap, ForgetsWhatIsFreed) {
    AdviceMap map;
    set(map, 0, 10, true);
    map.forget(2 * kPage, 4 * kPage);
    EXPECT_EQ(readMostly(map, 0, 10), (std::vector<bool>{true, false, true}));
}

TEST(AdviceMap, GoesByWholePages) {
    AdviceMap map;
    map.change(kPage + 8, kPage + 16, [](Advice& advice) { advice.readMostly = true; });
    EXPECT_EQ(readMostly(map, 1, 2), std::vector<bool>{true});
    EXPECT_EQ(readMostly(map, 0, 1), std::vector<bool>{false});
}

}  // namespace
}  // namespace juice::softgpu

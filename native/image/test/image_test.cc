#include "native/image/image.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <random>
#include <string>

#include "native/image/entries.h"

namespace juice::image {
namespace {

std::vector<uint8_t> fixture(const std::string& name) {
    std::ifstream file(std::string(JUICE_IMAGE_TEST_DATA) + "/" + name, std::ios::binary);
    EXPECT_TRUE(file) << name;
    return {std::istreambuf_iterator<char>(file), {}};
}

/// The image with bytes behind it that are not its own, as in a program's data segment.
std::vector<uint8_t> embedded(std::vector<uint8_t> image) {
    image.insert(image.end(), 4096, 0xa5);
    return image;
}

TEST(MeasureImage, FindsTheExactSizeOfEveryFixtureFromABarePointer) {
    for (const char* name : {"stored.fatbin", "lz4.fatbin", "zstd.fatbin"}) {
        const auto bytes = fixture(name);
        const auto memory = embedded(bytes);
        const auto image = measure(static_cast<const void*>(memory.data()));
        ASSERT_TRUE(image) << name;
        EXPECT_EQ(image->kind, Kind::container);
        ASSERT_EQ(image->parts.size(), 1U);
        EXPECT_EQ(image->parts[0].size(), bytes.size()) << name;
    }
}

TEST(MeasureImage, CoversTheProgramHeadersBehindTheSectionHeadersOfACubin) {
    const auto bytes = fixture("sm90.cubin");
    const auto memory = embedded(bytes);
    const auto image = measure(static_cast<const void*>(memory.data()));
    ASSERT_TRUE(image);
    EXPECT_EQ(image->kind, Kind::cubin);
    EXPECT_EQ(image->parts[0].size(), bytes.size());
}

TEST(MeasureImage, CountsPtxToItsNul) {
    auto text = fixture("kernels.ptx");
    const size_t length = text.size();
    text.push_back(0);
    const auto memory = embedded(text);
    const auto image = measure(static_cast<const void*>(memory.data()));
    ASSERT_TRUE(image);
    EXPECT_EQ(image->kind, Kind::ptx);
    EXPECT_EQ(image->parts[0].size(), length + 1);
}

TEST(MeasureImage, AcceptsBoundedPtxWithoutNul) {
    const auto text = fixture("kernels.ptx");
    const auto image = measure(Bytes(text));
    ASSERT_TRUE(image);
    EXPECT_EQ(image->parts[0].size(), text.size());
}

TEST(MeasureImage, RefusesWhatIsNoImage) {
    EXPECT_FALSE(measure(static_cast<const void*>(nullptr)));
    for (const char* text :
         {"", "x", "garbage that is no module", "// .version", "/* open", "/", ".versio"}) {
        EXPECT_FALSE(measure(static_cast<const void*>(text))) << text;
    }
}

TEST(MeasureImage, FollowsAVersion2WrapperToAllItsContainers) {
    const auto first = fixture("stored.fatbin");
    const auto second = fixture("zstd.fatbin");
    const auto third = fixture("lz4.fatbin");
    const Wrapper wrapper(2, {first, second, third});
    const auto image = measure(wrapper.get());
    ASSERT_TRUE(image);
    EXPECT_EQ(image->kind, Kind::wrapper);
    EXPECT_EQ(image->wrapperVersion, 2U);
    ASSERT_EQ(image->parts.size(), 3U);
    EXPECT_EQ(image->parts[0].data(), first.data());
    EXPECT_EQ(image->parts[1].size(), second.size());
    EXPECT_EQ(image->parts[2].data(), third.data());
}

TEST(MeasureImage, IgnoresTheFileNameOfAVersion1Wrapper) {
    const auto container = fixture("stored.fatbin");
    const struct {
        uint32_t magic, version;
        const void* data;
        const char* file;
    } wrapper{kWrapperMagic, 1, container.data(), "kernels.cu"};
    const auto image = measure(static_cast<const void*>(&wrapper));
    ASSERT_TRUE(image);
    EXPECT_EQ(image->wrapperVersion, 1U);
    EXPECT_EQ(image->parts.size(), 1U);
}

TEST(MeasureImage, RefusesAWrapperOfUnknownVersionOrWithoutContainer) {
    const auto container = fixture("stored.fatbin");
    EXPECT_FALSE(measure(Wrapper(3, {container}).get()));
    EXPECT_FALSE(measure(Wrapper(1, {}).get()));
    const auto cubin = fixture("sm90.cubin");
    EXPECT_FALSE(measure(Wrapper(1, {cubin}).get()));
}

TEST(MeasureImage, NeverFollowsPointersOfBytesFromElsewhere) {
    const auto container = fixture("stored.fatbin");
    const Wrapper wrapper(1, {container});
    EXPECT_FALSE(measure(Bytes(static_cast<const uint8_t*>(wrapper.get()), 24)));
}

TEST(MeasureImage, RefusesEveryTruncation) {
    for (const char* name : {"stored.fatbin", "sm90.cubin"}) {
        const auto bytes = fixture(name);
        for (size_t size = 0; size < bytes.size(); size += 1 + size / 50) {
            const std::vector<uint8_t> cut(bytes.begin(), bytes.begin() + size);
            EXPECT_FALSE(measure(Bytes(cut))) << name << " cut to " << size;
        }
    }
}

TEST(ContainerEntries, ListsWhatNvccPutIn) {
    for (const char* name : {"stored.fatbin", "lz4.fatbin", "zstd.fatbin"}) {
        const auto all = entries(fixture(name));
        ASSERT_TRUE(all) << name;
        ASSERT_EQ(all->size(), 5U) << name;
        size_t ptx = 0;
        for (const Entry& entry : *all) ptx += entry.kind == static_cast<uint16_t>(EntryKind::ptx);
        EXPECT_EQ(ptx, 4U);
    }
}

TEST(ChoosePtx, TakesTheHighestThatTheDeviceMayRun) {
    for (const char* name : {"stored.fatbin", "lz4.fatbin", "zstd.fatbin"}) {
        const auto bytes = fixture(name);
        const auto image = measure(Bytes(bytes));
        ASSERT_TRUE(image);
        for (const auto& [device, chosen, target] :
             {std::tuple{75U, 75U, ".target sm_75"}, std::tuple{89U, 75U, ".target sm_75"},
              std::tuple{103U, 100U, ".target sm_100"}}) {
            const PtxChoice choice = choosePtx(*image, device);
            ASSERT_EQ(choice.status, PtxStatus::found) << name << " for " << device;
            EXPECT_EQ(choice.sm, chosen);
            EXPECT_NE(choice.text.find(target), std::string::npos);
            EXPECT_NE(choice.text.find(".entry saxpy"), std::string::npos);
            EXPECT_EQ(choice.text.find('\0'), std::string::npos);
        }
        // Both sm_90 and sm_90a fit here; either is right.
        EXPECT_EQ(choosePtx(*image, 90).sm, 90U);
    }
}

TEST(ChoosePtx, SaysSoWhenNothingFits) {
    const auto bytes = fixture("zstd.fatbin");
    EXPECT_EQ(choosePtx(*measure(Bytes(bytes)), 70).status, PtxStatus::none);
    const auto cubin = fixture("sm90.cubin");
    EXPECT_EQ(choosePtx(*measure(Bytes(cubin)), 90).status, PtxStatus::none);
}

TEST(ChoosePtx, KeepsArchitectureSpecificCodeToItsArchitecture) {
    Entry entry;
    entry.sm = 90;
    entry.flags = kEntryArchitectureSpecific;
    EXPECT_TRUE(runsOn(entry, 90));
    EXPECT_FALSE(runsOn(entry, 100));
    entry.sm = 100;
    entry.flags = kEntryFamilySpecific;
    EXPECT_TRUE(runsOn(entry, 103));
    EXPECT_FALSE(runsOn(entry, 110));
    EXPECT_FALSE(runsOn(entry, 90));
}

TEST(ChoosePtx, LooksIntoEveryPartOfAWrapper) {
    const auto empty = [] {
        std::vector<uint8_t> bytes(16);
        std::memcpy(bytes.data(), &kContainerMagic, 4);
        bytes[4] = 1;
        bytes[6] = 16;
        return bytes;
    }();
    const auto full = fixture("zstd.fatbin");
    const Wrapper wrapper(2, {empty, full});
    const auto image = measure(wrapper.get());
    ASSERT_TRUE(image);
    EXPECT_EQ(choosePtx(*image, 90).status, PtxStatus::found);
}

TEST(ChoosePtx, SurvivesFlippedBytes) {
    std::mt19937 random(7);
    for (const char* name : {"stored.fatbin", "lz4.fatbin", "zstd.fatbin", "sm90.cubin"}) {
        const auto sound = fixture(name);
        for (int round = 0; round < 300; ++round) {
            auto bytes = sound;
            for (int flips = 0; flips < 4; ++flips) {
                bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
            }
            if (const auto image = measure(Bytes(bytes))) choosePtx(*image, 90);
        }
    }
}

}  // namespace
}  // namespace juice::image

#include "native/softgpu/driver/settings.h"

#include <gtest/gtest.h>

namespace juice::softgpu {
namespace {

Environment machine(const char* name) {
    Environment environment;
    environment.machine = name;
    return environment;
}

std::vector<unsigned> indices(const Environment& environment) {
    std::vector<unsigned> found;
    for (const auto& device : visibleDevices(environment)) found.push_back(device.index);
    return found;
}

using Indices = std::vector<unsigned>;

TEST(Settings, GiveOneDeviceOfOneGibibyteByDefault) {
    const auto devices = visibleDevices(machine("m"));
    ASSERT_EQ(devices.size(), 1U);
    EXPECT_EQ(devices[0].memory, uint64_t{1} << 30);
}

TEST(Settings, DeriveUuidsThatDifferByMachineAndDeviceAndStayTheSame) {
    auto environment = machine("m");
    environment.devices = "2";
    const auto devices = visibleDevices(environment);
    ASSERT_EQ(devices.size(), 2U);
    EXPECT_NE(devices[0].uuid, devices[1].uuid);
    EXPECT_EQ(devices[0].uuid, visibleDevices(machine("m"))[0].uuid);
    EXPECT_NE(devices[0].uuid, visibleDevices(machine("n"))[0].uuid);
}

TEST(Settings, SayHowLongAKernelMayRun) {
    using std::chrono::milliseconds;
    auto environment = machine("m");
    EXPECT_EQ(watchdog(environment), milliseconds(0));
    for (const auto& [text, limit] : {std::pair{"10", 10000},
                                      {"0.25", 250},
                                      {"0", 0},
                                      {"1e-9", 1},
                                      {"", 0},
                                      {"-1", 0},
                                      {"5s", 0},
                                      {"nan", 0},
                                      {"1e300", 0}}) {
        environment.watchdog = text;
        EXPECT_EQ(watchdog(environment), milliseconds(limit)) << text;
    }
}

TEST(Settings, TakeTheUuidsThatAreGivenAndAsManyDevices) {
    auto environment = machine("m");
    environment.uuids =
        "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f, GPU-ffffffff-ffff-ffff-ffff-ffffffffffff";
    const auto devices = visibleDevices(environment);
    ASSERT_EQ(devices.size(), 2U);
    EXPECT_EQ(formatUuid(devices[0].uuid), "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
    environment.devices = "3";
    EXPECT_EQ(visibleDevices(environment).size(), 3U);
    environment.devices = "0";
    EXPECT_TRUE(visibleDevices(environment).empty());
}

TEST(Settings, ReadSizesWithUnits) {
    auto environment = machine("m");
    const auto memory = [&](const char* text) {
        environment.memory = text;
        return visibleDevices(environment).at(0).memory;
    };
    EXPECT_EQ(memory("4096"), 4096U);
    EXPECT_EQ(memory("64m"), uint64_t{64} << 20);
    EXPECT_EQ(memory("3G"), uint64_t{3} << 30);
    for (const char* nonsense : {"", "G", "-1", "1T", "0", "99999999999G"}) {
        EXPECT_EQ(memory(nonsense), uint64_t{1} << 30) << nonsense;
    }
}

TEST(Settings, SayNonsenseAndTakeTheDefault) {
    auto environment = machine("m");
    environment.devices = "many";
    environment.uuids = "GPU-1234";
    testing::internal::CaptureStderr();
    EXPECT_EQ(visibleDevices(environment).size(), 1U);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("JUICE_SOFTGPU_DEVICES"), std::string::npos);
    EXPECT_NE(said.find("JUICE_SOFTGPU_UUIDS"), std::string::npos);
}

TEST(VisibleDevices, AreChosenAndOrderedByOrdinalsAndUuids) {
    auto environment = machine("m");
    environment.uuids =
        "GPU-aa010203-0405-0607-0809-0a0b0c0d0e0f,GPU-ab010203-0405-0607-0809-0a0b0c0d0e0f,"
        "GPU-cc010203-0405-0607-0809-0a0b0c0d0e0f";
    const auto visible = [&](const char* list) {
        environment.visible = list;
        return indices(environment);
    };
    EXPECT_EQ(visible("2,0"), (Indices{2, 0}));
    EXPECT_EQ(visible(" 1 , 2 "), (Indices{1, 2}));
    EXPECT_EQ(visible("GPU-ab"), (Indices{1}));
    EXPECT_EQ(visible("GPU-cc010203-0405-0607-0809-0a0b0c0d0e0f,0"), (Indices{2, 0}));
    EXPECT_EQ(visible(""), Indices{});
    EXPECT_EQ(visible("-1"), Indices{});
    EXPECT_EQ(visible("0,7,1"), (Indices{0})) << "what names nothing ends the list";
    EXPECT_EQ(visible("GPU-a"), Indices{}) << "ambiguous";
    EXPECT_EQ(visible("1,1"), Indices{}) << "named twice";
}

}  // namespace
}  // namespace juice::softgpu

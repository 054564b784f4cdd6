#include "native/link/snapshot.h"

#include <gtest/gtest.h>

namespace juice {
namespace {

Snapshot twoDevices() {
    Snapshot snapshot;
    snapshot.driverVersion = 13000;
    snapshot.driverText = "580.159.04";
    for (int i = 0; i < 2; ++i) {
        DeviceSnapshot device;
        device.name = "GPU " + std::to_string(i);
        device.uuid.fill(static_cast<uint8_t>(i + 1));
        device.totalMemory = 1ull << 37;
        device.pciBusId = "0000:0" + std::to_string(i) + ":00.0";
        device.attributes = {{1, 1024}, {75, 9}, {147, -1}};
        device.limits = {{0, 1024}, {2, 8u << 20}};
        device.leastPriority = 0;
        device.gpcOfTpc = {0, 1, 0};
        device.tpcInGpc = {0, 0, 1};
        device.greatestPriority = -5;
        snapshot.devices.push_back(device);
    }
    snapshot.peer = {0, 1, 1, 0};
    return snapshot;
}

TEST(Snapshot, ComesBackAsItWasWritten) {
    const Snapshot before = twoDevices();
    Snapshot after;
    ASSERT_TRUE(Snapshot::decode(before.encode(), after));
    EXPECT_EQ(after.driverVersion, before.driverVersion);
    EXPECT_EQ(after.driverText, before.driverText);
    EXPECT_EQ(after.peer, before.peer);
    ASSERT_EQ(after.devices.size(), 2u);
    for (size_t i = 0; i < 2; ++i) {
        const DeviceSnapshot &a = after.devices[i], &b = before.devices[i];
        EXPECT_EQ(a.name, b.name);
        EXPECT_EQ(a.uuid, b.uuid);
        EXPECT_EQ(a.totalMemory, b.totalMemory);
        EXPECT_EQ(a.pciBusId, b.pciBusId);
        EXPECT_EQ(a.attributes, b.attributes);
        EXPECT_EQ(a.limits, b.limits);
        EXPECT_EQ(a.leastPriority, b.leastPriority);
        EXPECT_EQ(a.gpcOfTpc, b.gpcOfTpc);
        EXPECT_EQ(a.tpcInGpc, b.tpcInGpc);
        EXPECT_EQ(a.greatestPriority, b.greatestPriority);
    }
}

TEST(Snapshot, EveryTruncationIsRefused) {
    const std::vector<uint8_t> whole = twoDevices().encode();
    for (size_t size = 0; size < whole.size(); ++size) {
        Snapshot out;
        EXPECT_FALSE(Snapshot::decode(Bytes(whole).first(size), out)) << size;
    }
}

TEST(Snapshot, TrailingBytesAndForeignFormatsAreRefused) {
    std::vector<uint8_t> bytes = twoDevices().encode();
    Snapshot out;
    bytes.push_back(0);
    EXPECT_FALSE(Snapshot::decode(bytes, out));
    bytes.pop_back();
    bytes[0] = 9;
    EXPECT_FALSE(Snapshot::decode(bytes, out));
}

TEST(Snapshot, HostileCountsAreRefusedWithoutMuchMemory) {
    Writer out;
    out.put(uint32_t{1}).put(int32_t{13000}).text("x").put(uint32_t{0xffffffff});
    Snapshot snapshot;
    EXPECT_FALSE(Snapshot::decode(out.view(), snapshot));
}

}  // namespace
}  // namespace juice

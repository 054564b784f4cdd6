#include "native/shim/visible.h"

#include <gtest/gtest.h>

#include "native/abi/cuda_result.h"

namespace juice::shim {
namespace {

Snapshot devices(int count) {
    Snapshot snapshot;
    for (int i = 0; i < count; ++i) {
        DeviceSnapshot device;
        device.uuid = {0x3d, 0x0e, 0x67, 0x64, static_cast<uint8_t>(i)};
        snapshot.devices.push_back(device);
    }
    return snapshot;
}

void expect(const char* list, int result, std::vector<int> wanted, int count = 3) {
    const Visible visible = visibleDevices(devices(count), list);
    EXPECT_EQ(visible.result, result) << list;
    EXPECT_EQ(visible.devices, wanted) << list;
}

TEST(VisibleDevices, AreAllWithoutTheVariable) {
    const Visible visible = visibleDevices(devices(3), nullptr);
    EXPECT_EQ(visible.result, 0);
    EXPECT_EQ(visible.devices, (std::vector<int>{0, 1, 2}));
}

TEST(VisibleDevices, AreThoseNamedInThatOrder) {
    expect("2,0", 0, {2, 0});
    expect(" 1 , 2 ", 0, {1, 2});
}

TEST(VisibleDevices, EndAtTheFirstThatIsNone) {
    expect("0,7,1", 0, {0});
    expect("7,0", CUDA_ERROR_NO_DEVICE, {});
    expect("", CUDA_ERROR_NO_DEVICE, {});
    expect("-1", CUDA_ERROR_NO_DEVICE, {});
    expect("garbage", CUDA_ERROR_NO_DEVICE, {});
}

TEST(VisibleDevices, MayNotBeNamedTwice) {
    expect("1,1", CUDA_ERROR_INVALID_DEVICE, {});
}

TEST(VisibleDevices, CanBeNamedByUuidOrItsBeginning) {
    expect("GPU-3d0e6764-01", 0, {1});
    expect("GPU-3d0e6764-02,GPU-3d0e6764-00", 0, {2, 0});
    expect("GPU-3d0e6764", 0, {0}, 1);
    expect("GPU-3d0e6764", CUDA_ERROR_NO_DEVICE, {});  // fits all three
    expect("GPU-", CUDA_ERROR_NO_DEVICE, {});
    expect("GPU-3d0e6764-01,0", 0, {1});  // the two forms do not mix
}

TEST(VisibleDevices, ShowUuidsAsTheDriverDoes) {
    EXPECT_EQ(uuidText({0x3d, 0x0e, 0x67, 0x64, 0x0f, 0xc1, 0x25, 0xb3, 0x8b, 0xcd, 0x83, 0xe2,
                        0x4c, 0xdc, 0x13, 0x7a}),
              "GPU-3d0e6764-0fc1-25b3-8bcd-83e24cdc137a");
}

}  // namespace
}  // namespace juice::shim

#include "native/gen/driver_table.h"

#include <gtest/gtest.h>

namespace {

TEST(DriverTable, LoadsEveryEntryPointOfADriver) {
    juice::DriverTable driver{};
    std::string error;
    ASSERT_TRUE(driver.load(JUICE_EXPORTS_PROBE, error)) << error;
    int version = 0;
    EXPECT_EQ(driver.cuDriverGetVersion(&version), CUDA_SUCCESS);
    EXPECT_EQ(version, 4242);
    EXPECT_EQ(driver.cuMemcpyHtoD_v2(0, nullptr, 0), CUDA_ERROR_NOT_SUPPORTED);
}

TEST(DriverTable, SaysWhichFileCannotBeLoaded) {
    juice::DriverTable driver{};
    std::string error;
    EXPECT_FALSE(driver.load("/nowhere/libcuda.so.1", error));
    EXPECT_NE(error.find("/nowhere/libcuda.so.1"), std::string::npos) << error;
}

TEST(DriverTable, RefusesALibraryThatIsNoDriver) {
    juice::DriverTable driver{};
    std::string error;
    EXPECT_FALSE(driver.load(JUICE_NVML_EXPORTS_PROBE, error));
    EXPECT_NE(error.find("lacks cuInit"), std::string::npos) << error;
}

}  // namespace

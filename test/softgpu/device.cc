#include "test/softgpu/device.h"

#include <array>
#include <cstdlib>
#include <fstream>

namespace juice::truth {

Memory::Memory(size_t bytes) {
    EXPECT_OK(cuMemAlloc_v2(&address_, bytes == 0 ? 1 : bytes));
}

Memory::~Memory() {
    if (address_ != 0) cuMemFree_v2(address_);
}

void Memory::write(const void* from, size_t bytes) {
    EXPECT_OK(cuMemcpyHtoD_v2(address_, from, bytes));
}

void Memory::read(void* to, size_t bytes) const {
    EXPECT_OK(cuMemcpyDtoH_v2(to, address_, bytes));
}

namespace {

/// Leaves every text in the folder that SOFTGPU_TRUTH_KEEP names, for ptxas to read: what it
/// refuses, no real device runs.
void keep(const std::string& ptx) {
    static unsigned count = 0;
    if (const char* folder = std::getenv("SOFTGPU_TRUTH_KEEP")) {
        std::ofstream(std::string(folder) + "/" + std::to_string(count++) + ".ptx") << ptx;
    }
}

}  // namespace

Module::Module(const std::string& ptx) {
    keep(ptx);
    std::array<char, 4096> log{};
    std::array<CUjit_option, 2> options = {CU_JIT_ERROR_LOG_BUFFER,
                                           CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    std::array<void*, 2> values = {log.data(), reinterpret_cast<void*>(log.size())};
    EXPECT_OK(
        cuModuleLoadDataEx(&module_, ptx.c_str(), options.size(), options.data(), values.data()))
        << log.data();
}

Module::~Module() {
    if (module_ != nullptr) cuModuleUnload(module_);
}

CUfunction Module::function(const std::string& name) const {
    CUfunction found = nullptr;
    if (!loaded()) return nullptr;
    EXPECT_OK(cuModuleGetFunction(&found, module_, name.c_str())) << name;
    return found;
}

void DeviceTest::SetUp() {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    ASSERT_OK(cuInit(0));
    ASSERT_OK(cuDeviceGet(&device, 0));
    // Never released: the next test of this process would pay for a new one.
    ASSERT_OK(cuDevicePrimaryCtxRetain(&context, device));
    ASSERT_OK(cuCtxSetCurrent(context));
    if (capability() < target_) GTEST_SKIP() << "needs compute capability 7.5";
}

int DeviceTest::capability() {
    int major = 0, minor = 0;
    EXPECT_OK(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
    EXPECT_OK(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0));
    return major * 10 + minor;
}

bool DeviceTest::isSoftwareGpu() {
    std::array<char, 64> name{};
    return cuDeviceGetName(name.data(), name.size(), 0) == CUDA_SUCCESS &&
           std::string(name.data()) == "Juice Software GPU";
}

std::string DeviceTest::head() const {
    return ".version 9.0\n.target sm_" + std::to_string(target_) + "\n.address_size 64\n";
}

bool DeviceTest::aim(int sm) {
    target_ = sm;
    return capability() >= sm;
}

}  // namespace juice::truth

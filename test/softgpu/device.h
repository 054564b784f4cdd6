// What the truth tests share: a context on device 0, modules from PTX text, buffers and launches.
//
// The program speaks to whatever libcuda.so.1 the loader finds: the software GPU in CI, NVIDIA's
// driver on a machine with a GPU, the shim under `juice attach`. So a test here states what holds
// of every device; what only some have, it asks for with NEEDS.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "native/abi/cuda_abi.h"
#include "native/gen/cuda_api.h"

namespace juice::truth {

#define EXPECT_OK(call) EXPECT_EQ(call, CUDA_SUCCESS)
#define ASSERT_OK(call) ASSERT_EQ(call, CUDA_SUCCESS)

struct Dim {
    unsigned x = 1, y = 1, z = 1;
};

/// Device memory that is freed with it.
class Memory {
  public:
    explicit Memory(size_t bytes);
    ~Memory();
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    CUdeviceptr address() const { return address_; }
    void write(const void* from, size_t bytes);
    void read(void* to, size_t bytes) const;

  private:
    CUdeviceptr address_ = 0;
};

/// An array of T in device memory, zero unless values are given.
template <class T>
class Buffer {
  public:
    explicit Buffer(size_t count) : Buffer(std::vector<T>(count)) {}
    explicit Buffer(const std::vector<T>& values)
        : count_(values.size()), memory_(count_ * sizeof(T)) {
        write(values);
    }
    CUdeviceptr address() const { return memory_.address(); }
    void write(const std::vector<T>& values) {
        memory_.write(values.data(), values.size() * sizeof(T));
    }
    std::vector<T> read() const {
        std::vector<T> values(count_);
        memory_.read(values.data(), count_ * sizeof(T));
        return values;
    }

  private:
    size_t count_;
    Memory memory_;
};

/// A loaded module; a test whose module does not load fails with the driver's words.
class Module {
  public:
    explicit Module(const std::string& ptx);
    ~Module();
    Module(const Module&) = delete;
    Module& operator=(const Module&) = delete;
    bool loaded() const { return module_ != nullptr; }
    CUmodule handle() const { return module_; }
    CUfunction function(const std::string& name) const;

  private:
    CUmodule module_ = nullptr;
};

/// Starts a kernel and waits for its end. A launch that fails leaves no context to go on with, so
/// tests of faults run it in a process of its own: EXPECT_EXIT, whose style is "threadsafe" here.
template <class... A>
CUresult run(CUfunction function, Dim grid, Dim block, unsigned shared, A... arguments) {
    void* parameters[] = {&arguments..., nullptr};
    CUresult status = cuLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                     shared, nullptr, parameters, nullptr);
    return status == CUDA_SUCCESS ? cuCtxSynchronize() : status;
}

class DeviceTest : public testing::Test {
  protected:
    void SetUp() override;

    /// 90 for compute capability 9.0.
    static int capability();
    static bool isSoftwareGpu();

    /// The head of every PTX text: version, target, address size. The target is that of NEEDS.
    std::string head() const;
    /// Aims at compute capability `sm`; false where the device has less.
    bool aim(int sm);

    CUdevice device = 0;
    CUcontext context = nullptr;

  private:
    int target_ = 75;
};

/// Skips a test on a device of lower compute capability, and aims its PTX at that one.
#define NEEDS(sm) \
    if (!aim(sm)) GTEST_SKIP() << "needs compute capability " << (sm) / 10 << '.' << (sm) % 10

/// For what a real device does otherwise; say why.
#define SOFTWARE_GPU_ONLY(why) \
    if (!isSoftwareGpu()) GTEST_SKIP() << "software GPU only: " << (why)

}  // namespace juice::truth

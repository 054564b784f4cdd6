// The devices that this process sees.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "native/abi/cuda_result.h"
#include "native/softgpu/driver/settings.h"

namespace juice::softgpu {

class Context;

constexpr const char* kDeviceName = "Juice Software GPU";
constexpr int kDriverVersion = 13000;
/// Compute capability 9.0: everything that nvcc 13 emits for compute_75 to compute_90 is accepted.
constexpr unsigned kSm = 90;

/// Limits that both the attributes and the launch checks speak of.
constexpr unsigned kWarpSize = 32;
constexpr unsigned kMaxThreadsPerBlock = 1024;
constexpr unsigned kMaxBlockDim[3] = {1024, 1024, 64};
constexpr unsigned kMaxGridDim[3] = {2147483647, 65535, 65535};
constexpr size_t kSharedPerBlock = 49152;        // without asking
constexpr size_t kSharedPerBlockOptIn = 232448;  // after cuFuncSetAttribute
constexpr size_t kSharedPerMultiprocessor = 233472;
constexpr size_t kSharedReservedPerBlock = 1024;
constexpr unsigned kRegistersPerMultiprocessor = 65536;
constexpr unsigned kThreadsPerMultiprocessor = 2048;
constexpr unsigned kBlocksPerMultiprocessor = 32;

class Device {
  public:
    Device(int ordinal, const DeviceSettings& settings);

    int ordinal() const { return ordinal_; }
    const Uuid& uuid() const { return settings_.uuid; }
    uint64_t totalMemory() const { return settings_.memory; }
    uint64_t freeMemory() const;
    /// One for each core of the machine.
    unsigned multiprocessors() const;
    /// Made from the device's index among all of the machine, so that it stays the same whatever
    /// is visible.
    int pciDomain() const { return 0; }
    int pciBus() const { return static_cast<int>(settings_.index) + 1; }
    int pciDevice() const { return 0; }
    /// "0000:01:00.0"
    std::string pciBusId() const;
    /// Empty for an attribute that CUDA 13.0 does not define.
    std::optional<int> attribute(int id) const;

    /// Charges device memory; false when it does not fit.
    bool charge(uint64_t bytes);
    void refund(uint64_t bytes);

    /// The error that killed the device for this process, or CUDA_SUCCESS. A kernel's fault does:
    /// every context on the device answers with it from then on, and none can be made anew.
    CUresult failure() const { return failure_.load(std::memory_order_acquire); }
    /// The first failure stays; running kernels are stopped.
    void fail(CUresult failure);
    const volatile bool* cancelled() const { return &cancelled_; }

    /// Its primary context; always the same object, active or not.
    Context& primary() { return *primary_; }

  private:
    int ordinal_;
    DeviceSettings settings_;
    mutable std::mutex mutex_;
    uint64_t used_ = 0;
    std::atomic<CUresult> failure_{CUDA_SUCCESS};
    volatile bool cancelled_ = false;
    std::shared_ptr<Context> primary_;
};

/// All visible devices. Read from the environment at the first call, then fixed.
const std::vector<Device*>& devices();

/// Null when there is no such device.
Device* deviceAt(int ordinal);

}  // namespace juice::softgpu

// The part of NVML's ABI (x86-64 Linux) that this library implements, declared by ourselves.
#pragma once

#include <cstdint>

namespace juice::nvml {

/// nvmlReturn_t
enum Result : int {
    kSuccess = 0,
    kUninitialized = 1,
    kInvalidArgument = 2,
    kNotSupported = 3,
    kNotFound = 6,
    kInsufficientSize = 7,
    kDriverNotLoaded = 9,
    kArgumentVersionMismatch = 25,
};

/// nvmlPciInfo_t as version 3 of nvmlDeviceGetPciInfo knows it; older versions know its beginning.
struct PciInfo {
    char busIdLegacy[16];  // "0000:06:00.0"
    uint32_t domain, bus, device;
    uint32_t deviceId, subsystemId;  // vendor in the low half
    char busId[32];                  // "00000000:06:00.0"
};
static_assert(sizeof(PciInfo) == 68);
constexpr unsigned kPciInfoV1Size = 32, kPciInfoV2Size = 36;

/// nvmlMemory_t
struct Memory {
    uint64_t total, free, used;
};

/// nvmlMemory_v2_t
struct MemoryV2 {
    uint32_t version;
    uint64_t total, reserved, free, used;
};
static_assert(sizeof(MemoryV2) == 40);
constexpr uint32_t kMemoryV2 = sizeof(MemoryV2) | 2u << 24;

struct Device;
/// nvmlDevice_t
using DeviceHandle = Device*;

}  // namespace juice::nvml

/// What defines an entry point exports it.
#define JUICE_NVML_API extern "C" __attribute__((visibility("default")))

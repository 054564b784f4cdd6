// CUDA_VISIBLE_DEVICES, as the driver reads it.
#pragma once

#include <vector>

#include "native/link/snapshot.h"

namespace juice::shim {

struct Visible {
    /// 0; or the result of cuInit: 100 when nothing is left, 101 when a device is named twice.
    int result = 0;
    /// For each of the program's ordinals the index in the snapshot, which is the worker's ordinal.
    std::vector<int> devices;
};

/// `list` is the variable's value; null when it is not set, then all devices are visible. Entries
/// are ordinals, or "GPU-" and the beginning of a UUID that fits one device only; the list ends at
/// the first entry that is neither, or that is of the other form than the first.
Visible visibleDevices(const Snapshot& snapshot, const char* list);

/// "GPU-3d0e6764-0fc1-25b3-8bcd-83e24cdc137a"
std::string uuidText(const std::array<uint8_t, 16>& uuid);

}  // namespace juice::shim

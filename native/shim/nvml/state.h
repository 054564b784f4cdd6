// What this library knows: the session's devices, from the broker's snapshot. It has no connection
// to a worker, so it answers what cannot change; how much memory is in use it cannot tell.
#pragma once

#include "native/link/snapshot.h"
#include "native/shim/nvml/nvml_abi.h"

namespace juice::nvml {

/// A device of the session, in NVML's order: CUDA_VISIBLE_DEVICES means nothing here.
struct Device {
    unsigned index = 0;
    DeviceSnapshot facts;

    int attribute(int which) const;
};

/// Counts nvmlInit and nvmlShutdown.
Result initialise();
Result shutDown();

/// Success between the two, else kUninitialized.
Result initialised();
unsigned deviceCount();
/// Null when there is no such device.
Device* device(unsigned index);
/// The device of a handle, or an error.
Result deviceOf(DeviceHandle handle, const Device*& device);
const Snapshot& snapshot();

/// Copies a text with its NUL into a caller's buffer.
Result copyText(char* out, unsigned length, const std::string& text);

}  // namespace juice::nvml

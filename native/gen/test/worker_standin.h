// The worker's contract (native/worker/calls.h) played by stand-ins: every wire id is alive, the
// driver's handle for it is kDriverBase + id, and the driver is whatever table the program fills.
#pragma once

#include <vector>

#include "native/worker/calls.h"

namespace juice::standin {

constexpr uint64_t kDriverBase = 0x20'0000'0000;

template <typename T>
T driverHandle(uint64_t id) {
    return reinterpret_cast<T>(kDriverBase + id);
}
inline uint64_t driverId(const void* handle) {
    return reinterpret_cast<uint64_t>(handle) - kDriverBase;
}

extern DriverTable driver;
/// What the last handler stored for an object that it made.
extern uint64_t madeId;
extern void* madeHandle;

/// Runs the generated handler of `op`. `results` is what its Reply would carry.
CUresult execute(uint16_t op, Bytes payload, std::vector<uint8_t>& results);

}  // namespace juice::standin

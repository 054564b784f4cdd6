// What a worker has ready before any client comes: the driver, a primary context on each of its
// GPUs, and the snapshot of everything about them that does not change.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "native/gen/driver_table.h"
#include "native/link/snapshot.h"

namespace juice::worker {

struct Machine {
    DriverTable driver{};
    Snapshot snapshot;
    std::vector<CUcontext> contexts;  // by device; each retained once
    /// GPU memory that one context takes, in bytes; 0 where it cannot be told (the software GPU).
    uint64_t contextBytes = 0;

    /// Loads the driver and starts it. False, with one sentence in `error` that names cause and
    /// cure.
    bool start(const char* driverPath, std::string& error);
};

}  // namespace juice::worker

// The answer to the runtime's validity question, which binds the process, its tables and its
// devices. A wrong one makes every runtime call of the process fail with 103.
#pragma once

#include <cstdint>
#include <vector>

#include "native/tables/md2.h"
#include "native/tables/tables.h"

namespace juice::tables {

/// All that the answer depends on.
struct IntegrityQuestion {
    uint32_t driverVersion;
    uint32_t version;  // the runtime's own version, plus 0, 1 or 2
    uint32_t pid;
    uint32_t thread;                                          // low half of pthread_self()
    uint64_t cudartInterface, integrityCheck, checkFunction;  // addresses as handed out
    uint64_t unixSeconds;
    std::vector<DeviceIdentity> devices;
};

Digest answer(const IntegrityQuestion& question);

}  // namespace juice::tables

// Asks the broker, `juice attach` itself, which listens on the socket that JUICE_BROKER names: see
// docs/architecture.md, Broker socket. Used by the driver shim and by the NVML shim.
#pragma once

#include <string>

#include "native/link/client_link.h"
#include "native/link/snapshot.h"

namespace juice::broker {

enum class Ask : uint32_t {
    snapshot = 1,  // what devices there are
    process = 2,   // an identity for this process, and where its worker is
};

struct Answer {
    /// 0; else the CUresult to give to the program, and a sentence that says why.
    int result = 0;
    std::string sentence;

    Credentials who;  // of process answers
    Endpoint endpoint;
    Snapshot snapshot;
};

/// Is this process one of an attached program?
bool attached();

/// One request, one answer. Blocks for at most ten seconds. When there is no broker, or it does not
/// answer, the result is CUDA_ERROR_NO_DEVICE or CUDA_ERROR_DEVICE_UNAVAILABLE.
Answer ask(Ask what);

}  // namespace juice::broker

// What the shim keeps for each thread of the program.
#pragma once

#include <cstdint>
#include <vector>

#include "native/shim/objects.h"

namespace juice::shim {

struct Thread {
    uint32_t number = 0;             // the worker's name for it, from 1
    std::vector<Context*> contexts;  // the stack; the current one is last
    int captureMode = 0;             // CUstreamCaptureMode
    uint64_t capture = 0;            // the last capture that its own default stream was in
    /// What the last question about a capture was answered with.
    std::vector<CUgraphNode> capturedNodes;
    std::vector<CUgraphEdgeData> capturedEdges;
    /// The error of an earlier posted call, found by a call whose own success had to be told; for
    /// the next waited call.
    CUresult deferred = CUDA_SUCCESS;

    Context* current() const { return contexts.empty() ? nullptr : contexts.back(); }
};

/// The calling thread's.
Thread& thread();

}  // namespace juice::shim

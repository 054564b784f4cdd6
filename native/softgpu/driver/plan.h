// Steps that wait for each other, and who runs them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "native/softgpu/driver/operation.h"

namespace juice::softgpu {

/// One launch of a graph: its operations, bound, with their order.
struct Plan {
    struct Step {
        Work work;                         // may be empty
        const Context* context = nullptr;  // whose failure skips the step
        bool always = false;               // not even then
        bool mayBlock = false;
        uint32_t before = 0;         // how many steps must have ended
        std::vector<uint32_t> next;  // the steps that wait for this one
    };
    std::vector<Step> steps;
    /// Kept alive until the last run has ended.
    std::vector<std::shared_ptr<void>> kept;

    /// Runs every step once, each after those that it waits for, and returns when all have ended. A
    /// step that may block never holds back one that is independent of it. May be called again.
    void execute() const;
};

}  // namespace juice::softgpu

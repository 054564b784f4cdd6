// Events: a place in a stream's work that can be waited for and has a time.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "native/softgpu/driver/completion.h"
#include "native/softgpu/driver/stream.h"

namespace juice::softgpu {

class Context;

class Event {
  public:
    Event(Context& context, unsigned flags) : context_(context), flags_(flags) {}

    Context& context() const { return context_; }
    bool timed() const { return (flags_ & CU_EVENT_DISABLE_TIMING) == 0; }

    /// Records all that was submitted to the stream so far.
    void record(Stream& stream) {
        Fence fence = stream.submit({});
        const std::lock_guard lock(mutex_);
        last_ = std::move(fence);
    }

    /// What was recorded last; null when nothing ever was.
    Fence last() const {
        const std::lock_guard lock(mutex_);
        return last_;
    }

  private:
    Context& context_;
    const unsigned flags_;
    mutable std::mutex mutex_;
    Fence last_;
};

}  // namespace juice::softgpu

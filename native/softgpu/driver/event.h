// Events: a place in a stream's work that can be waited for and has a time.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "native/softgpu/driver/completion.h"
#include "native/softgpu/driver/shared_event.h"
#include "native/softgpu/driver/stream.h"

namespace juice::softgpu {

class Context;

class Event {
  public:
    /// `shared`: of an event that other processes may have too.
    Event(Context& context, unsigned flags, std::shared_ptr<SharedEvent> shared = nullptr)
        : context_(context), flags_(flags), shared_(std::move(shared)) {}

    Context& context() const { return context_; }
    bool timed() const { return (flags_ & CU_EVENT_DISABLE_TIMING) == 0; }

    /// Records all that was submitted to the stream so far.
    void record(Stream& stream) {
        Fence fence = stream.submit({});
        if (shared_) shared_->record(fence);
        const std::lock_guard lock(mutex_);
        last_ = std::move(fence);
    }

    const std::shared_ptr<SharedEvent>& shared() const { return shared_; }

    /// What was recorded last; null when nothing ever was.
    Fence last() const {
        if (shared_) return shared_->last();
        const std::lock_guard lock(mutex_);
        return last_;
    }

  private:
    Context& context_;
    const unsigned flags_;
    const std::shared_ptr<SharedEvent> shared_;
    mutable std::mutex mutex_;
    Fence last_;
};

}  // namespace juice::softgpu

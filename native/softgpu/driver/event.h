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
struct CapturedPlace;

class Event {
  public:
    /// `shared`: of an event that other processes may have too.
    Event(Context& context, unsigned flags, std::shared_ptr<SharedEvent> shared = nullptr)
        : context_(context), flags_(flags), shared_(std::move(shared)) {}

    Context& context() const { return context_; }
    bool timed() const { return (flags_ & CU_EVENT_DISABLE_TIMING) == 0; }

    /// Records all that was submitted to the stream so far.
    void record(Stream& stream) { expect(stream.submit({})); }
    /// Stands for this from now on.
    void expect(Fence fence) {
        if (shared_) shared_->record(fence);
        const std::lock_guard lock(mutex_);
        last_ = std::move(fence);
        captured_ = nullptr;
    }
    /// Stands for a place in a capture from now on.
    void capture(std::shared_ptr<const CapturedPlace> place) {
        const std::lock_guard lock(mutex_);
        captured_ = std::move(place);
    }

    const std::shared_ptr<SharedEvent>& shared() const { return shared_; }

    /// What was recorded last; null when nothing ever was.
    Fence last() const {
        if (shared_) return shared_->last();
        const std::lock_guard lock(mutex_);
        return last_;
    }

    /// Where in a capture it was recorded last; null when that was not in a capture.
    std::shared_ptr<const CapturedPlace> captured() const {
        const std::lock_guard lock(mutex_);
        return captured_;
    }

  private:
    Context& context_;
    const unsigned flags_;
    const std::shared_ptr<SharedEvent> shared_;
    mutable std::mutex mutex_;
    Fence last_;
    std::shared_ptr<const CapturedPlace> captured_;
};

}  // namespace juice::softgpu

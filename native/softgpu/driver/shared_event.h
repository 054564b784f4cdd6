// The state of an event that several processes have: which records of it there were, and which of
// them have ended. It lies in a page that all of them map; whoever records marks the end itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "native/softgpu/driver/completion.h"
#include "native/softgpu/driver/door.h"

namespace juice::softgpu {

class SharedEvent : public std::enable_shared_from_this<SharedEvent> {
  public:
    /// A new one of this process; null where the system lacks what it takes.
    static std::shared_ptr<SharedEvent> create(const Uuid& device);
    /// Another process's.
    static CUresult open(const Ticket& ticket, std::shared_ptr<SharedEvent>& opened);
    ~SharedEvent();
    SharedEvent(const SharedEvent&) = delete;
    SharedEvent& operator=(const SharedEvent&) = delete;

    /// A record that ends with the fence.
    void record(const Fence& fence);
    /// The end of the newest record, whichever process made it; null when there was none.
    Fence last();

    /// How others open it; null where the system lacks what it takes, or for an opened one.
    const Ticket* ticket();
    Uuid device() const { return device_; }

  private:
    /// Numbers of records count from 1, in the order in which they were made.
    struct Page;

    SharedEvent(Page& page, const Uuid& device);
    bool ended(uint32_t number) const;
    void end(uint32_t number) const;
    void awaitEnd(uint32_t number) const;

    Page& page_;
    const Uuid device_;
    std::unique_ptr<Loan> loan_;      // of an opened one
    std::unique_ptr<Ticket> ticket_;  // of an exported one
    std::mutex mutex_;
    uint32_t awaited_ = 0;  // the record that `fence_` is of
    Fence fence_;
};

}  // namespace juice::softgpu

// The contexts of a client and what belongs to each: its default streams, one for every client
// thread, and its sticky error. Contexts are named by the low 32 bits of their wire id, as in
// wire::Header::context.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "native/gen/driver_table.h"

namespace juice::worker {

struct Context {
    uint64_t id = 0;
    CUcontext handle = nullptr;
    CUdevice device = 0;
    bool primary = false;
    /// 0, or the CUresult after which nothing works in this context any more.
    std::atomic<int> sticky{0};
    /// By client thread. Made when first named, blocking towards the legacy stream, as per-thread
    /// default streams are.
    std::unordered_map<uint32_t, CUstream> threadStreams;
};

/// Errors that no later call in the context survives.
bool isSticky(CUresult result);

/// find() from any thread, the rest from the executor's.
class Contexts {
  public:
    std::shared_ptr<Context> find(uint64_t id) const {
        const std::lock_guard lock(mutex_);
        const auto it = live_.find(static_cast<uint32_t>(id));
        return it == live_.end() || id == 0 ? nullptr : it->second;
    }
    /// The id of the context with the driver's handle; 0 when there is none.
    uint64_t idOf(CUcontext handle) const;
    std::shared_ptr<Context> primaryOf(CUdevice device) const;
    /// False when the id (its low 32 bits) is 0 or taken, or when the client has too many contexts.
    bool add(uint64_t id, CUcontext handle, CUdevice device, bool primary);
    void remove(uint64_t id);

    /// The client thread's default stream in the context, which must be current.
    CUresult threadStream(const DriverTable& driver, Context& context, uint32_t thread,
                          CUstream& out);

  private:
    static constexpr size_t kMaxContexts = 4096;
    static constexpr size_t kMaxThreads = 1 << 16;
    mutable std::mutex mutex_;
    std::unordered_map<uint32_t, std::shared_ptr<Context>> live_;
};

}  // namespace juice::worker

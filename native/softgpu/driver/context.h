// Contexts: primary ones, which a device always has, and created ones. A context owns its streams,
// events, modules and memory.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "native/abi/cuda_abi.h"
#include "native/softgpu/driver/stream.h"
#include "native/softgpu/engine.h"

namespace juice::softgpu {

class Device;

class Context : public MemoryMap, public std::enable_shared_from_this<Context> {
  public:
    /// A device's primary context, not yet active.
    static std::shared_ptr<Context> createPrimary(Device& device);
    /// Another context, active at once.
    static std::shared_ptr<Context> create(Device& device, unsigned flags);
    ~Context() override = default;

    Device& device() const { return device_; }
    bool primary() const { return primary_; }
    uint64_t id() const { return id_; }
    /// False for a primary context that nobody retains and for a destroyed one: 709 for its users.
    bool active() const { return active_.load(std::memory_order_acquire); }
    std::atomic<unsigned>& flags() { return flags_; }

    /// Primary contexts: one retain more or less; the last release resets. `release` is false when
    /// there was no retain.
    void retain();
    bool release();
    /// Waits for all work, then frees everything that belongs to the context. Kernels that run on
    /// and on are stopped: nobody could see what they would still do. A primary context is
    /// inactive afterwards and may be retained anew; a created one stays, small and for
    /// ever, as a handle that answers 709 wherever it is still used.
    void reset();

    /// Stops the kernels at once, those that wait for their turn too.
    void stop();
    /// Set when the context's kernels must stop.
    const volatile bool* cancelled() const { return &cancelled_; }

    /// The error that killed the device, and with it this context, or CUDA_SUCCESS.
    CUresult failure() const;
    bool failed() const { return failure() != CUDA_SUCCESS; }

    Stream& legacyStream() const { return *legacy_; }
    /// The calling thread's own default stream.
    std::shared_ptr<Stream> threadStream();
    std::shared_ptr<Stream> createStream(StreamKind kind, int priority);
    /// The stream takes no more work; what it has goes on.
    void closeStream(const Stream& stream);
    /// Returns when all streams are idle.
    void synchronize();

    CUresult limit(CUlimit limit, size_t& value) const;
    CUresult setLimit(CUlimit limit, size_t value);

    bool enablePeer(const Device& device);
    bool disablePeer(const Device& device);

    /// cuCtxAttach and cuCtxDetach: users more or less; the last detach is a destroy. The new
    /// number.
    int attach(int change) { return users_ += change; }

    std::atomic<int> cacheConfig{CU_FUNC_CACHE_PREFER_NONE};
    std::atomic<int> sharedConfig{CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE};

    // What kernels of this context may access.
    bool contains(uint64_t address, size_t size) const override;
    uint64_t generation() const override;
    std::pair<uint64_t, uint64_t> rangeOf(uint64_t address) const override;
    NearbyMemory nearest(uint64_t address) const override;

  private:
    friend class Stream;

    Context(Device& device, bool primary, unsigned flags);
    void start();
    std::vector<Fence> tails();

    Device& device_;
    const bool primary_;
    const uint64_t id_;
    std::atomic<bool> active_{false};
    volatile bool cancelled_ = false;
    std::atomic<unsigned> flags_;
    std::atomic<int> users_{1};

    std::recursive_mutex life_;  // retain, release and reset; destructors may call back
    unsigned retained_ = 0;

    /// Held while work is submitted to any of the streams, and for the list of them.
    std::mutex submission_;
    std::shared_ptr<Stream> legacy_;
    std::vector<std::shared_ptr<Stream>> streams_;  // all but the legacy one
    std::set<const Stream*> closed_;                // of those, the ones to forget when idle
    std::map<std::thread::id, std::shared_ptr<Stream>> threadStreams_;

    mutable std::mutex state_;  // limits and peers
    std::map<CUlimit, size_t> limits_;
    std::set<int> peers_;
};

/// The calling thread's stack of contexts; the current one is on top. Destroyed contexts stay on it
/// until they are popped.
class ContextStack {
  public:
    static ContextStack& ofThread();
    /// Null when the stack is empty.
    std::shared_ptr<Context> current() const;
    void push(std::shared_ptr<Context> context);
    std::shared_ptr<Context> pop();
    /// Replaces the top; with null pops it.
    void set(std::shared_ptr<Context> context);
    /// Pops the context if it is on top.
    void drop(const Context& context);

  private:
    std::vector<std::shared_ptr<Context>> stack_;
};

inline CUcontext handleOf(Context& context) {
    return reinterpret_cast<CUcontext>(&context);
}

}  // namespace juice::softgpu

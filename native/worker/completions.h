// What is to happen when the GPU has got somewhere: staging memory given back, a mirrored copy
// sent.
//
// One thread polls the events of whatever is pending; any thread may poll as well, and the executor
// does so before each answer, so that an answer never overtakes what it implies. Polling loses
// nothing against tricks with host memory, and asks nothing of the driver but cuEventQuery.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "native/gen/driver_table.h"
#include "native/worker/captures.h"

namespace juice::worker {

class Completions {
  public:
    using Done = std::function<void(CUresult)>;

    explicit Completions(const DriverTable& driver);
    ~Completions();

    /// Records an event on `stream` of `context`, which must be current. `done` is called exactly
    /// once, from any thread, with the event's result; at once when the event cannot be recorded.
    /// It must neither block nor come back here. `delivers`: it sends something that answers
    /// presuppose.
    void after(CUcontext context, CUstream stream, bool delivers, Done done);
    /// The same for what tells the client that the stream has got here: `done` is called after
    /// everything that is due before it in any stream, and may block.
    void tell(CUcontext context, CUstream stream, Done done);

    /// Calls what is due.
    void poll();
    /// The same, when anything that answers presuppose is pending; else it costs one load.
    void deliver() {
        if (deliveries_.load(std::memory_order_acquire) != 0) poll();
    }
    /// The stream has been destroyed: what is pending on it goes on, but a new stream that happens
    /// to have the same handle is another one.
    void retire(CUcontext context, CUstream stream);
    /// Ends everything of a context that is about to be destroyed. It must be current and idle.
    void forget(CUcontext context);

  private:
    struct Item {
        CUevent event;
        bool delivers, tells;
        Done done;
    };
    /// A `tell` whose time has come.
    struct Due {
        Done done;
        CUresult result;
    };
    void enter(CUcontext context, CUstream stream, bool delivers, bool tells, Done done);
    /// A stream: the handle names one only within its context.
    using Key = std::pair<CUcontext, uint64_t>;
    static Key keyOf(CUcontext context, CUstream stream) {
        return {context, reinterpret_cast<uint64_t>(stream)};
    }
    void watch();
    /// Of one stream, in the stream's order. True when something was due.
    bool pollQueue(CUcontext context, std::deque<Item>& queue);
    /// All streams. `current` is the polling thread's context, where it has none of its own: some
    /// drivers answer a query only on a thread that has a context.
    bool pollAll(CUcontext* current);
    bool pass(CUcontext* current);
    /// Calls what tells the client, without the lock.
    void tellDue(std::unique_lock<std::mutex>& lock);
    CUevent takeEvent(CUcontext context, CUresult& result);
    void finish(CUcontext context, Item& item, CUresult result);

    const DriverTable& driver_;
    std::mutex mutex_;
    std::condition_variable pending_;
    std::map<Key, std::deque<Item>> queues_;
    uint64_t retired_ = uint64_t{1} << 63;  // no stream's handle
    std::unordered_map<CUcontext, std::vector<CUevent>> spare_;
    std::atomic<int> deliveries_{0};
    size_t count_ = 0, telling_ = 0;
    std::vector<Due> found_, due_;
    bool stopping_ = false;
    std::thread watcher_;
};

}  // namespace juice::worker

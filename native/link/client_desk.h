// Who reads the client's command lane, and who waits for what.
//
// A thread that waits reads the lane itself, when nobody else does: it spins, then blocks. The
// others sleep, each on its own condition variable, until the reader has delivered what they wait
// for or has left and calls the next of them to read. When nobody waits, the watcher thread takes
// what comes; as long as threads come to wait it naps, so that it costs no wake-up for each
// message.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>

#include "native/link/frame_stream.h"
#include "native/link/socket.h"

namespace juice {

class Desk {
  public:
    /// A thread's wait for something.
    class Waiter {
      public:
        /// Is the wait over? Called with `state` held, on any thread.
        virtual bool ready() = 0;

      protected:
        ~Waiter() = default;

      private:
        friend class Desk;
        std::atomic<bool> done_{false};
        bool reads_ = false;   // this one has the lane
        bool called_ = false;  // asked to read
        std::condition_variable wake_;
        Waiter* next_ = nullptr;
    };

    /// `ended` is told, on the reading thread and without `state`, how the stream ended.
    Desk(int fd, FrameStream& stream, std::function<void(FrameStream::Got)> ended)
        : fd_(fd), stream_(stream), ended_(std::move(ended)) {}

    /// Guards everything that a ready() looks at.
    std::mutex state;

    /// Returns once `waiter` is ready or the link is over. Called without `state`.
    void wait(Waiter& waiter);
    /// With `state` held, after any change that may end a wait.
    void settle();
    /// The link is over: every wait returns, now and later.
    void close();
    bool closed() const { return closed_.load(std::memory_order_acquire); }

    /// The body of the watcher thread; ends after close().
    void watch();
    /// After fork, in the child.
    void abandon() { kick_.abandon(); }

  private:
    void read(Waiter& waiter);
    void block(Waiter& waiter);
    void callNext();

    const int fd_;
    FrameStream& stream_;
    const std::function<void(FrameStream::Got)> ended_;
    Kick kick_;  // gets the reader out of poll when another lane has brought what it waits for
    std::atomic<bool> closed_{false};
    // guarded by `state`:
    bool reading_ = false;  // somebody has the lane
    bool blocked_ = false;  // in poll
    uint64_t waits_ = 0;
    Waiter* waiters_ = nullptr;
};

/// A Waiter made of a predicate.
template <typename Predicate>
class WaiterFor final : public Desk::Waiter {
  public:
    explicit WaiterFor(Predicate predicate) : predicate_(std::move(predicate)) {}
    bool ready() override { return predicate_(); }

  private:
    Predicate predicate_;
};

}  // namespace juice

// A stream: work that runs in order, on a thread of its own, while the program goes on.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "native/abi/cuda_abi.h"
#include "native/softgpu/driver/completion.h"

namespace juice::softgpu {

class Context;

/// How a stream orders itself against the context's others.
enum class StreamKind : uint8_t {
    legacy,       // the default stream: before and after everything but non-blocking streams
    blocking,     // waits for the legacy stream and is waited for by it
    nonBlocking,  // on its own
};

/// A piece of work. An empty one is a marker: it ends when everything before it has ended.
struct Task {
    std::function<void()> work;
    /// What must have ended before, besides the stream's earlier work.
    std::vector<Fence> after;
    /// Runs even when the context has failed: callbacks that report the failure.
    bool always = false;
};

class Stream : public std::enable_shared_from_this<Stream> {
  public:
    Stream(Context& context, StreamKind kind, int priority);

    Context& context() const { return context_; }
    StreamKind kind() const { return kind_; }
    int priority() const { return priority_; }
    uint64_t id() const { return id_; }

    /// Appends work; the fence tells when it has ended. Never blocks.
    Fence submit(Task task);
    /// Appends work and returns when it has ended. Runs it right here when nothing is before it.
    void run(const std::function<void()>& work);
    /// Has everything that was submitted ended? (Of a legacy stream: and all that it waits for.)
    bool idle() const;
    /// Returns when everything that was submitted has ended, likewise.
    void synchronize() const;

    /// The end of the last work submitted. Null when there was none.
    Fence tail() const;

    /// What cuStreamSetAttribute set, if it did.
    std::optional<CUstreamAttrValue> attribute(CUstreamAttrID attribute) const;
    void setAttribute(CUstreamAttrID attribute, const CUstreamAttrValue& value);
    /// Makes all attributes those of another stream.
    void copyAttributes(const Stream& from);

  private:
    friend class Context;

    struct Entry {
        Task task;
        Fence done;
    };

    /// Under the context's submission lock: what this stream's next work must wait for.
    void addImplicitFences(std::vector<Fence>& after) const;
    /// Everything that must have ended for the stream to be idle.
    std::vector<Fence> pending() const;
    /// Enters the task; with `inlined` set and nothing before it, leaves it to the caller.
    Fence enqueue(Task&& task, bool* inlined);
    void startThread();
    void loop();
    void execute(Entry& entry) const;

    Context& context_;
    const StreamKind kind_;
    const int priority_;
    const uint64_t id_;
    mutable std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<Entry> queue_;
    Fence tail_;
    std::map<CUstreamAttrID, CUstreamAttrValue> attributes_;
    bool busy_ = false;     // work is being executed, by the thread or by a caller of run()
    bool running_ = false;  // the thread exists
};

}  // namespace juice::softgpu

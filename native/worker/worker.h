// The executor: runs the calls of one client process in their order, against the driver.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "native/link/custom.h"
#include "native/link/server_link.h"
#include "native/link/usage.h"
#include "native/worker/calls.h"
#include "native/worker/captures.h"
#include "native/worker/coherence.h"
#include "native/worker/completions.h"
#include "native/worker/contexts.h"
#include "native/worker/gates.h"
#include "native/worker/graph_runs.h"
#include "native/worker/graphs.h"
#include "native/worker/helpers.h"
#include "native/worker/images.h"
#include "native/worker/memory.h"
#include "native/worker/mirrors.h"
#include "native/worker/objects.h"
#include "native/worker/output.h"
#include "native/worker/staging.h"

namespace juice::worker {

/// Primary contexts that were made before a client came, by device; null once a client has taken
/// one over.
using WarmContexts = std::vector<CUcontext>;

class Worker {
  public:
    Worker(const DriverTable& driver, ServerLink& link, Output& output, Staging& staging,
           Images& images, UsagePage& usage, WarmContexts warm, uint64_t memoryLimit);

    /// Executes until the link ends (true) or the client breaks the protocol (false).
    bool run();
    /// What it did, in a sentence, after run() has returned false.
    const std::string& violation() const { return violation_; }
    /// Brings the figures of the link up to date. Any thread.
    void publishUsage();

    // For handlers, on the executor's thread.

    /// The client did what no shim does: the link ends after this call.
    void violate(std::string sentence);
    /// Of the current call's header; null when it names none that lives.
    const std::shared_ptr<Context>& context() const { return context_; }
    /// Waits until all that is on the stream has run, then finishes the call with `then(result,
    /// results)`: here, or on a helper thread when there are other client threads, who must not
    /// wait.
    using Then = std::function<CUresult(CUresult, Writer&)>;
    CUresult awaitStream(Incoming& in, CUstream stream, const Then& then);
    /// Runs a job that blocks: here, or on a helper thread in the same context.
    CUresult runBlocking(Incoming& in, const std::function<CUresult(Writer&)>& job);
    /// Polls until `ready` says other than not ready, for as long as one thread may keep all others
    /// waiting.
    CUresult poll(const std::function<CUresult()>& query) const;
    /// Ends a context of the client's with `destroy`: what it owns is gone with it.
    CUresult endContext(const std::shared_ptr<Context>& context,
                        const std::function<CUresult()>& destroy);
    /// From now on the mirror is kept the same as the client's memory.
    CUresult cohere(const Mirror& mirror);
    /// After modules or libraries have gone from `objects`, before they go from the driver.
    void forgetVariables();
    /// Before the stream is destroyed.
    void retireStream(uint64_t id, CUstream stream);
    /// A primary context that is ready, or null; it is the caller's from then on.
    CUcontext takeWarm(CUdevice device);

    /// Records or sends the outcome of a call. Any thread.
    void answer(const wire::Header& header, CUresult result, Bytes payload);

    const DriverTable& driver;
    ServerLink& link;
    Output& output;
    Staging& staging;
    Images& images;
    UsagePage& usage;
    Objects objects;
    Contexts contexts;
    Memory memory;
    Mirrors mirrors;
    Coherence coherence;
    Gates gates;
    Completions completions;
    Captures captures;
    GraphNumbers graphs;
    std::unordered_map<uint64_t, std::shared_ptr<GraphExec>> graphExecs;  // by number
    std::unordered_multimap<uint64_t, uint64_t> graphMemory;  // addresses, by their graph's number
    GraphRuns graphRuns;

  private:
    struct Deferred {
        int result = 0;
        uint16_t opcode = 0;
    };
    void execute(const Call& call);
    void enterContext(uint32_t id);
    /// May a call that blocks hold up the calls behind it? Not those of other threads; nor what a
    /// kernel waits for that watches host memory.
    bool mayHoldUp() const { return !severalThreads_ && !coherence.any(); }
    void noteSticky(const wire::Header& header, CUresult result);

    WarmContexts warm_;
    std::shared_ptr<Context> context_;
    uint32_t current_ = 0;  // id of the context that is current on the executor's thread
    int spinMicros_;
    bool violated_ = false;
    std::string violation_;

    std::mutex threadsMutex_;
    /// By client thread: its first posted call that failed since its last answer.
    std::unordered_map<uint32_t, Deferred> threads_;
    bool severalThreads_ = false;
    uint32_t lastThread_ = 0;
    Helpers helpers_;  // last: its threads use everything above
};

/// While it lives the executor may be blocked, so the link reads without it.
class Blocking {
  public:
    explicit Blocking(Worker& worker) : link_(worker.link) { link_.busy(); }
    /// The driver will wait for streams, perhaps with its locks held: functions of the client that
    /// hold streams up come first.
    enum ForStreams { kForStreams };
    Blocking(Worker& worker, ForStreams) : Blocking(worker) {
        worker.gates.drain();
        worker.graphRuns.drain();
    }
    ~Blocking() { link_.idle(); }
    Blocking(const Blocking&) = delete;

  private:
    ServerLink& link_;
};

}  // namespace juice::worker

// Launches of executable graphs that call functions of the client: watches the words at which they
// stop, and sees to it that what was written before is on its way when the client is told.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "native/link/server_link.h"
#include "native/worker/coherence.h"
#include "native/worker/graphs.h"

namespace juice::worker {

class GraphRuns {
  public:
    GraphRuns(ServerLink& link, const Mirrors& mirrors, Coherence& coherence)
        : link_(link), mirrors_(mirrors), coherence_(coherence) {}
    ~GraphRuns();

    struct Run {
        std::shared_ptr<GraphExec> exec;
        std::shared_ptr<GraphPlan> plan;
        uint64_t token = 0;
        /// One for each of the plan's writes; 0: coherent, and sent by other means.
        std::vector<uint64_t> transfers;
        std::vector<bool> sent;
    };
    /// Before the launch.
    std::shared_ptr<Run> start(Run run);
    /// The launch is done, or has failed: sends what is left. Any thread; neither blocks.
    void finish(const std::shared_ptr<Run>& run, CUresult result);
    /// The client's answer; false when the gate is no stop of a graph's.
    bool release(uint64_t gate);
    /// Returns when none is under way.
    void drain();

  private:
    void watch();
    /// Under the lock.
    void send(Run& run, uint32_t write);

    ServerLink& link_;
    const Mirrors& mirrors_;
    Coherence& coherence_;
    std::mutex mutex_;
    std::condition_variable started_, ended_;
    std::list<std::shared_ptr<Run>> runs_;  // in the order of their launches
    std::unordered_map<uint64_t, uint32_t*> stopped_;
    bool stopping_ = false;
    std::thread watcher_;
};

}  // namespace juice::worker

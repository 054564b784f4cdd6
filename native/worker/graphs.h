// The client's graphs: the numbers that it knows their parts by, and what must be known of an
// executable graph to launch it: which pinned memory it reads and writes, and where it calls
// functions of the client.
//
// A graph holds its host nodes as they are. What is instantiated is a clone, in which each of them
// is replaced by memory operations: say "reached", wait for "released", take that back.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "native/gen/driver_table.h"
#include "native/link/custom.h"
#include "native/worker/gates.h"
#include "native/worker/mirrors.h"

namespace juice::worker {

enum class GraphKind : uint8_t { graph, node, exec, userObject };

/// Numbers for handles of the driver. Used by the executor alone.
class GraphNumbers {
  public:
    /// The handle's number, a new one where it has none. `owner`: the number of the graph that it
    /// goes with, or 0.
    uint64_t of(GraphKind kind, void* handle, uint64_t owner);
    /// Null when there is none.
    void* find(GraphKind kind, uint64_t number) const;
    uint64_t ownerOf(uint64_t number) const;
    /// The number, and those of all that goes with it.
    void forget(uint64_t number);

  private:
    struct Entry {
        GraphKind kind;
        void* handle;
        uint64_t owner;
        std::vector<uint64_t> owned;
    };
    uint64_t last_ = 0;
    std::unordered_map<uint64_t, Entry> entries_;
    std::map<std::pair<GraphKind, void*>, uint64_t> numbers_;
};

/// A place where an executable graph stops for a function of the client's.
struct GraphStop {
    uint64_t gate = 0;
    uint64_t function = 0;
    Gates::Pair words;
    std::vector<uint32_t> writesBefore;  // indices into GraphPlan::writes: done when it is reached
};

/// What a graph does with the client.
struct GraphPlan {
    std::vector<custom::HostSpan> reads, writes;
    std::vector<GraphStop> stops;
    /// Copies that touch pinned memory, with the indices of what they read and write; kNone: not.
    struct Copy {
        uint32_t read, write;
    };
    static constexpr uint32_t kNone = UINT32_MAX;
    std::map<CUgraphNode, Copy> copies;
    CUgraph clone = nullptr;  // what is instantiated in the graph's place, or null

    void put(Writer& out) const;
};

struct GraphExec {
    CUgraphExec handle = nullptr;
    CUcontext context = nullptr;
    uint32_t contextId = 0;
    std::shared_ptr<GraphPlan> plan;
    /// Plans that updates have replaced: launches under way may still be at their stops.
    std::vector<std::shared_ptr<GraphPlan>> retired;
};

class GraphPlanner {
  public:
    GraphPlanner(const DriverTable& driver, const Mirrors& mirrors, Gates& gates, CUcontext context)
        : driver_(driver), mirrors_(mirrors), gates_(gates), context_(context) {}
    /// With host nodes in it the plan has a clone, which is the caller's to destroy.
    CUresult plan(CUgraph graph, GraphPlan& out);
    /// May the node's copy become this one? False where a stop would have to know of it.
    bool mayChange(CUgraphNode node, const CUDA_MEMCPY3D& copy, const GraphPlan& plan) const;
    void change(CUgraphNode node, const CUDA_MEMCPY3D& copy, GraphPlan& plan) const;

  private:
    using Writes = std::vector<uint32_t>;
    CUresult countHosts(CUgraph graph, size_t& hosts) const;
    CUresult nodesOf(CUgraph graph, std::vector<CUgraphNode>& out) const;
    /// `before`: what has been written when the graph begins; `all` gets what it writes besides.
    CUresult walk(CUgraph graph, const Writes& before, Writes& all, GraphPlan& out);
    CUresult look(CUgraphNode node, const Writes& before, Writes& own, GraphPlan& out);
    CUresult replace(CUgraph graph, CUgraphNode host, const Writes& before, GraphPlan& out);
    CUresult noteCopy(CUgraphNode node, Writes& own, GraphPlan& out) const;
    /// The parts of mirrors that a copy reads and writes; of size 0 where there is none.
    void spansOf(const CUDA_MEMCPY3D& copy, custom::HostSpan& read, custom::HostSpan& write) const;

    const DriverTable& driver_;
    const Mirrors& mirrors_;
    Gates& gates_;
    const CUcontext context_;
};

/// What stands for the client's functions in host nodes; never called, since what is launched has
/// none.
void graphFunction(void* function);

}  // namespace juice::worker

// Graphs, their nodes, executable graphs and user objects: handles for what the worker knows by
// numbers (native/link/custom.h).
#pragma once

#include <vector>

#include "native/link/custom.h"
#include "native/shim/objects.h"

namespace juice::shim {

struct Graph : Object {
    static constexpr ObjectKind kKind = ObjectKind::graph;
    uint64_t number = 0;
    uint64_t owner = 0;  // the node that it is part of, or 0
};

struct GraphNode : Object {
    static constexpr ObjectKind kKind = ObjectKind::graphNode;
    uint64_t number = 0;
    uint64_t graph = 0;  // the number of its graph
    /// What the last question about its parameters was answered with: valid as long as the node.
    std::vector<uint8_t> buffer;
    std::vector<void*> pointers;
    std::vector<CUstreamBatchMemOpParams> ops;
    std::vector<CUmemAccessDesc> access;
};

/// What an executable graph does with the program.
struct GraphFacts {
    std::vector<custom::HostSpan> reads, writes;
    std::vector<custom::GraphHost> functions;
};

struct GraphExec : Object {
    static constexpr ObjectKind kKind = ObjectKind::graphExec;
    uint64_t number = 0;
    uint64_t flags = 0;
    Context* context = nullptr;
    std::mutex mutex;  // guards what follows
    GraphFacts facts;
};

struct UserObject : Object {
    static constexpr ObjectKind kKind = ObjectKind::userObject;
    uint64_t number = 0;
};

namespace graphs {

/// The object of a number, a new one where it has none. Null for 0, or without room for handles.
Graph* graphOf(uint64_t number, uint64_t owner);
GraphNode* nodeOf(uint64_t number, uint64_t graph);
/// The handles of the graph, its nodes, and the graphs in them are stale from now on.
void forgetGraph(uint64_t number);
void forgetNode(uint64_t number);

/// Nodes of the program with the data of their edges (null: none), as they travel. False where one
/// is no node.
bool edgesFrom(const CUgraphNode* nodes, const CUgraphEdgeData* data, size_t count,
               std::vector<custom::NodeEdge>& out);
/// The way back; nodes are of the graph. False without room for handles.
bool handlesOf(const std::vector<custom::NodeEdge>& edges, uint64_t graph,
               std::vector<CUgraphNode>& nodes, std::vector<CUgraphEdgeData>& data);
bool hasData(const custom::NodeEdge& edge);

/// A node's parameters, with what they point at, written and read back.
CUresult putParams(const CUgraphNodeParams& params, Writer& out);
CUresult readParams(Reader& in, GraphNode& node, CUgraphNodeParams& out);

/// Reads a worker's GraphFacts.
bool readFacts(Reader& in, GraphFacts& out);

}  // namespace graphs
}  // namespace juice::shim

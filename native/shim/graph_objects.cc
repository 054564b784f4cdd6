#include "native/shim/graph_objects.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_map>

namespace juice::shim::graphs {
namespace {

struct Known {
    std::mutex mutex;
    std::unordered_map<uint64_t, Graph*> graphs;
    std::unordered_map<uint64_t, GraphNode*> nodes;
};
Known& known() {
    static auto& one = *new Known;
    return one;
}

/// Under the lock.
void dropNode(uint64_t number);
void dropGraph(uint64_t number) {
    const auto found = known().graphs.find(number);
    if (found == known().graphs.end()) return;
    Graph* const graph = found->second;
    known().graphs.erase(found);
    handles::drop(*graph);
    Recycler<Graph>::get().give(graph);
    std::vector<uint64_t> gone;
    for (const auto& [name, node] : known().nodes)
        if (node->graph == number) gone.push_back(name);
    for (const uint64_t name : gone) dropNode(name);
}
void dropNode(uint64_t number) {
    const auto found = known().nodes.find(number);
    if (found == known().nodes.end()) return;
    GraphNode* const node = found->second;
    known().nodes.erase(found);
    handles::drop(*node);
    node->buffer.clear();
    Recycler<GraphNode>::get().give(node);
    std::vector<uint64_t> inside;
    for (const auto& [name, graph] : known().graphs)
        if (graph->owner == number) inside.push_back(name);
    for (const uint64_t name : inside) dropGraph(name);
}

}  // namespace

Graph* graphOf(uint64_t number, uint64_t owner) {
    if (number == 0) return nullptr;
    const std::lock_guard lock(known().mutex);
    const auto [found, fresh] = known().graphs.try_emplace(number, nullptr);
    if (!fresh) return found->second;
    Graph* const graph = Recycler<Graph>::get().take();
    graph->kind = ObjectKind::graph;
    graph->number = number;
    graph->owner = owner;
    if (handles::mint(*graph) == nullptr) {
        known().graphs.erase(found);
        return nullptr;
    }
    return found->second = graph;
}

GraphNode* nodeOf(uint64_t number, uint64_t graph) {
    if (number == 0) return nullptr;
    const std::lock_guard lock(known().mutex);
    const auto [found, fresh] = known().nodes.try_emplace(number, nullptr);
    if (!fresh) return found->second;
    GraphNode* const node = Recycler<GraphNode>::get().take();
    node->kind = ObjectKind::graphNode;
    node->number = number;
    node->graph = graph;
    if (handles::mint(*node) == nullptr) {
        known().nodes.erase(found);
        return nullptr;
    }
    return found->second = node;
}

void forgetGraph(uint64_t number) {
    const std::lock_guard lock(known().mutex);
    dropGraph(number);
}

void forgetNode(uint64_t number) {
    const std::lock_guard lock(known().mutex);
    dropNode(number);
}

bool edgesFrom(const CUgraphNode* nodes, const CUgraphEdgeData* data, size_t count,
               std::vector<custom::NodeEdge>& out) {
    if ((nodes == nullptr && count != 0) || count > custom::kMaxListed) return false;
    for (size_t i = 0; i < count; ++i) {
        const GraphNode* const node = find<GraphNode>(nodes[i]);
        if (node == nullptr) return false;
        custom::NodeEdge edge{node->number, {}};
        if (data != nullptr) std::memcpy(edge.data, data + i, sizeof edge.data);
        out.push_back(edge);
    }
    return true;
}

bool handlesOf(const std::vector<custom::NodeEdge>& edges, uint64_t graph,
               std::vector<CUgraphNode>& nodes, std::vector<CUgraphEdgeData>& data) {
    nodes.clear();
    data.clear();
    for (const custom::NodeEdge& edge : edges) {
        const GraphNode* const node = nodeOf(edge.node, graph);
        if (node == nullptr) return false;
        nodes.push_back(static_cast<CUgraphNode>(handles::of(*node)));
        std::memcpy(&data.emplace_back(), edge.data, sizeof edge.data);
    }
    return true;
}

bool hasData(const custom::NodeEdge& edge) {
    return std::any_of(std::begin(edge.data), std::end(edge.data),
                       [](uint8_t b) { return b != 0; });
}

bool readFacts(Reader& in, GraphFacts& out) {
    const auto reads = in.get<uint32_t>(), writes = in.get<uint32_t>();
    const auto functions = in.get<uint32_t>();
    in.get<uint32_t>();
    out = {};
    for (uint32_t i = 0; i < reads && in.ok(); ++i)
        out.reads.push_back(custom::get<custom::HostSpan>(in));
    for (uint32_t i = 0; i < writes && in.ok(); ++i)
        out.writes.push_back(custom::get<custom::HostSpan>(in));
    for (uint32_t i = 0; i < functions && in.ok(); ++i)
        out.functions.push_back(custom::get<custom::GraphHost>(in));
    return in.ok();
}

}  // namespace juice::shim::graphs

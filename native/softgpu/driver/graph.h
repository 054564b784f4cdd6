// Graphs: operations as nodes, and edges for their order. Nothing here runs anything.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "native/abi/cuda_abi.h"
#include "native/softgpu/driver/operation.h"

namespace juice::softgpu {

class Condition;
class Graph;
class GraphExec;
class UserReference;
struct Node;

/// Held by every entry point about graphs and captures.
std::recursive_mutex& graphLock();

/// A dependency as one of its ends sees it: the node at the other end.
struct Edge {
    Node* node = nullptr;
    CUgraphEdgeData data{};
};

struct Node {
    Node(Graph& graph, OperationPtr operation, uint64_t origin);

    Graph& graph;
    const uint64_t id;      // never reused in this process
    const uint64_t origin;  // the id of the node that this is a copy of, or 0
    OperationPtr operation;
    std::vector<Edge> dependencies, dependents;
    /// The graphs in it: of a child graph node one, of a conditional node its bodies.
    std::vector<std::shared_ptr<Graph>> embedded;
    std::vector<CUgraph> embeddedHandles;
    /// Of the nodes of an executable graph: does it do anything?
    bool enabled = true;

    CUgraphNodeType type() const { return operation->type(); }
};

/// What stands in place of a child graph node's work; the graph is the node's.
class ChildGraphOperation : public EmptyOperation {
  public:
    CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_GRAPH; }
};

/// What a graph is part of decides what may be done with it.
enum class GraphRole : uint8_t {
    own,         // the program's: it may be destroyed
    embedded,    // a child graph node's
    body,        // a conditional node's
    executable,  // the inside of an executable graph: has no handles
};

class Graph : public std::enable_shared_from_this<Graph> {
  public:
    static std::shared_ptr<Graph> create(GraphRole role, Node* parent = nullptr);
    ~Graph();
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;

    /// A copy with everything in it; each node of it names its origin.
    std::shared_ptr<Graph> clone(GraphRole role, Node* parent = nullptr) const;
    /// Becomes part of a node.
    void moveInto(Node& parent);

    GraphRole role() const { return role_; }
    /// The graph that all this is part of.
    Graph& root();
    /// No handle of it or its nodes is valid afterwards.
    void retire();

    Node& add(OperationPtr operation, const std::vector<Edge>& dependencies);
    void remove(Node& node);
    /// False when there is one already.
    static bool connect(Node& from, Node& to, const CUgraphEdgeData& data);
    /// False when there is none with this data.
    static bool disconnect(Node& from, Node& to, const CUgraphEdgeData& data);

    /// In the order of their making.
    const std::vector<std::shared_ptr<Node>>& nodes() const { return nodes_; }
    bool contains(const Node& node) const { return &node.graph == this; }
    /// Each node after its dependencies. Nodes of cycles, and behind them, are missing.
    std::vector<Node*> ordered() const;
    /// Every node, those in embedded graphs as well.
    void visit(const std::function<void(Node&)>& visit) const;
    /// Is there a node of one of these types, at any depth?
    bool holds(std::initializer_list<CUgraphNodeType> types) const;
    bool holdsMemoryNodes() const {
        return holds({CU_GRAPH_NODE_TYPE_MEM_ALLOC, CU_GRAPH_NODE_TYPE_MEM_FREE});
    }

    /// Of a graph that is part of no other: the conditions that nodes in it, at any depth, may
    /// have.
    std::vector<std::shared_ptr<Condition>> conditions;
    /// What must exist as long as the graph and what is made of it.
    std::vector<std::shared_ptr<UserReference>> userObjects;
    /// Of a graph that may have but one: its executable graph.
    std::weak_ptr<GraphExec> onlyExec;
    /// A capture adds nodes to it.
    bool underCapture = false;

  private:
    Graph(GraphRole role, Node* parent) : role_(role), parent_(parent) {}
    bool hasHandles() const { return role_ != GraphRole::executable; }

    GraphRole role_;
    Node* parent_;
    std::vector<std::shared_ptr<Node>> nodes_;
};

inline CUgraph handleOf(Graph& graph) {
    return reinterpret_cast<CUgraph>(&graph);
}
inline CUgraphNode handleOf(Node& node) {
    return reinterpret_cast<CUgraphNode>(&node);
}

bool operator==(const CUgraphEdgeData& a, const CUgraphEdgeData& b);
inline bool isDefault(const CUgraphEdgeData& data) {
    return data == CUgraphEdgeData{};
}

}  // namespace juice::softgpu

#include "native/softgpu/driver/graph.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>

#include "native/softgpu/driver/registry.h"

namespace juice::softgpu {
namespace {

uint64_t nextNodeId() {
    static std::atomic<uint64_t> next{1};
    return next++;
}

auto edgeTo(std::vector<Edge>& edges, const Node& node) {
    return std::find_if(edges.begin(), edges.end(), [&](const Edge& e) { return e.node == &node; });
}

}  // namespace

std::recursive_mutex& graphLock() {
    static auto* const lock = new std::recursive_mutex;
    return *lock;
}

bool operator==(const CUgraphEdgeData& a, const CUgraphEdgeData& b) {
    return std::memcmp(&a, &b, sizeof(a)) == 0;
}

Node::Node(Graph& graph, OperationPtr operation, uint64_t origin)
    : graph(graph), id(nextNodeId()), origin(origin), operation(std::move(operation)) {}

std::shared_ptr<Graph> Graph::create(GraphRole role, Node* parent) {
    std::shared_ptr<Graph> graph(new Graph(role, parent));
    if (graph->hasHandles()) Registry<Graph>::instance().add(graph);
    return graph;
}

Graph::~Graph() = default;

std::shared_ptr<Graph> Graph::clone(GraphRole role, Node* parent) const {
    auto copy = create(role, parent);
    std::map<const Node*, Node*> copies;
    for (const auto& node : nodes_) {
        auto made = std::make_shared<Node>(*copy, node->operation, node->id);
        made->enabled = node->enabled;
        for (const auto& graph : node->embedded) {
            const GraphRole inside =
                role == GraphRole::executable ? GraphRole::executable : graph->role_;
            made->embedded.push_back(graph->clone(inside, made.get()));
            made->embeddedHandles.push_back(handleOf(*made->embedded.back()));
        }
        copies[node.get()] = made.get();
        if (copy->hasHandles()) Registry<Node>::instance().add(made);
        copy->nodes_.push_back(std::move(made));
    }
    const auto translate = [&](const std::vector<Edge>& edges) {
        std::vector<Edge> translated;
        translated.reserve(edges.size());
        for (const Edge& edge : edges) translated.push_back({copies.at(edge.node), edge.data});
        return translated;
    };
    for (const auto& [from, to] : copies) {
        to->dependencies = translate(from->dependencies);
        to->dependents = translate(from->dependents);
    }
    copy->conditions = conditions;
    copy->userObjects = userObjects;
    return copy;
}

void Graph::moveInto(Node& parent) {
    role_ = GraphRole::embedded;
    parent_ = &parent;
}

Graph& Graph::root() {
    return parent_ == nullptr ? *this : parent_->graph.root();
}

void Graph::retire() {
    for (const auto& node : nodes_) {
        for (const auto& graph : node->embedded) graph->retire();
        Registry<Node>::instance().take(node.get());
    }
    Registry<Graph>::instance().take(this);
}

Node& Graph::add(OperationPtr operation, const std::vector<Edge>& dependencies) {
    auto node = std::make_shared<Node>(*this, std::move(operation), 0);
    for (const Edge& edge : dependencies) connect(*edge.node, *node, edge.data);
    if (hasHandles()) Registry<Node>::instance().add(node);
    nodes_.push_back(std::move(node));
    return *nodes_.back();
}

void Graph::remove(Node& node) {
    for (const Edge& edge : node.dependencies) {
        auto& back = edge.node->dependents;
        back.erase(edgeTo(back, node));
    }
    for (const Edge& edge : node.dependents) {
        auto& back = edge.node->dependencies;
        back.erase(edgeTo(back, node));
    }
    for (const auto& graph : node.embedded) graph->retire();
    Registry<Node>::instance().take(&node);
    std::erase_if(nodes_, [&](const auto& held) { return held.get() == &node; });
}

bool Graph::connect(Node& from, Node& to, const CUgraphEdgeData& data) {
    if (edgeTo(from.dependents, to) != from.dependents.end()) return false;
    from.dependents.push_back({&to, data});
    to.dependencies.push_back({&from, data});
    return true;
}

bool Graph::disconnect(Node& from, Node& to, const CUgraphEdgeData& data) {
    const auto found = edgeTo(from.dependents, to);
    if (found == from.dependents.end() || !(found->data == data)) return false;
    from.dependents.erase(found);
    to.dependencies.erase(edgeTo(to.dependencies, from));
    return true;
}

std::vector<Node*> Graph::ordered() const {
    std::vector<Node*> order;
    std::map<const Node*, size_t> waiting;
    for (const auto& node : nodes_) {
        waiting[node.get()] = node->dependencies.size();
        if (node->dependencies.empty()) order.push_back(node.get());
    }
    for (size_t i = 0; i < order.size(); ++i) {
        for (const Edge& edge : order[i]->dependents) {
            if (--waiting[edge.node] == 0) order.push_back(edge.node);
        }
    }
    return order;
}

void Graph::visit(const std::function<void(Node&)>& visit) const {
    for (const auto& node : nodes_) {
        visit(*node);
        for (const auto& graph : node->embedded) graph->visit(visit);
    }
}

bool Graph::holds(std::initializer_list<CUgraphNodeType> types) const {
    bool found = false;
    visit([&](Node& node) {
        found = found || std::find(types.begin(), types.end(), node.type()) != types.end();
    });
    return found;
}

}  // namespace juice::softgpu

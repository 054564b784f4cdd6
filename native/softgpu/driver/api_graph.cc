// Graphs: making, copying, edges, what is in them.
#include "native/softgpu/driver/capture.h"
#include "native/softgpu/driver/conditional.h"
#include "native/softgpu/driver/graph_dot.h"
#include "native/softgpu/driver/guard_graph.h"

using namespace juice::softgpu;

namespace {

/// Graphs with such nodes are what they are: neither copied nor taken apart.
bool indivisible(const Graph& graph) {
    return graph.holdsMemoryNodes();
}

std::vector<CUgraphNode> handlesOf(const std::vector<Edge>& edges) {
    std::vector<CUgraphNode> handles;
    handles.reserve(edges.size());
    for (const Edge& edge : edges) handles.push_back(handleOf(*edge.node));
    return handles;
}

std::vector<CUgraphEdgeData> dataOf(const std::vector<Edge>& edges) {
    std::vector<CUgraphEdgeData> data;
    data.reserve(edges.size());
    for (const Edge& edge : edges) data.push_back(edge.data);
    return data;
}

bool lossy(const std::vector<CUgraphEdgeData>& data) {
    return !std::all_of(data.begin(), data.end(), isDefault);
}

/// For the dependencies and the dependents of a node, which are told alike.
CUresult neighbours(CUgraphNode handle, std::vector<Edge> Node::*side, CUgraphNode* nodes,
                    CUgraphEdgeData* data, size_t* count) {
    return withNode(handle, [&](Node& node) {
        if (count == nullptr || (data != nullptr && nodes == nullptr)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        const auto handles = handlesOf(node.*side);
        const auto edges = dataOf(node.*side);
        if (nodes != nullptr && data == nullptr && lossy(edges)) return CUDA_ERROR_LOSSY_QUERY;
        size_t room = *count;
        fillArray(handles, nodes, count);
        if (data != nullptr) fillArray(edges, data, &room);
        return CUDA_SUCCESS;
    });
}

CUresult edges(CUgraph handle, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
               size_t* count) {
    return withGraph(handle, [&](Graph& graph) {
        if (count == nullptr || (from == nullptr) != (to == nullptr) ||
            (data != nullptr && from == nullptr)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        std::vector<CUgraphNode> froms, tos;
        std::vector<CUgraphEdgeData> edges;
        for (const auto& node : graph.nodes()) {
            for (const Edge& edge : node->dependents) {
                froms.push_back(handleOf(*node));
                tos.push_back(handleOf(*edge.node));
                edges.push_back(edge.data);
            }
        }
        if (from != nullptr && data == nullptr && lossy(edges)) return CUDA_ERROR_LOSSY_QUERY;
        size_t roomTo = *count, roomData = *count;
        fillArray(froms, from, count);
        if (to != nullptr) fillArray(tos, to, &roomTo);
        if (data != nullptr) fillArray(edges, data, &roomData);
        return CUDA_SUCCESS;
    });
}

/// For adding and removing: `change(from, to, data)` for each pair; 1 when one is none.
template <typename Change>
CUresult changeEdges(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                     const CUgraphEdgeData* data, size_t count, const Change& change) {
    return withGraph(handle, [&](Graph& graph) {
        if (count > 0 && (from == nullptr || to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
        for (size_t i = 0; i < count; ++i) {
            const auto first = find<Node>(from[i]);
            const auto second = find<Node>(to[i]);
            if (!first || !second || first == second || !graph.contains(*first) ||
                !graph.contains(*second)) {
                return CUDA_ERROR_INVALID_VALUE;
            }
            const CUgraphEdgeData edge = data == nullptr ? CUgraphEdgeData{} : data[i];
            if (!validEdge(*first, edge)) return CUDA_ERROR_INVALID_VALUE;
            if (!change(graph, *first, *second, edge)) return CUDA_ERROR_INVALID_VALUE;
        }
        return CUDA_SUCCESS;
    });
}

}  // namespace

CUresult cuGraphCreate(CUgraph* out, unsigned int flags) {
    return withDriver([&] {
        if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
        *out = handleOf(*Graph::create(GraphRole::own));
        return CUDA_SUCCESS;
    });
}

CUresult cuGraphDestroy(CUgraph handle) {
    return withGraph(handle, [&](Graph& graph) {
        if (graph.role() != GraphRole::own || graph.underCapture) return CUDA_ERROR_INVALID_VALUE;
        graph.retire();
        return CUDA_SUCCESS;
    });
}

CUresult cuGraphClone(CUgraph* out, CUgraph original) {
    return withGraph(original, [&](Graph& graph) {
        if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
        if (indivisible(graph) || graph.holds({CU_GRAPH_NODE_TYPE_CONDITIONAL}) ||
            !graph.conditions.empty()) {
            return CUDA_ERROR_NOT_SUPPORTED;
        }
        *out = handleOf(*graph.clone(GraphRole::own));
        return CUDA_SUCCESS;
    });
}

CUresult cuGraphNodeFindInClone(CUgraphNode* out, CUgraphNode original, CUgraph clone) {
    return withGraph(clone, [&](Graph& graph) {
        const auto node = find<Node>(original);
        if (!node || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
        for (const auto& copy : graph.nodes()) {
            if (copy->origin != node->id) continue;
            *out = handleOf(*copy);
            return CUDA_SUCCESS;
        }
        return CUDA_ERROR_INVALID_VALUE;
    });
}

CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
    return withGraph(handle, [&](Graph& graph) {
        if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
        std::vector<CUgraphNode> all;
        for (const auto& node : graph.nodes()) all.push_back(handleOf(*node));
        fillArray(all, nodes, count);
        return CUDA_SUCCESS;
    });
}

CUresult cuGraphGetRootNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
    return withGraph(handle, [&](Graph& graph) {
        if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
        std::vector<CUgraphNode> roots;
        for (const auto& node : graph.nodes()) {
            if (node->dependencies.empty()) roots.push_back(handleOf(*node));
        }
        fillArray(roots, nodes, count);
        return CUDA_SUCCESS;
    });
}

CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count) {
    return edges(graph, from, to, nullptr, count);
}
CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to,
                            CUgraphEdgeData* data, size_t* count) {
    return edges(graph, from, to, data, count);
}

CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* nodes, size_t* count) {
    return neighbours(node, &Node::dependencies, nodes, nullptr, count);
}
CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* data,
                                       size_t* count) {
    return neighbours(node, &Node::dependencies, nodes, data, count);
}
CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* nodes, size_t* count) {
    return neighbours(node, &Node::dependents, nodes, nullptr, count);
}
CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode* nodes,
                                         CUgraphEdgeData* data, size_t* count) {
    return neighbours(node, &Node::dependents, nodes, data, count);
}

CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData* data, size_t count) {
    return changeEdges(graph, from, to, data, count,
                       [](Graph&, Node& first, Node& second, const CUgraphEdgeData& edge) {
                           return Graph::connect(first, second, edge);
                       });
}
CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                size_t count) {
    return cuGraphAddDependencies_v2(graph, from, to, nullptr, count);
}

CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                      const CUgraphEdgeData* data, size_t count) {
    return changeEdges(graph, from, to, data, count,
                       [](Graph& in, Node& first, Node& second, const CUgraphEdgeData& edge) {
                           return !indivisible(in) && Graph::disconnect(first, second, edge);
                       });
}
CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   size_t count) {
    return cuGraphRemoveDependencies_v2(graph, from, to, nullptr, count);
}

CUresult cuGraphDestroyNode(CUgraphNode handle) {
    return withNode(handle, [&](Node& node) {
        if (indivisible(node.graph)) return CUDA_ERROR_INVALID_VALUE;
        captureForgets(node);
        node.graph.remove(node);
        return CUDA_SUCCESS;
    });
}

CUresult cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType* type) {
    return withNode(handle, [&](Node& node) {
        if (type == nullptr) return CUDA_ERROR_INVALID_VALUE;
        *type = node.type();
        return CUDA_SUCCESS;
    });
}

CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle* out, CUgraph handle,
                                        CUcontext context, unsigned int initial,
                                        unsigned int flags) {
    return withGraph(handle, [&](Graph& graph) {
        if (out == nullptr || (flags & ~Condition::kAssignDefault) != 0) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        const auto of = contextFor(context);
        if (!of) return CUDA_ERROR_INVALID_CONTEXT;
        auto condition = Condition::create(*of, initial, flags);
        if (!condition) return CUDA_ERROR_OUT_OF_MEMORY;
        *out = condition->handle();
        graph.root().conditions.push_back(std::move(condition));
        return CUDA_SUCCESS;
    });
}

CUresult cuGraphDebugDotPrint(CUgraph handle, const char* path, unsigned int flags) {
    return withGraph(handle, [&](Graph& graph) {
        if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
        return writeDot(graph, path, flags) ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
    });
}

#include "native/softgpu/driver/node_add.h"

#include <algorithm>
#include <cstring>

#include "native/softgpu/driver/graph_memory.h"
#include "native/softgpu/driver/guard_graph.h"
#include "native/softgpu/driver/node_params.h"

namespace juice::softgpu {
namespace {

void embed(Node& node, std::shared_ptr<Graph> graph) {
    node.embeddedHandles.push_back(handleOf(*graph));
    node.embedded.push_back(std::move(graph));
}

/// Does the graph contain this one, at any depth, or is it that one?
bool within(const Graph& graph, const Graph& one) {
    if (&graph == &one) return true;
    bool found = false;
    graph.visit([&](Node& node) {
        for (const auto& inside : node.embedded) found = found || inside.get() == &one;
    });
    return found;
}

CUresult addChildNode(Graph& graph, const std::vector<Edge>& edges,
                      const CUDA_CHILD_GRAPH_NODE_PARAMS& p, Node*& made) {
    const auto child = find<Graph>(p.graph);
    if (!child || child->underCapture) return CUDA_ERROR_INVALID_VALUE;
    if (child->holds({CU_GRAPH_NODE_TYPE_CONDITIONAL}) || !child->conditions.empty()) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (p.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE) {
        if (child->holdsMemoryNodes()) return CUDA_ERROR_NOT_SUPPORTED;
        made = &graph.add(std::make_shared<ChildGraphOperation>(), edges);
        embed(*made, child->clone(GraphRole::embedded, made));
        return CUDA_SUCCESS;
    }
    if (p.ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE) return CUDA_ERROR_INVALID_VALUE;
    if (child->role() != GraphRole::own || within(*child, graph.root())) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    made = &graph.add(std::make_shared<ChildGraphOperation>(), edges);
    child->moveInto(*made);
    embed(*made, child);
    return CUDA_SUCCESS;
}

CUresult addConditional(Graph& graph, const std::vector<Edge>& edges,
                        CUDA_CONDITIONAL_NODE_PARAMS& p, Node*& made) {
    const bool sized = (p.type == CU_GRAPH_COND_TYPE_IF && (p.size == 1 || p.size == 2)) ||
                       (p.type == CU_GRAPH_COND_TYPE_WHILE && p.size == 1) ||
                       (p.type == CU_GRAPH_COND_TYPE_SWITCH && p.size >= 1);
    if (!sized) return CUDA_ERROR_INVALID_VALUE;
    const auto& conditions = graph.root().conditions;
    const auto found = std::find_if(conditions.begin(), conditions.end(),
                                    [&](const auto& c) { return c->handle() == p.handle; });
    if (found == conditions.end()) return CUDA_ERROR_INVALID_VALUE;
    const auto context = contextFor(p.ctx);
    if (!context || context.get() != &(*found)->context()) return CUDA_ERROR_INVALID_CONTEXT;
    bool used = false;
    graph.root().visit([&](Node& node) {
        if (node.type() != CU_GRAPH_NODE_TYPE_CONDITIONAL) return;
        const auto& other = static_cast<const ConditionalOperation&>(*node.operation);
        used = used || &other.condition() == found->get();
    });
    if (used) return CUDA_ERROR_INVALID_VALUE;
    made = &graph.add(std::make_shared<ConditionalOperation>(*found, p.type, p.size), edges);
    for (unsigned i = 0; i < p.size; ++i) embed(*made, Graph::create(GraphRole::body, made));
    p.phGraph_out = made->embeddedHandles.data();
    return CUDA_SUCCESS;
}

/// Memory nodes stand in a graph of the program's own, or in one that was moved into such a one.
bool takesMemoryNodes(const Graph& graph) {
    return graph.role() == GraphRole::own;
}

CUresult addAlloc(Graph& graph, const std::vector<Edge>& edges, CUDA_MEM_ALLOC_NODE_PARAMS_v2& p,
                  Node*& made) {
    static_assert(sizeof(CUDA_MEM_ALLOC_NODE_PARAMS) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS_v2));
    if (!takesMemoryNodes(graph)) return CUDA_ERROR_NOT_SUPPORTED;
    CUDA_MEM_ALLOC_NODE_PARAMS parameters;
    std::memcpy(&parameters, &p, sizeof(parameters));
    std::shared_ptr<AllocOperation> operation;
    if (const CUresult failed = AllocOperation::make(parameters, operation)) return failed;
    p.dptr = parameters.dptr;
    made = &graph.add(std::move(operation), edges);
    return CUDA_SUCCESS;
}

CUresult addFree(Graph& graph, const std::vector<Edge>& edges, CUdeviceptr address, Node*& made) {
    if (!takesMemoryNodes(graph)) return CUDA_ERROR_NOT_SUPPORTED;
    std::shared_ptr<FreeOperation> operation;
    if (const CUresult failed = FreeOperation::make(graph, address, operation)) return failed;
    made = &graph.add(std::move(operation), edges);
    return CUDA_SUCCESS;
}

}  // namespace

CUresult addNode(Graph& graph, const std::vector<Edge>& edges, CUgraphNodeParams& p, Node*& made) {
    switch (p.type) {
        case CU_GRAPH_NODE_TYPE_GRAPH:
            return addChildNode(graph, edges, p.graph, made);
        case CU_GRAPH_NODE_TYPE_CONDITIONAL:
            return addConditional(graph, edges, p.conditional, made);
        case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
            return addAlloc(graph, edges, p.alloc, made);
        case CU_GRAPH_NODE_TYPE_MEM_FREE:
            return addFree(graph, edges, p.free.dptr, made);
        default:
            break;
    }
    OperationPtr operation;
    if (const CUresult failed = operationFrom(p, nullptr, operation)) return failed;
    made = &graph.add(std::move(operation), edges);
    return CUDA_SUCCESS;
}

}  // namespace juice::softgpu

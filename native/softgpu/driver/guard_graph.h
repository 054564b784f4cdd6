// What the entry points about graphs do first: take the lock, and find what a handle stands for.
#pragma once

#include <algorithm>
#include <mutex>
#include <vector>

#include "native/softgpu/driver/graph.h"
#include "native/softgpu/driver/graph_exec.h"
#include "native/softgpu/driver/guard.h"

namespace juice::softgpu {

/// `body(graph)`; 1 for an invalid handle.
template <typename Body>
CUresult withGraph(CUgraph handle, const Body& body) {
    return withDriver([&]() -> CUresult {
        const std::lock_guard lock(graphLock());
        const auto graph = find<Graph>(handle);
        return graph ? body(*graph) : CUDA_ERROR_INVALID_VALUE;
    });
}

/// `body(node)`; 1 for an invalid handle.
template <typename Body>
CUresult withNode(CUgraphNode handle, const Body& body) {
    return withDriver([&]() -> CUresult {
        const std::lock_guard lock(graphLock());
        const auto node = find<Node>(handle);
        return node ? body(*node) : CUDA_ERROR_INVALID_VALUE;
    });
}

/// The same for a node of one type: `body(node, operation)`.
template <typename Operation, typename Body>
CUresult withNodeOf(CUgraphNode handle, CUgraphNodeType type, const Body& body) {
    return withNode(handle, [&](Node& node) -> CUresult {
        if (node.type() != type) return CUDA_ERROR_INVALID_VALUE;
        return body(node, static_cast<const Operation&>(*node.operation));
    });
}

/// `body(exec)`; 1 for an invalid handle.
template <typename Body>
CUresult withExec(CUgraphExec handle, const Body& body) {
    return withDriver([&]() -> CUresult {
        const std::lock_guard lock(graphLock());
        const auto exec = find<GraphExec>(handle);
        return exec ? body(*exec) : CUDA_ERROR_INVALID_VALUE;
    });
}

/// `body(node)` with the executable graph's own node that came of this one; 1 when there is none.
template <typename Body>
CUresult withExecNode(CUgraphExec handle, CUgraphNode original, const Body& body) {
    return withExec(handle, [&](GraphExec& exec) -> CUresult {
        const auto node = find<Node>(original);
        Node* const own = node ? exec.find(*node) : nullptr;
        return own == nullptr ? CUDA_ERROR_INVALID_VALUE : body(exec, *own);
    });
}

/// The context behind a handle, null standing for the current one; null when there is none.
std::shared_ptr<Context> contextFor(CUcontext handle);

/// Dependencies as the API gives them; `data` may be null. 1 for what is no node of the graph,
/// comes twice, or has impossible data.
CUresult edgesFrom(const Graph& graph, const CUgraphNode* nodes, const CUgraphEdgeData* data,
                   size_t count, std::vector<Edge>& edges);
/// May an edge from the node have this data?
bool validEdge(const Node& from, const CUgraphEdgeData& data);

/// Fills an array whose capacity is `*count` and says how many there are; the rest becomes null.
/// Without an array only the number is told.
template <typename T>
void fillArray(const std::vector<T>& from, T* array, size_t* count) {
    if (array == nullptr) {
        *count = from.size();
        return;
    }
    const size_t told = std::min(*count, from.size());
    std::copy_n(from.begin(), told, array);
    std::fill(array + told, array + *count, T{});
    *count = told;
}

}  // namespace juice::softgpu

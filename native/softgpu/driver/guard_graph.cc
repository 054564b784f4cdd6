#include "native/softgpu/driver/guard_graph.h"

namespace juice::softgpu {

std::shared_ptr<Context> contextFor(CUcontext handle) {
    auto context = handle == nullptr ? ContextStack::ofThread().current() : find<Context>(handle);
    return context && context->active() ? context : nullptr;
}

bool validEdge(const Node& from, const CUgraphEdgeData& data) {
    constexpr unsigned char kLastPort = 2;  // CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER
    const bool reserved =
        std::any_of(std::begin(data.reserved), std::end(data.reserved), [](auto b) { return b; });
    if (data.to_port != 0 || reserved || data.from_port > kLastPort) return false;
    if (data.type == CU_GRAPH_DEPENDENCY_TYPE_DEFAULT) return data.from_port == 0;
    return data.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC && data.from_port != 0 &&
           from.type() == CU_GRAPH_NODE_TYPE_KERNEL;
}

CUresult edgesFrom(const Graph& graph, const CUgraphNode* nodes, const CUgraphEdgeData* data,
                   size_t count, std::vector<Edge>& edges) {
    if (count > 0 && nodes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; ++i) {
        const auto node = find<Node>(nodes[i]);
        if (!node || !graph.contains(*node)) return CUDA_ERROR_INVALID_VALUE;
        const auto same = [&](const Edge& edge) { return edge.node == node.get(); };
        if (std::any_of(edges.begin(), edges.end(), same)) return CUDA_ERROR_INVALID_VALUE;
        const Edge edge{node.get(), data == nullptr ? CUgraphEdgeData{} : data[i]};
        if (!validEdge(*node, edge.data)) return CUDA_ERROR_INVALID_VALUE;
        edges.push_back(edge);
    }
    return CUDA_SUCCESS;
}

}  // namespace juice::softgpu

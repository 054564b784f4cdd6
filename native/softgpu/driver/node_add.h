// Nodes that are more than an operation: graphs in graphs, conditions, memory.
#pragma once

#include "native/softgpu/driver/graph.h"

namespace juice::softgpu {

/// Adds a node of any type. Fills in what the parameters return: addresses, bodies.
CUresult addNode(Graph& graph, const std::vector<Edge>& edges, CUgraphNodeParams& parameters,
                 Node*& made);

}  // namespace juice::softgpu

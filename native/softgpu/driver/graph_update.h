// What may change in an executable graph.
#pragma once

#include "native/softgpu/driver/graph.h"

namespace juice::softgpu {

/// May a node of an executable graph do this in place of what it did?
CUgraphExecUpdateResult replaceable(const Operation& before, const Operation& after,
                                    unsigned long long flags);

/// Gives the nodes of an executable graph the operations of a graph of the same shape, all or none.
CUresult updateGraph(Graph& executable, const Graph& graph, unsigned long long flags,
                     CUgraphExecUpdateResultInfo& info);

}  // namespace juice::softgpu

// Executable graphs: a copy of a graph as it was, that can be launched and, within limits, changed.
#pragma once

#include <memory>

#include "native/softgpu/driver/graph.h"
#include "native/softgpu/driver/plan.h"
#include "native/softgpu/driver/stream.h"

namespace juice::softgpu {

/// Why there is no executable graph.
struct InstantiateFailure {
    CUgraphInstantiateResult result = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    Node* node = nullptr;
};

class GraphExec {
  public:
    static CUresult instantiate(Graph& graph, unsigned long long flags,
                                std::shared_ptr<GraphExec>& made, InstantiateFailure& failure);

    /// Behind the stream's earlier work and every earlier launch. 1 when memory that it would
    /// allocate is still in use.
    CUresult launch(Stream& stream);
    /// Nothing needs to be moved here, but the order is kept.
    void upload(Stream& stream);

    unsigned long long flags() const { return flags_; }
    /// As it would run now.
    Graph& graph() const { return *graph_; }
    /// The node that came of this one; null when the executable graph was not made with it.
    Node* find(const Node& original) const;
    /// Takes the operations of a graph of the same shape, all or none. 910 with the reason when it
    /// cannot.
    CUresult update(const Graph& graph, CUgraphExecUpdateResultInfo& info);

  private:
    GraphExec(std::shared_ptr<Graph> graph, unsigned long long flags)
        : graph_(std::move(graph)), flags_(flags) {}

    std::shared_ptr<Graph> graph_;
    const unsigned long long flags_;
    Fence last_;  // the end of the last launch
};

}  // namespace juice::softgpu

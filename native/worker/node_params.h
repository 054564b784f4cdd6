// Nodes and their parameters on the wire (native/link/custom.h).
#pragma once

#include <memory>
#include <vector>

#include "native/worker/worker.h"

namespace juice::worker {

/// What goes by a number; marks the call bad where it is of another kind, or none.
template <typename Handle>
Handle graphNamed(Incoming& in, GraphKind kind, uint64_t number) {
    void* const found = in.worker().graphs.find(kind, number);
    if (found == nullptr) in.fail(CUDA_ERROR_INVALID_VALUE);
    return static_cast<Handle>(found);
}
template <typename Handle>
Handle graphNamed(Incoming& in, GraphKind kind) {
    return graphNamed<Handle>(in, kind, in.get<uint64_t>());
}

/// Ends of edges, with their data.
struct Edges {
    std::vector<CUgraphNode> nodes;
    std::vector<CUgraphEdgeData> data;
};
Edges readEdges(Incoming& in, uint64_t count);
/// A node of the graph, and the data of its edge (null: none).
void putEdge(Incoming& in, uint64_t graph, CUgraphNode node, const CUgraphEdgeData* data);

/// Parameters, with everything that they point at.
struct NodeParams {
    CUgraphNodeParams params{};
    std::vector<uint8_t> buffer;
    size_t size = 0;
    void* extra[5]{};
    std::vector<CUstreamBatchMemOpParams> ops;
    std::vector<CUmemAccessDesc> access;
};
/// Reads them; what they name is the client's own, or the call is marked bad.
std::unique_ptr<NodeParams> readNodeParams(Incoming& in);
/// Asks the driver for a node's and writes them.
CUresult putNodeParams(Incoming& in, CUgraphNode node);

}  // namespace juice::worker

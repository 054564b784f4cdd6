// Memory that graphs allocate and free. An allocation has its address, and its memory, from the
// making of its node on; whether it is in use follows from the launches and frees submitted.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "native/abi/cuda_abi.h"
#include "native/softgpu/driver/graph.h"
#include "native/softgpu/driver/operation.h"
#include "native/softgpu/driver/own_memory.h"

namespace juice::softgpu {

class Device;

class GraphAllocation {
  public:
    /// Null when it does not fit.
    static std::shared_ptr<GraphAllocation> create(Context& context, size_t size);
    /// What is in use stays, as the program's own to free.
    ~GraphAllocation();
    GraphAllocation(const GraphAllocation&) = delete;
    GraphAllocation& operator=(const GraphAllocation&) = delete;

    /// The one that starts at the address, or null.
    static std::shared_ptr<GraphAllocation> find(uint64_t address);

    Context& context() const { return context_; }
    uint64_t address() const { return memory_.address(); }
    bool live() const { return live_; }
    void setLive(bool live);
    /// Outside of graphs. 1 when it is not in use.
    CUresult free();

    /// Who has nodes that free it: only its own graph may, or only others.
    bool freedInside = false, freedOutside = false;

  private:
    GraphAllocation(Context& context, size_t size);

    Context& context_;
    OwnMemory memory_;
    const size_t size_;
    std::atomic<bool> live_{false};
};

class AllocOperation : public Operation {
  public:
    /// Fills in `parameters.dptr`.
    static CUresult make(CUDA_MEM_ALLOC_NODE_PARAMS& parameters,
                         std::shared_ptr<AllocOperation>& made);

    CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_MEM_ALLOC; }
    Work bind() const override;
    GraphAllocation& allocation() const { return *allocation_; }
    /// The arrays in it are the operation's.
    const CUDA_MEM_ALLOC_NODE_PARAMS& parameters() const { return parameters_; }

  private:
    std::shared_ptr<GraphAllocation> allocation_;
    CUDA_MEM_ALLOC_NODE_PARAMS parameters_{};
    std::vector<CUmemAccessDesc> accesses_;
};

class FreeOperation : public Operation {
  public:
    /// For a node of this graph. 1 for what no graph allocated, or what may not be freed here.
    static CUresult make(Graph& graph, CUdeviceptr address, std::shared_ptr<FreeOperation>& made);

    CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_MEM_FREE; }
    Work bind() const override;
    GraphAllocation& allocation() const { return *allocation_; }

  private:
    std::shared_ptr<GraphAllocation> allocation_;
};

/// Can a graph with such nodes be launched now? Not when it would allocate what is still in use,
/// unless that is freed automatically, or free what is not.
bool mayLaunch(const Graph& graph, bool freesItself);

/// The device's counters. 1 for an unknown attribute, or one that cannot be set.
CUresult graphMemoryAttribute(const Device& device, CUgraphMem_attribute attribute,
                              uint64_t& value);
CUresult resetGraphMemoryAttribute(const Device& device, CUgraphMem_attribute attribute);

}  // namespace juice::softgpu

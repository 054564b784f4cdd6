// Conditional nodes: a value that kernels set decides which of the node's graphs run, and how
// often.
#pragma once

#include <memory>

#include "native/abi/cuda_abi.h"
#include "native/softgpu/driver/graph.h"
#include "native/softgpu/driver/operation.h"
#include "native/softgpu/driver/own_memory.h"
#include "native/softgpu/driver/plan.h"

namespace juice::softgpu {

/// The value. Its handle is the address of the word that cudaGraphSetConditional writes in a
/// kernel.
class Condition {
  public:
    /// CU_GRAPH_COND_ASSIGN_DEFAULT, a macro in CUDA's own header.
    static constexpr unsigned kAssignDefault = 1;

    /// Null when there is no memory for it.
    static std::shared_ptr<Condition> create(Context& context, unsigned initial, unsigned flags);

    CUgraphConditionalHandle handle() const { return memory_.address(); }
    Context& context() const { return context_; }
    unsigned value() const;
    /// At the start of each launch of its graph.
    void reset() const;

  private:
    Condition(Context& context, unsigned initial, unsigned flags);

    Context& context_;
    // Host memory, so that it is not charged to the device.
    OwnMemory memory_;
    const unsigned initial_;
    const unsigned flags_;
};

class ConditionalOperation : public Operation {
  public:
    ConditionalOperation(std::shared_ptr<Condition> condition, CUgraphConditionalNodeType kind,
                         unsigned size)
        : condition_(std::move(condition)), kind_(kind), size_(size) {}

    CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_CONDITIONAL; }
    Context* context() const override { return &condition_->context(); }
    Condition& condition() const { return *condition_; }
    CUgraphConditionalNodeType kind() const { return kind_; }
    unsigned size() const { return size_; }
    /// The work of the node, given its bodies.
    Work over(std::vector<std::shared_ptr<const Plan>> bodies) const;

  private:
    std::shared_ptr<Condition> condition_;
    CUgraphConditionalNodeType kind_;
    unsigned size_;
};

}  // namespace juice::softgpu

// Operations on words in memory: wait for a value, write one.
#pragma once

#include <memory>
#include <vector>

#include "native/softgpu/driver/operation.h"

namespace juice::softgpu {

class MemopOperation : public Operation {
  public:
    /// In the order given. 1 for memory that the driver does not know, an unknown condition or too
    /// many.
    static CUresult make(Context& context, unsigned count,
                         const CUstreamBatchMemOpParams* parameters, unsigned flags,
                         std::shared_ptr<MemopOperation>& made);

    CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_BATCH_MEM_OP; }
    Context* context() const override { return &context_; }
    bool mayBlock() const override { return true; }
    const std::vector<CUstreamBatchMemOpParams>& parameters() const { return parameters_; }
    unsigned flags() const { return flags_; }

  protected:
    void run() const override;

  private:
    MemopOperation(Context& context, std::vector<CUstreamBatchMemOpParams> parameters,
                   unsigned flags)
        : context_(context), parameters_(std::move(parameters)), flags_(flags) {}

    Context& context_;
    std::vector<CUstreamBatchMemOpParams> parameters_;
    unsigned flags_;
};

}  // namespace juice::softgpu

// Launches: what a real driver checks at the call is checked here, at the call; the rest happens in
// the stream.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "native/abi/cuda_abi.h"
#include "native/softgpu/driver/module.h"
#include "native/softgpu/driver/operation.h"

namespace juice::softgpu {

struct LaunchShape {
    Dim3 grid, block;
    unsigned dynamicShared = 0;  // bytes
    bool cooperative = false;
    Dim3 cluster;  // blocks; more than one is refused, as a real device refuses or as not supported
};

using LaunchAttributes = std::map<CUlaunchAttributeID, CUlaunchAttributeValue>;

/// A kernel with its grid and parameters.
class KernelOperation : public Operation {
  public:
    /// 1 for geometry, shared memory or parameters that cannot be, 701 for more parameter bytes
    /// than the kernel takes, 720 for a cooperative grid that does not fit at once. The context is
    /// the function's. `attributes` are kept for those who ask; what matters of them is in the
    /// shape.
    static CUresult make(std::shared_ptr<Function> function, const LaunchShape& shape,
                         LaunchAttributes attributes, void* const* parameters, void* const* extra,
                         std::shared_ptr<KernelOperation>& made);
    /// The same launch with one attribute more, or changed.
    CUresult with(CUlaunchAttributeID id, const CUlaunchAttributeValue& value,
                  std::shared_ptr<KernelOperation>& made) const;
    /// The same launch with exactly these attributes.
    CUresult with(LaunchAttributes attributes, std::shared_ptr<KernelOperation>& made) const;

    CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_KERNEL; }
    Context* context() const override { return &context_; }
    CUfunction function() const { return reinterpret_cast<CUfunction>(function_.get()); }
    /// The library's kernel that the function is of; null for a plain module's.
    CUkernel libraryKernel() const { return libraryKernel_; }
    const std::string& name() const { return function_->kernel.name; }
    const LaunchShape& shape() const { return shape_; }
    const LaunchAttributes& attributes() const { return attributes_; }
    /// One of them, or what a launch without it has. 1 for one that nodes do not have.
    CUresult attribute(CUlaunchAttributeID id, CUlaunchAttributeValue& value) const;
    /// As the program gave them, an array of pointers or a list: one of the two, or neither.
    void** parameters() const { return const_cast<void**>(pointers_.data()); }
    void** extra() const { return const_cast<void**>(extra_.data()); }

  protected:
    void run() const override;

  private:
    KernelOperation(std::shared_ptr<Function> function, const LaunchShape& shape,
                    LaunchAttributes attributes);

    std::shared_ptr<Function> function_;
    Context& context_;  // the function's; its module may be gone when this runs
    CUkernel libraryKernel_ = nullptr;
    LaunchShape shape_;
    LaunchAttributes attributes_;
    std::vector<uint8_t> packed_;
    std::vector<void*> pointers_;  // into packed_
    size_t packedSize_ = 0;        // of a list of its own
    std::vector<void*> extra_;
};

/// Takes attributes of a launch into its shape. Hints that change no result are accepted; what
/// would change one and is lacking here is refused by name.
CUresult applyAttributes(const LaunchAttributes& attributes, LaunchShape& shape);

/// How many blocks of this size one multiprocessor holds; 0 when not even one fits, or when the
/// function may not use so much dynamic shared memory.
int activeBlocks(const Function& function, unsigned threads, size_t dynamicShared);

}  // namespace juice::softgpu

// Copies and fills of any shape.
#pragma once

#include <cstddef>
#include <cstdint>

#include "native/abi/cuda_abi.h"
#include "native/softgpu/driver/operation.h"
#include "native/softgpu/driver/stream.h"

namespace juice::softgpu {

/// One side of a copy: rows of bytes, `pitch` apart, in slices `slice` bytes apart.
struct Side {
    uint64_t address = 0;
    size_t pitch = 0;
    size_t slice = 0;
    /// The entry point said that this is device memory; otherwise it may also be the program's own.
    bool device = false;
};

/// `width` bytes of each row, `height` rows, `depth` slices.
struct Extent {
    size_t width = 0, height = 1, depth = 1;

    bool empty() const { return width == 0 || height == 0 || depth == 0; }
};

/// A copy. Every entry point for copies, and every node, describes its own in this one way.
class CopyOperation : public Operation {
  public:
    /// Device memory must be known to the driver, else 1.
    static CUresult make(Context& context, const CUDA_MEMCPY3D& described,
                         std::shared_ptr<CopyOperation>& made);

    CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_MEMCPY; }
    Context* context() const override { return &context_; }
    const CUDA_MEMCPY3D& described() const { return described_; }
    const Side& to() const { return to_; }
    const Side& from() const { return from_; }
    const Extent& extent() const { return extent_; }
    /// Is it the program's own memory, which the driver does not know?
    bool toPageable() const { return toPageable_; }
    bool fromPageable() const { return fromPageable_; }

    void run() const override;

  private:
    CopyOperation(Context& context, const CUDA_MEMCPY3D& described)
        : context_(context), described_(described) {}

    Context& context_;
    CUDA_MEMCPY3D described_;
    Side to_, from_;
    Extent extent_;
    bool toPageable_ = false, fromPageable_ = false;
};

/// Waits for the end or not.
enum class Wait : uint8_t { no, yes };

/// A copy in the stream's order. An asynchronous copy from the program's pageable memory takes the
/// source at the call, one into pageable memory ends before the call returns; both as a real driver
/// may do. While the stream is captured it becomes a node, which reads its source when it runs; a
/// copy that waits is refused then.
CUresult copy(Stream& stream, const CUDA_MEMCPY3D& described, Wait wait);

/// A fill with a value of 1, 2 or 4 bytes; the width counts elements.
class FillOperation : public Operation {
  public:
    /// 1 when the memory is not the driver's, or not aligned to the element.
    static CUresult make(Context& context, const CUDA_MEMSET_NODE_PARAMS& described,
                         std::shared_ptr<FillOperation>& made);

    CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_MEMSET; }
    Context* context() const override { return &context_; }
    const CUDA_MEMSET_NODE_PARAMS& described() const { return described_; }

  protected:
    void run() const override;

  private:
    FillOperation(Context& context, const CUDA_MEMSET_NODE_PARAMS& described)
        : context_(context), described_(described) {}

    Context& context_;
    CUDA_MEMSET_NODE_PARAMS described_;
};

/// A fill in the stream's order. One of nothing is done at once.
CUresult fill(Stream& stream, const CUDA_MEMSET_NODE_PARAMS& described);

}  // namespace juice::softgpu

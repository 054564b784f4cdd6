// Batches of copies: each is one of the plain asynchronous copies, after the rules of the batch
// have been checked.
#include <cstring>
#include <vector>

#include "native/gen/symbols.h"
#include "native/softgpu/driver/guard.h"
#include "native/softgpu/driver/memory.h"

using namespace juice::softgpu;

namespace {

constexpr DefaultStream kLegacy = DefaultStream::legacy;
constexpr DefaultStream kPerThread = DefaultStream::perThread;
/// No single copy is to blame.
constexpr size_t kNone = SIZE_MAX;

bool valid(CUmemcpySrcAccessOrder order) {
    return order == CU_MEMCPY_SRC_ACCESS_ORDER_STREAM ||
           order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL ||
           order == CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

bool isLegacy(CUstream stream, DefaultStream meaning) {
    return stream == CU_STREAM_LEGACY || (stream == nullptr && meaning == DefaultStream::legacy);
}

/// Must the source be read before the call returns, although a copy reads it in stream order?
bool readsPinnedNow(CUmemcpySrcAccessOrder order, CUdeviceptr source) {
    if (order != CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL) return false;
    const auto memory = AddressSpace::instance().find(source);
    return memory && isHostKind(memory->kind);
}

CUresult copyOne(CUdeviceptr to, CUdeviceptr from, size_t size, CUmemcpySrcAccessOrder order,
                 CUstream stream, DefaultStream meaning) {
    const auto copy = meaning == kLegacy ? cuMemcpyAsync : cuMemcpyAsync_ptsz;
    if (!readsPinnedNow(order, from)) return copy(to, from, size, stream);
    // Pageable memory is taken at the call.
    std::vector<uint8_t> taken(size);
    std::memcpy(taken.data(), reinterpret_cast<const void*>(from), size);
    return copy(to, reinterpret_cast<CUdeviceptr>(taken.data()), size, stream);
}

struct Batch {
    const CUdeviceptr* to;
    const CUdeviceptr* from;
    const size_t* sizes;
    size_t count;
    const CUmemcpyAttributes* attributes;
    const size_t* indices;  // of the first copy that each of the attributes is for
    size_t attributeCount;
};

bool valid(const Batch& batch) {
    const bool given = batch.to != nullptr && batch.from != nullptr && batch.sizes != nullptr &&
                       batch.count != 0 && batch.attributes != nullptr &&
                       batch.indices != nullptr && batch.attributeCount != 0 &&
                       batch.attributeCount <= batch.count && batch.indices[0] == 0;
    if (!given) return false;
    for (size_t i = 0; i < batch.attributeCount; ++i) {
        if (!valid(batch.attributes[i].srcAccessOrder)) return false;
        if (i > 0 && batch.indices[i] <= batch.indices[i - 1]) return false;
        if (batch.indices[i] >= batch.count) return false;
    }
    return true;
}

CUresult copyBatch(const Batch& batch, size_t* failed, CUstream stream, DefaultStream meaning) {
    if (failed != nullptr) *failed = kNone;
    return withDriver([&]() -> CUresult {
        if (isLegacy(stream, meaning) || !valid(batch)) return CUDA_ERROR_INVALID_VALUE;
        size_t which = 0;
        for (size_t i = 0; i < batch.count; ++i) {
            if (which + 1 < batch.attributeCount && batch.indices[which + 1] == i) ++which;
            const CUmemcpySrcAccessOrder order = batch.attributes[which].srcAccessOrder;
            const CUresult result =
                batch.sizes[i] == 0
                    ? CUDA_ERROR_INVALID_VALUE
                    : copyOne(batch.to[i], batch.from[i], batch.sizes[i], order, stream, meaning);
            if (result == CUDA_SUCCESS) continue;
            if (failed != nullptr) *failed = i;
            return result;
        }
        return CUDA_SUCCESS;
    });
}

/// One side of a box; 801 for an array.
CUresult describe(const CUmemcpy3DOperand& operand, const CUextent3D& extent, CUdeviceptr& address,
                  size_t& pitch, size_t& height) {
    if (operand.type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
        return juice_unsupported("a batched copy with an array");
    }
    if (operand.type != CU_MEMCPY_OPERAND_TYPE_POINTER) return CUDA_ERROR_INVALID_VALUE;
    address = operand.op.ptr.ptr;
    pitch = operand.op.ptr.rowLength == 0 ? extent.width : operand.op.ptr.rowLength;
    height = operand.op.ptr.layerHeight == 0 ? extent.height : operand.op.ptr.layerHeight;
    return CUDA_SUCCESS;
}

CUresult copyBox(const CUDA_MEMCPY3D_BATCH_OP& box, CUstream stream, DefaultStream meaning) {
    if (box.extent.width == 0 || box.extent.height == 0 || box.extent.depth == 0 ||
        !valid(box.srcAccessOrder)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    copy.WidthInBytes = box.extent.width;
    copy.Height = box.extent.height;
    copy.Depth = box.extent.depth;
    CUresult failed = describe(box.src, box.extent, copy.srcDevice, copy.srcPitch, copy.srcHeight);
    if (failed != CUDA_SUCCESS) return failed;
    failed = describe(box.dst, box.extent, copy.dstDevice, copy.dstPitch, copy.dstHeight);
    if (failed != CUDA_SUCCESS) return failed;
    const auto start = meaning == kLegacy ? cuMemcpy3DAsync_v2 : cuMemcpy3DAsync_v2_ptsz;
    if (!readsPinnedNow(box.srcAccessOrder, copy.srcDevice)) return start(&copy, stream);
    const size_t bytes = ((copy.Depth - 1) * copy.srcHeight + copy.Height) * copy.srcPitch;
    const auto memory = AddressSpace::instance().find(copy.srcDevice);
    if (!memory || copy.srcDevice == 0 ||
        bytes - copy.srcPitch + copy.WidthInBytes > memory->end() - copy.srcDevice) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    std::vector<uint8_t> taken(bytes);
    std::memcpy(taken.data(), reinterpret_cast<const void*>(copy.srcDevice),
                bytes - copy.srcPitch + copy.WidthInBytes);
    copy.srcDevice = reinterpret_cast<CUdeviceptr>(taken.data());
    return start(&copy, stream);
}

CUresult copyBoxes(const CUDA_MEMCPY3D_BATCH_OP* boxes, size_t count, unsigned long long flags,
                   size_t* failed, CUstream stream, DefaultStream meaning) {
    if (failed != nullptr) *failed = kNone;
    return withDriver([&]() -> CUresult {
        if (boxes == nullptr || count == 0 || flags != 0 || isLegacy(stream, meaning)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        for (size_t i = 0; i < count; ++i) {
            const CUresult result = copyBox(boxes[i], stream, meaning);
            if (result == CUDA_SUCCESS) continue;
            if (failed != nullptr) *failed = i;
            return result;
        }
        return CUDA_SUCCESS;
    });
}

}  // namespace

CUresult cuMemcpyBatchAsync(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count,
                            CUmemcpyAttributes* attributes, size_t* indices, size_t attributeCount,
                            size_t* failed, CUstream stream) {
    return copyBatch({to, from, sizes, count, attributes, indices, attributeCount}, failed, stream,
                     kLegacy);
}
CUresult cuMemcpyBatchAsync_ptsz(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count,
                                 CUmemcpyAttributes* attributes, size_t* indices,
                                 size_t attributeCount, size_t* failed, CUstream stream) {
    return copyBatch({to, from, sizes, count, attributes, indices, attributeCount}, failed, stream,
                     kPerThread);
}
CUresult cuMemcpyBatchAsync_v2(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count,
                               CUmemcpyAttributes* attributes, size_t* indices,
                               size_t attributeCount, CUstream stream) {
    return copyBatch({to, from, sizes, count, attributes, indices, attributeCount}, nullptr, stream,
                     kLegacy);
}
CUresult cuMemcpyBatchAsync_v2_ptsz(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count,
                                    CUmemcpyAttributes* attributes, size_t* indices,
                                    size_t attributeCount, CUstream stream) {
    return copyBatch({to, from, sizes, count, attributes, indices, attributeCount}, nullptr, stream,
                     kPerThread);
}

CUresult cuMemcpy3DBatchAsync(size_t count, CUDA_MEMCPY3D_BATCH_OP* boxes, size_t* failed,
                              unsigned long long flags, CUstream stream) {
    return copyBoxes(boxes, count, flags, failed, stream, kLegacy);
}
CUresult cuMemcpy3DBatchAsync_ptsz(size_t count, CUDA_MEMCPY3D_BATCH_OP* boxes, size_t* failed,
                                   unsigned long long flags, CUstream stream) {
    return copyBoxes(boxes, count, flags, failed, stream, kPerThread);
}
CUresult cuMemcpy3DBatchAsync_v2(size_t count, CUDA_MEMCPY3D_BATCH_OP* boxes,
                                 unsigned long long flags, CUstream stream) {
    return copyBoxes(boxes, count, flags, nullptr, stream, kLegacy);
}
CUresult cuMemcpy3DBatchAsync_v2_ptsz(size_t count, CUDA_MEMCPY3D_BATCH_OP* boxes,
                                      unsigned long long flags, CUstream stream) {
    return copyBoxes(boxes, count, flags, nullptr, stream, kPerThread);
}

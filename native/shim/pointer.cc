// cuPointerGetAttribute(s): answered here, as a real driver was seen to answer.
#include <cstring>

#include "native/gen/cuda_api.h"
#include "native/shim/ranges.h"
#include "native/shim/session.h"

namespace juice::shim {
namespace {

constexpr uint64_t kPage = 4096;
/// Drivers map memory in blocks of this size and carve small allocations out of them.
constexpr uint64_t kBlock = 2u << 20;

/// One attribute's value: what is written, how many bytes, and the single call's result.
struct Value {
    unsigned char bytes[16] = {};
    size_t size = 0;
    CUresult result = CUDA_SUCCESS;

    template <typename T>
    static Value of(T value) {
        Value out;
        std::memcpy(out.bytes, &value, sizeof value);
        out.size = sizeof value;
        return out;
    }
};

Value flag(bool set) {
    return Value::of(static_cast<unsigned>(set ? 1 : 0));
}

Value refused(size_t size) {
    Value out;
    out.size = size;
    out.result = CUDA_ERROR_INVALID_VALUE;
    return out;
}

/// The pages or blocks that a range was mapped with.
uint64_t mappingBegin(const Range& range) {
    return range.begin & ~((range.kind == Range::Kind::registered ? kPage : kBlock) - 1);
}
uint64_t mappingSize(const Range& range) {
    const uint64_t unit = range.kind == Range::Kind::registered ? kPage : kBlock;
    return (range.end() - mappingBegin(range) + unit - 1) & ~(unit - 1);
}

constexpr unsigned kHost = 1, kDevice = 2, kReadWrite = 3;

Value attributeOf(const Range& range, CUpointer_attribute attribute, CUdeviceptr pointer) {
    const bool device = range.onDevice(), managed = range.managed();
    switch (attribute) {
        case CU_POINTER_ATTRIBUTE_CONTEXT:
            // Pool memory belongs to its pool.
            return Value::of(range.kind == Range::Kind::pool ? nullptr
                                                             : handles::of(*range.context));
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            return Value::of(device || managed ? kDevice : kHost);
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
            return Value::of(pointer);
        case CU_POINTER_ATTRIBUTE_HOST_POINTER:
            return device ? refused(sizeof pointer) : Value::of(pointer);
        case CU_POINTER_ATTRIBUTE_P2P_TOKENS: {
            Value none = device ? Value{} : refused(0);
            none.size = 12;  // a u64 and a u32
            return none;
        }
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
            return flag(device);
        case CU_POINTER_ATTRIBUTE_BUFFER_ID:
            return Value::of(range.id);
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
            return flag(managed);
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            return Value::of(range.context->device);
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
            return flag(device);
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
            return Value::of(range.begin);
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
            return Value::of(range.size);
        case CU_POINTER_ATTRIBUTE_MAPPED:
            return flag(true);
        case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
            return Value::of(uint64_t{0});
        case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
            return flag(device);
        case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
            return Value::of(kReadWrite);
        case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
            return Value::of(uint64_t{0});
        case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
            return Value::of(mappingSize(range));
        case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
            return Value::of(mappingBegin(range));
        case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
            return Value::of(mappingBegin(range) / kBlock);
        case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
            return flag(device);
        default:
            return refused(0);
    }
}

/// For memory that CUDA knows nothing of, which only the call for several attributes answers.
Value attributeOfPlain(CUpointer_attribute attribute, CUdeviceptr pointer) {
    switch (attribute) {
        case CU_POINTER_ATTRIBUTE_HOST_POINTER:
            return Value::of(pointer);
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            return Value::of(static_cast<int>(CU_DEVICE_INVALID));
        case CU_POINTER_ATTRIBUTE_CONTEXT:
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
            return Value::of(uint64_t{0});
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        case CU_POINTER_ATTRIBUTE_MAPPED:
        case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
            return flag(false);
        default:
            return Value{};  // not touched
    }
}

bool known(CUpointer_attribute attribute) {
    return attribute >= CU_POINTER_ATTRIBUTE_CONTEXT &&
           attribute <= CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE;
}

}  // namespace
}  // namespace juice::shim

using namespace juice::shim;  // NOLINT: every definition below is an entry point

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr ptr) {
    if (const CUresult result = session::initialised()) return result;
    if (data == nullptr || !known(attribute)) return CUDA_ERROR_INVALID_VALUE;
    const auto range = ranges::find(ptr);
    if (!range) return CUDA_ERROR_INVALID_VALUE;
    const Value value = attributeOf(*range, attribute, ptr);
    std::memcpy(data, value.bytes, value.size);
    return value.result;
}

CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute* attributes,
                                void** data, CUdeviceptr ptr) {
    if (const CUresult result = session::initialised()) return result;
    if (numAttributes == 0 || attributes == nullptr || data == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < numAttributes; ++i)
        if (!known(attributes[i]) || data[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto range = ranges::find(ptr);
    for (unsigned i = 0; i < numAttributes; ++i) {
        const Value value =
            range ? attributeOf(*range, attributes[i], ptr) : attributeOfPlain(attributes[i], ptr);
        std::memcpy(data[i], value.bytes, value.size);
    }
    return CUDA_SUCCESS;
}

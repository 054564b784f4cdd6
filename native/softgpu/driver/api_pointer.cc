// What a pointer is.
#include <cstring>

#include "native/softgpu/driver/guard.h"
#include "native/softgpu/driver/memory.h"
#include "native/softgpu/driver/pool.h"
#include "native/softgpu/driver/virtual_space.h"

using namespace juice::softgpu;

namespace {

template <typename T>
CUresult answer(void* data, T value) {
    std::memcpy(data, &value, sizeof(T));  // NOLINT(bugprone-sizeof-expression): also of pointers
    return CUDA_SUCCESS;
}

/// What the current context's device may do with it.
int accessFlags(const Allocation& memory) {
    const auto context = ContextStack::ofThread().current();
    if (memory.kind != MemoryKind::mapped || !context || memory.device < 0) {
        return CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
    }
    return memory.rights.of(context->device().ordinal());
}

unsigned long long allowedHandleTypes(const Allocation& memory, CUdeviceptr pointer) {
    if (const auto pool = find<MemoryPool>(memory.pool)) {
        return static_cast<unsigned long long>(pool->handleTypes());
    }
    const auto physical = VirtualSpace::instance().at(pointer);
    if (!physical) return CU_MEM_HANDLE_TYPE_NONE;
    return static_cast<unsigned long long>(physical->properties().requestedHandleTypes);
}

/// Of memory that the driver knows.
CUresult known(void* data, CUpointer_attribute attribute, CUdeviceptr pointer,
               const Allocation& memory) {
    const bool mapped = memory.kind == MemoryKind::mapped;
    const bool host = isHostKind(memory.kind) || (mapped && memory.device < 0);
    const bool managed = isManagedKind(memory.kind);
    switch (attribute) {
        case CU_POINTER_ATTRIBUTE_CONTEXT:
            // Memory of a pool, and what is mapped, is the device's.
            return answer(data,
                          memory.pool == nullptr && !mapped ? handleOf(*memory.context) : nullptr);
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            return answer<uint32_t>(data, host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
            return answer(data, pointer);
        case CU_POINTER_ATTRIBUTE_HOST_POINTER:
            answer<CUdeviceptr>(data, host || managed ? pointer : 0);
            return host || managed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
        case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
            // Two tokens, packed, of a mechanism that is no more.
            std::memset(data, 0, sizeof(unsigned long long) + sizeof(unsigned));
            return host ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
            return answer<int>(data, memory.syncMemops ? 1 : 0);
        case CU_POINTER_ATTRIBUTE_BUFFER_ID:
            return answer<unsigned long long>(data, memory.bufferId);
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
            return answer<int>(data, managed ? 1 : 0);
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            return answer<int>(data, memory.device);
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
            return answer<CUdeviceptr>(data, memory.address);
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
            return answer<size_t>(data, memory.size);
        case CU_POINTER_ATTRIBUTE_MAPPED:
            return answer<int>(data, 1);
        case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
            return answer<int>(data, accessFlags(memory));
        case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
            return answer(data, memory.pool);
        case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
            return answer<size_t>(data, memory.piece.blockSize);
        case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
            return answer<CUdeviceptr>(data, memory.piece.block);
        case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
            return answer<unsigned long long>(data, memory.piece.blockId);
        case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
            return answer<unsigned long long>(data, allowedHandleTypes(memory, pointer));
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
            return answer<int>(data,
                               memory.kind == MemoryKind::device && memory.pool == nullptr ? 1 : 0);
        // What the software GPU cannot do with any memory.
        case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
            return answer<int>(data, 0);
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

/// Of the program's own memory, as cuPointerGetAttributes answers. Ranges are left as they are.
void unknown(void* data, CUpointer_attribute attribute, CUdeviceptr pointer) {
    switch (attribute) {
        case CU_POINTER_ATTRIBUTE_CONTEXT:
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
            answer<uint64_t>(data, 0);
            return;
        case CU_POINTER_ATTRIBUTE_HOST_POINTER:
            answer(data, pointer);
            return;
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        case CU_POINTER_ATTRIBUTE_MAPPED:
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
            answer<int>(data, 0);
            return;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            answer<int>(data, CU_DEVICE_INVALID);
            return;
        default:
            return;
    }
}

bool valid(CUpointer_attribute attribute) {
    return attribute >= CU_POINTER_ATTRIBUTE_CONTEXT &&
           attribute <= CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE;
}

}  // namespace

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr pointer) {
    return withDriver([&]() -> CUresult {
        const auto memory = AddressSpace::instance().find(pointer);
        if (data == nullptr || !memory) return CUDA_ERROR_INVALID_VALUE;
        return known(data, attribute, pointer, *memory);
    });
}

CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** data,
                                CUdeviceptr pointer) {
    return withDriver([&]() -> CUresult {
        if (count == 0 || attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
        const auto memory = AddressSpace::instance().find(pointer);
        for (unsigned i = 0; i < count; ++i) {
            if (!valid(attributes[i]) || data[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
            // What one attribute cannot say of this memory it says as null.
            if (!memory) {
                unknown(data[i], attributes[i], pointer);
            } else if (known(data[i], attributes[i], pointer, *memory) != CUDA_SUCCESS) {
                answer<uint64_t>(data[i], 0);
            }
        }
        return CUDA_SUCCESS;
    });
}

CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute,
                               CUdeviceptr pointer) {
    return withContext([&](Context&) {
        if (value == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        int on = 0;
        std::memcpy(&on, value, sizeof(on));
        return AddressSpace::instance().setSyncMemops(pointer, on != 0) ? CUDA_SUCCESS
                                                                        : CUDA_ERROR_INVALID_VALUE;
    });
}

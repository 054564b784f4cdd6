// Memory: allocation, host memory.
#include <sys/mman.h>

#include <algorithm>

#include "native/softgpu/driver/graph_memory.h"
#include "native/softgpu/driver/guard.h"
#include "native/softgpu/driver/memory.h"

using namespace juice::softgpu;

namespace {

constexpr size_t kPitchAlignment = 512;

AddressSpace& space() {
    return AddressSpace::instance();
}

uint64_t addressOf(const void* pointer) {
    return reinterpret_cast<uint64_t>(pointer);
}

/// Frees what starts at the address once the work of its context is done, as a real driver does.
CUresult release(uint64_t address, std::initializer_list<MemoryKind> kinds) {
    const auto found = space().find(address);
    if (!found || found->address != address) return CUDA_ERROR_INVALID_VALUE;
    if (std::find(kinds.begin(), kinds.end(), found->kind) == kinds.end()) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    found->context->synchronize();
    if (const CUresult failed = found->context->failure()) return failed;
    return space().release(address, kinds) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

constexpr uint64_t kPage = 4096;

/// Can the system bring pages in on demand? Not before Linux 5.14.
bool canPopulate() {
    static const bool can = [] {
        alignas(kPage) static uint8_t page[kPage];
        return madvise(page, sizeof(page), MADV_POPULATE_WRITE) == 0;
    }();
    return can;
}

/// Brings the program's pages in, as pinning does. False when they are not there, or not writable
/// although they must be. Where the system cannot tell they are trusted.
bool populate(uint64_t address, size_t size, bool writable) {
    const uint64_t start = address / kPage * kPage;
    const uint64_t end = (address + size + kPage - 1) / kPage * kPage;
    const int advice = writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
    return !canPopulate() || madvise(reinterpret_cast<void*>(start), end - start, advice) == 0;
}

constexpr unsigned kHostAllocFlags =
    CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
constexpr unsigned kHostRegisterFlags =
    CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY;

}  // namespace

CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
    return withContext([&](Context& context) {
        if (free != nullptr) *free = context.device().freeMemory();
        if (total != nullptr) *total = context.device().totalMemory();
        return CUDA_SUCCESS;
    });
}

CUresult cuMemAlloc_v2(CUdeviceptr* pointer, size_t size) {
    return withContextUncaptured([&](Context& context) {
        if (pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
        uint64_t address = 0;
        const CUresult result = space().allocate(context, size, MemoryKind::device, 0, address);
        if (result == CUDA_SUCCESS) *pointer = address;
        return result;
    });
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* pointer, size_t* pitch, size_t width, size_t height,
                            unsigned int elementSize) {
    return withContextUncaptured([&](Context& context) {
        if (pointer == nullptr || pitch == nullptr || width == 0 || height == 0) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        if (elementSize != 4 && elementSize != 8 && elementSize != 16) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        if (width > INT32_MAX || height > INT64_MAX / (width + kPitchAlignment)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        const size_t rounded = (width + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
        uint64_t address = 0;
        const CUresult result =
            space().allocate(context, rounded * height, MemoryKind::device, 0, address);
        if (result != CUDA_SUCCESS) return result;
        *pointer = address;
        *pitch = rounded;
        return CUDA_SUCCESS;
    });
}

CUresult cuMemFree_v2(CUdeviceptr pointer) {
    return withContextUncaptured([&](Context&) -> CUresult {
        if (pointer == 0) return CUDA_SUCCESS;
        if (const auto allocation = GraphAllocation::find(pointer)) {
            allocation->context().synchronize();
            return allocation->free();
        }
        return release(pointer, {MemoryKind::device, MemoryKind::managed, MemoryKind::poolImport});
    });
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* size, CUdeviceptr pointer) {
    return withContext([&](Context&) {
        const auto found = space().find(pointer);
        if (!found) return CUDA_ERROR_NOT_FOUND;
        if (base != nullptr) *base = found->address;
        if (size != nullptr) *size = found->size;
        return CUDA_SUCCESS;
    });
}

// Host memory. Its device pointer is its address.

CUresult cuMemHostAlloc(void** pointer, size_t size, unsigned int flags) {
    return withContextUncaptured([&](Context& context) -> CUresult {
        if (pointer == nullptr || (flags & ~kHostAllocFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
        if (size == 0) {
            *pointer = nullptr;
            return CUDA_SUCCESS;
        }
        uint64_t address = 0;
        // With unified addressing all host memory is mapped, asked for or not.
        const CUresult result = space().allocate(context, size, MemoryKind::host,
                                                 flags | CU_MEMHOSTALLOC_DEVICEMAP, address);
        if (result == CUDA_SUCCESS) *pointer = reinterpret_cast<void*>(address);
        return result;
    });
}

CUresult cuMemAllocHost_v2(void** pointer, size_t size) {
    return cuMemHostAlloc(pointer, size, CU_MEMHOSTALLOC_PORTABLE);
}

CUresult cuMemFreeHost(void* pointer) {
    return withContextUncaptured([&](Context&) {
        if (pointer == nullptr) return CUDA_SUCCESS;
        return release(addressOf(pointer), {MemoryKind::host});
    });
}

CUresult cuMemHostRegister_v2(void* pointer, size_t size, unsigned int flags) {
    return withContextUncaptured([&](Context& context) {
        if (pointer == nullptr || size == 0 || (flags & ~kHostRegisterFlags) != 0 ||
            addressOf(pointer) > UINT64_MAX - size) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        const auto overlapping = space().find(addressOf(pointer));
        if (overlapping && overlapping->kind != MemoryKind::registered) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        if (!populate(addressOf(pointer), size, (flags & CU_MEMHOSTREGISTER_READ_ONLY) == 0)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        const bool entered =
            space().enter(context, addressOf(pointer), size, MemoryKind::registered,
                          flags | CU_MEMHOSTREGISTER_DEVICEMAP);
        return entered ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    });
}

CUresult cuMemHostRegister(void* pointer, size_t size, unsigned int flags) {
    return cuMemHostRegister_v2(pointer, size, flags);
}

CUresult cuMemHostUnregister(void* pointer) {
    return withContextUncaptured([&](Context&) -> CUresult {
        const auto found = space().find(addressOf(pointer));
        if (pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
        if (!found) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
        if (found->kind != MemoryKind::registered || found->address != addressOf(pointer)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        found->context->synchronize();
        if (const CUresult failed = found->context->failure()) return failed;
        space().release(found->address, {MemoryKind::registered});
        return CUDA_SUCCESS;
    });
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* device, void* pointer, unsigned int flags) {
    return withContext([&](Context&) {
        const auto found = space().find(addressOf(pointer));
        if (device == nullptr || flags != 0 || !found || !isHostKind(found->kind)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        *device = addressOf(pointer);
        return CUDA_SUCCESS;
    });
}

CUresult cuMemHostGetFlags(unsigned int* flags, void* pointer) {
    return withContext([&](Context&) {
        const auto found = space().find(addressOf(pointer));
        if (flags == nullptr || !found || !isHostKind(found->kind)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        *flags = found->flags;
        return CUDA_SUCCESS;
    });
}

// Virtual memory management: address ranges, physical memory, mappings and what devices may do with
// them.
#include <unistd.h>

#include "native/gen/symbols.h"
#include "native/softgpu/driver/guard.h"
#include "native/softgpu/driver/memory.h"
#include "native/softgpu/driver/virtual_space.h"

using namespace juice::softgpu;

namespace {

constexpr size_t kGranularity = Backing::kUnit;

VirtualSpace& space() {
    return VirtualSpace::instance();
}

CUmemGenericAllocationHandle handleOf(const Physical* physical) {
    return reinterpret_cast<CUmemGenericAllocationHandle>(physical);
}

std::shared_ptr<Physical> physicalOf(CUmemGenericAllocationHandle handle) {
    return find<Physical>(reinterpret_cast<const void*>(handle));
}

/// 801 for handles of other systems.
CUresult checkHandleTypes(CUmemAllocationHandleType types) {
    if (types == CU_MEM_HANDLE_TYPE_NONE || types == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
        return CUDA_SUCCESS;
    }
    if ((types & CU_MEM_HANDLE_TYPE_FABRIC) != 0) {
        return juice_unsupported("memory with fabric handles");
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult checkProperties(const CUmemAllocationProp* properties) {
    Device* device = nullptr;
    if (properties == nullptr || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
        !deviceAtLocation(properties->location, device)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return checkHandleTypes(properties->requestedHandleTypes);
}

bool valid(CUmemAccess_flags flags) {
    return flags == CU_MEM_ACCESS_FLAGS_PROT_NONE || flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
           flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

}  // namespace

CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* properties,
                                       CUmemAllocationGranularity_flags option) {
    return withDriver([&]() -> CUresult {
        const bool known = option == CU_MEM_ALLOC_GRANULARITY_MINIMUM ||
                           option == CU_MEM_ALLOC_GRANULARITY_RECOMMENDED;
        if (granularity == nullptr || !known) return CUDA_ERROR_INVALID_VALUE;
        if (const CUresult failed = checkProperties(properties)) return failed;
        *granularity = kGranularity;
        return CUDA_SUCCESS;
    });
}

CUresult cuMemAddressReserve(CUdeviceptr* pointer, size_t size, size_t alignment, CUdeviceptr hint,
                             unsigned long long flags) {
    return withDriver([&]() -> CUresult {
        if (pointer == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
        uint64_t address = 0;
        const CUresult failed = space().reserve(size, alignment, hint, address);
        if (failed == CUDA_SUCCESS) *pointer = address;
        return failed;
    });
}

CUresult cuMemAddressFree(CUdeviceptr pointer, size_t size) {
    return withDriver([&] { return space().free(pointer, size); });
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size,
                     const CUmemAllocationProp* properties, unsigned long long flags) {
    return withDriver([&]() -> CUresult {
        if (handle == nullptr || flags != 0 || size == 0 || size % kGranularity != 0) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        if (const CUresult failed = checkProperties(properties)) return failed;
        CUmemAllocationProp given = *properties;
        // Wished for, not promised; what is asked back tells that it was not granted.
        given.allocFlags.compressionType = CU_MEM_ALLOCATION_COMP_NONE;
        std::shared_ptr<Physical> made;
        if (const CUresult failed = Physical::create(size, given, made)) return failed;
        *handle = handleOf(Registry<Physical>::instance().add(std::move(made)));
        return CUDA_SUCCESS;
    });
}

/// The memory stays for as long as it is mapped.
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    return withDriver([&]() -> CUresult {
        const auto physical = physicalOf(handle);
        if (!physical) return CUDA_ERROR_INVALID_VALUE;
        if (--physical->handles == 0) Registry<Physical>::instance().take(physical.get());
        return CUDA_SUCCESS;
    });
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
    return withDriver([&]() -> CUresult {
        auto physical = space().at(reinterpret_cast<uint64_t>(address));
        if (handle == nullptr || !physical) return CUDA_ERROR_INVALID_VALUE;
        ++physical->handles;
        *handle = handleOf(Registry<Physical>::instance().add(std::move(physical)));
        return CUDA_SUCCESS;
    });
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                                CUmemGenericAllocationHandle handle) {
    return withDriver([&]() -> CUresult {
        const auto physical = physicalOf(handle);
        if (properties == nullptr || !physical) return CUDA_ERROR_INVALID_VALUE;
        *properties = physical->properties();
        return CUDA_SUCCESS;
    });
}

CUresult cuMemMap(CUdeviceptr pointer, size_t size, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
    return withDriver([&]() -> CUresult {
        auto physical = physicalOf(handle);
        if (!physical || offset != 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
        return space().map(pointer, size, std::move(physical));
    });
}

/// As on a real device, nobody waits: work that still uses the memory is the program's mistake.
CUresult cuMemUnmap(CUdeviceptr pointer, size_t size) {
    return withDriver([&] { return space().unmap(pointer, size); });
}

CUresult cuMemSetAccess(CUdeviceptr pointer, size_t size, const CUmemAccessDesc* accesses,
                        size_t count) {
    return withDriver([&]() -> CUresult {
        if (accesses == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
        for (size_t i = 0; i < count; ++i) {
            Device* device = nullptr;
            if (!valid(accesses[i].flags) || !deviceAtLocation(accesses[i].location, device)) {
                return CUDA_ERROR_INVALID_VALUE;
            }
            // Kernels are checked for what they reach, not for what they do there.
            if (device != nullptr && accesses[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READ) {
                return juice_unsupported("access to mapped memory for reading alone");
            }
        }
        for (size_t i = 0; i < count; ++i) {
            Device* device = nullptr;
            deviceAtLocation(accesses[i].location, device);
            const CUresult failed = space().setAccess(pointer, size, device, accesses[i].flags);
            if (failed != CUDA_SUCCESS) return failed;
        }
        return CUDA_SUCCESS;
    });
}

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location,
                        CUdeviceptr pointer) {
    return withDriver([&]() -> CUresult {
        Device* device = nullptr;
        if (flags == nullptr || location == nullptr || !deviceAtLocation(*location, device)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        CUmemAccess_flags found = CU_MEM_ACCESS_FLAGS_PROT_NONE;
        if (const CUresult failed = space().access(pointer, device, found)) return failed;
        *flags = static_cast<unsigned long long>(found);
        return CUDA_SUCCESS;
    });
}

CUresult cuMemExportToShareableHandle(void* out, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags) {
    return withDriver([&]() -> CUresult {
        const auto physical = physicalOf(handle);
        if (out == nullptr || !physical || flags != 0) return CUDA_ERROR_INVALID_VALUE;
        if (const CUresult failed = checkHandleTypes(type)) return failed;
        if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
        const int file = physical->exportFile();
        if (file < 0) return CUDA_ERROR_INVALID_VALUE;
        *static_cast<int*>(out) = file;
        return CUDA_SUCCESS;
    });
}

/// The descriptor stays the program's; `handle` is its value, not its address.
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* out, void* handle,
                                        CUmemAllocationHandleType type) {
    return withDriver([&]() -> CUresult {
        if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
        if (const CUresult failed = checkHandleTypes(type)) return failed;
        if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
        const int file = static_cast<int>(reinterpret_cast<intptr_t>(handle));
        std::shared_ptr<Physical> made;
        if (const CUresult failed = Physical::import(file, made)) return failed;
        *out = handleOf(Registry<Physical>::instance().add(std::move(made)));
        return CUDA_SUCCESS;
    });
}

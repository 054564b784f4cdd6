// Memory pools and allocation in stream order.
#include <sys/stat.h>

#include <cstring>

#include "native/gen/symbols.h"
#include "native/softgpu/driver/device.h"
#include "native/softgpu/driver/graph_memory.h"
#include "native/softgpu/driver/guard.h"
#include "native/softgpu/driver/memory.h"
#include "native/softgpu/driver/pool.h"

using namespace juice::softgpu;

namespace {

constexpr DefaultStream kLegacy = DefaultStream::legacy;
constexpr DefaultStream kPerThread = DefaultStream::perThread;

CUmemoryPool handleOf(MemoryPool& pool) {
    return reinterpret_cast<CUmemoryPool>(&pool);
}

template <typename Body>
CUresult withPool(CUmemoryPool handle, const Body& body) {
    return withDriver([&]() -> CUresult {
        const auto pool = find<MemoryPool>(handle);
        return pool ? body(*pool) : CUDA_ERROR_INVALID_HANDLE;
    });
}

/// A node that allocates in place of the allocation.
CUresult captureAllocation(Stream& stream, const MemoryPool& pool, size_t size,
                           CUdeviceptr* pointer) {
    CUDA_MEM_ALLOC_NODE_PARAMS parameters{};
    parameters.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    parameters.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, pool.device().ordinal()};
    parameters.bytesize = size;
    std::shared_ptr<AllocOperation> made;
    if (const CUresult failed = AllocOperation::make(parameters, made)) return failed;
    *pointer = parameters.dptr;
    return submit(stream, std::move(made));
}

/// The address is known at once; that earlier work of the stream has ended when it is used is the
/// program's to see to, as always.
CUresult allocate(CUdeviceptr* pointer, size_t size, CUmemoryPool handle, CUstream stream,
                  DefaultStream meaning) {
    return withCapturable(stream, meaning, [&](Stream& on) -> CUresult {
        if (pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
        Context& context = on.context();
        const auto pool =
            handle == nullptr ? MemoryPool::currentOf(context.device()) : find<MemoryPool>(handle);
        if (!pool) return CUDA_ERROR_INVALID_HANDLE;
        if (size == 0) {
            *pointer = 0;
            return CUDA_SUCCESS;
        }
        if (isCapturing(on)) return captureAllocation(on, *pool, size, pointer);
        uint64_t address = 0;
        const CUresult result = AddressSpace::instance().allocate(context, size, MemoryKind::device,
                                                                  0, address, pool.get());
        if (result != CUDA_SUCCESS) return result;
        *pointer = address;
        return CUDA_SUCCESS;
    });
}

CUresult captureFree(Stream& stream, CUdeviceptr pointer) {
    const std::lock_guard lock(graphLock());
    Graph* const graph = capturedGraph(stream);
    if (graph == nullptr) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    std::shared_ptr<FreeOperation> made;
    if (const CUresult failed = FreeOperation::make(*graph, pointer, made)) return failed;
    return submit(stream, std::move(made));
}

CUresult free(CUdeviceptr pointer, CUstream stream, DefaultStream meaning) {
    return withCapturable(stream, meaning, [&](Stream& on) -> CUresult {
        if (pointer == 0) return CUDA_SUCCESS;
        if (isCapturing(on)) return captureFree(on, pointer);
        if (const auto allocation = GraphAllocation::find(pointer)) return allocation->free();
        if (!AddressSpace::instance().startFree(pointer)) return CUDA_ERROR_INVALID_VALUE;
        const auto give = [pointer] {
            AddressSpace::instance().release(pointer, {MemoryKind::device, MemoryKind::poolImport});
        };
        on.submit({give, {}, false});
        return CUDA_SUCCESS;
    });
}

/// What is exported of an allocation: where in the pool's file it lies.
struct PoolPointer {
    uint64_t magic;
    uint64_t file;
    uint64_t offset, size;
    uint64_t zero[4];

    static constexpr uint64_t kMagic = 0x4d56475347534a03;
};
static_assert(sizeof(PoolPointer) == sizeof(CUmemPoolPtrExportData));

/// The same for every descriptor of a pool's file.
uint64_t fileNumber(const MemoryPool& pool) {
    struct stat about {};
    fstat(pool.backing()->file(), &about);
    return about.st_ino;
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

bool valid(CUmemAccess_flags flags) {
    return flags == CU_MEM_ACCESS_FLAGS_PROT_NONE || flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
           flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

/// A pool that real devices have and these have not.
bool isElsewhere(const CUmemLocation& location, CUmemAllocationType type) {
    return location.type == CU_MEM_LOCATION_TYPE_HOST ||
           location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
           location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT ||
           type == CU_MEM_ALLOCATION_TYPE_MANAGED;
}

CUresult poolElsewhere() {
    return juice_unsupported("a memory pool of the host, or of managed memory");
}

/// The device of a location; null for one that is no device.
Device* located(const CUmemLocation* location) {
    if (location == nullptr || location->type != CU_MEM_LOCATION_TYPE_DEVICE) return nullptr;
    return deviceAt(location->id);
}

}  // namespace

CUresult cuMemAllocAsync(CUdeviceptr* pointer, size_t size, CUstream stream) {
    return allocate(pointer, size, nullptr, stream, kLegacy);
}
CUresult cuMemAllocAsync_ptsz(CUdeviceptr* pointer, size_t size, CUstream stream) {
    return allocate(pointer, size, nullptr, stream, kPerThread);
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* pointer, size_t size, CUmemoryPool pool,
                                 CUstream stream) {
    if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return allocate(pointer, size, pool, stream, kLegacy);
}
CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* pointer, size_t size, CUmemoryPool pool,
                                      CUstream stream) {
    if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return allocate(pointer, size, pool, stream, kPerThread);
}
CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
    return free(pointer, stream, kLegacy);
}
CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream) {
    return free(pointer, stream, kPerThread);
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* out, CUdevice ordinal) {
    return withDevice(ordinal, [&](Device& device) {
        if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
        *out = handleOf(MemoryPool::defaultOf(device));
        return CUDA_SUCCESS;
    });
}

CUresult cuDeviceGetMemPool(CUmemoryPool* out, CUdevice ordinal) {
    return withDevice(ordinal, [&](Device& device) {
        if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
        *out = handleOf(*MemoryPool::currentOf(device));
        return CUDA_SUCCESS;
    });
}

CUresult cuDeviceSetMemPool(CUdevice ordinal, CUmemoryPool handle) {
    return withDevice(ordinal, [&](Device& device) {
        auto pool = find<MemoryPool>(handle);
        if (!pool || &pool->device() != &device) return CUDA_ERROR_INVALID_VALUE;
        MemoryPool::setCurrent(device, std::move(pool));
        return CUDA_SUCCESS;
    });
}

CUresult cuMemPoolCreate(CUmemoryPool* out, const CUmemPoolProps* properties) {
    return withDriver([&]() -> CUresult {
        if (out == nullptr || properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
        if (isElsewhere(properties->location, properties->allocType)) {
            return poolElsewhere();
        }
        Device* const device = located(&properties->location);
        if (device == nullptr || properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        if (const CUresult failed = checkHandleTypes(properties->handleTypes)) return failed;
        auto pool =
            std::make_shared<MemoryPool>(*device, properties->handleTypes, properties->maxSize);
        *out = handleOf(*Registry<MemoryPool>::instance().add(std::move(pool)));
        return CUDA_SUCCESS;
    });
}

CUresult cuMemPoolDestroy(CUmemoryPool handle) {
    return withPool(handle, [&](MemoryPool& pool) {
        if (&pool == &MemoryPool::defaultOf(pool.device())) return CUDA_ERROR_INVALID_VALUE;
        if (MemoryPool::currentOf(pool.device()).get() == &pool) {
            MemoryPool::setCurrent(pool.device(), nullptr);
        }
        AddressSpace::instance().forgetPool(handle);
        Registry<MemoryPool>::instance().take(handle);
        return CUDA_SUCCESS;
    });
}

CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
    return withPool(handle, [&](MemoryPool& pool) {
        return value == nullptr ? CUDA_ERROR_INVALID_VALUE : pool.attribute(attribute, value);
    });
}

CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
    return withPool(handle, [&](MemoryPool& pool) {
        return value == nullptr ? CUDA_ERROR_INVALID_VALUE : pool.setAttribute(attribute, value);
    });
}

/// A pool keeps nothing back, so there is nothing to trim.
CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t) {
    return withPool(handle, [](MemoryPool&) { return CUDA_SUCCESS; });
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool handle,
                            CUmemLocation* location) {
    return withPool(handle, [&](MemoryPool& pool) {
        const Device* const device = located(location);
        if (flags == nullptr || device == nullptr) return CUDA_ERROR_INVALID_VALUE;
        *flags = pool.access(*device);
        return CUDA_SUCCESS;
    });
}

CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc* accesses, size_t count) {
    return withPool(handle, [&](MemoryPool& pool) -> CUresult {
        if (accesses == nullptr && count > 0) return CUDA_ERROR_INVALID_VALUE;
        for (size_t i = 0; i < count; ++i) {
            const Device* const device = located(&accesses[i].location);
            if (device == nullptr || !valid(accesses[i].flags)) return CUDA_ERROR_INVALID_VALUE;
            // Kernels are checked for what they reach, not for what they do there.
            if (accesses[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READ) {
                return juice_unsupported("access to a pool for reading alone");
            }
            const CUresult failed = pool.setAccess(*device, accesses[i].flags);
            if (failed != CUDA_SUCCESS) return failed;
        }
        return CUDA_SUCCESS;
    });
}

// The same pools by location.

CUresult cuMemGetDefaultMemPool(CUmemoryPool* out, CUmemLocation* location,
                                CUmemAllocationType type) {
    if (location == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (isElsewhere(*location, type)) return poolElsewhere();
    return cuDeviceGetDefaultMemPool(out, location->id);
}
CUresult cuMemGetMemPool(CUmemoryPool* out, CUmemLocation* location, CUmemAllocationType type) {
    if (location == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (isElsewhere(*location, type)) return poolElsewhere();
    return cuDeviceGetMemPool(out, location->id);
}
CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
    if (location == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (isElsewhere(*location, type)) return poolElsewhere();
    return cuDeviceSetMemPool(location->id, pool);
}

// Pools of other processes.

CUresult cuMemPoolExportToShareableHandle(void* out, CUmemoryPool handle,
                                          CUmemAllocationHandleType type,
                                          unsigned long long flags) {
    return withPool(handle, [&](MemoryPool& pool) -> CUresult {
        if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
        if (const CUresult failed = checkHandleTypes(type)) return failed;
        const int file = type == CU_MEM_HANDLE_TYPE_NONE ? -1 : pool.exportFile();
        if (file < 0) return CUDA_ERROR_INVALID_VALUE;
        *static_cast<int*>(out) = file;
        return CUDA_SUCCESS;
    });
}

/// The descriptor stays the program's; `handle` is its value, not its address.
CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool* out, void* handle,
                                            CUmemAllocationHandleType type,
                                            unsigned long long flags) {
    return withDriver([&]() -> CUresult {
        if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
        if (const CUresult failed = checkHandleTypes(type)) return failed;
        if (type == CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_INVALID_VALUE;
        std::shared_ptr<MemoryPool> pool;
        const int file = static_cast<int>(reinterpret_cast<intptr_t>(handle));
        if (const CUresult failed = MemoryPool::import(file, pool)) return failed;
        *out = handleOf(*Registry<MemoryPool>::instance().add(std::move(pool)));
        return CUDA_SUCCESS;
    });
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData* out, CUdeviceptr pointer) {
    return withDriver([&]() -> CUresult {
        const auto memory = AddressSpace::instance().find(pointer);
        const auto pool = memory ? find<MemoryPool>(memory->pool) : nullptr;
        if (out == nullptr || !pool || memory->arena == 0 || memory->address != pointer) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        PoolPointer data{
            PoolPointer::kMagic, fileNumber(*pool), memory->piece.offset, memory->size, {}};
        std::memcpy(out, &data, sizeof(data));
        return CUDA_SUCCESS;
    });
}

CUresult cuMemPoolImportPointer(CUdeviceptr* out, CUmemoryPool handle,
                                CUmemPoolPtrExportData* data) {
    return withContext([&](Context& context) -> CUresult {
        const auto pool = find<MemoryPool>(handle);
        if (!pool) return CUDA_ERROR_INVALID_HANDLE;
        if (out == nullptr || data == nullptr || !pool->imported()) return CUDA_ERROR_INVALID_VALUE;
        PoolPointer given;
        std::memcpy(&given, data, sizeof(given));
        if (given.magic != PoolPointer::kMagic || given.file != fileNumber(*pool)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        uint64_t address = 0;
        const CUresult failed = AddressSpace::instance().importPooled(context, *pool, given.offset,
                                                                      given.size, address);
        if (failed == CUDA_SUCCESS) *out = address;
        return failed;
    });
}

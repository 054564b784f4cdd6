// Managed memory: its allocation, attachment to streams, advice, prefetching, discarding. Both
// sides see all of it at all times and it never moves; what a program says of it is checked, kept
// and told again.
#include <algorithm>
#include <cstring>
#include <vector>

#include "native/softgpu/driver/advice.h"
#include "native/softgpu/driver/guard.h"
#include "native/softgpu/driver/memory.h"

using namespace juice::softgpu;

namespace {

constexpr DefaultStream kLegacy = DefaultStream::legacy;
constexpr DefaultStream kPerThread = DefaultStream::perThread;

/// 1 unless all of the range is one allocation's managed memory.
CUresult checkManaged(uint64_t pointer, size_t size) {
    const auto found = AddressSpace::instance().find(pointer);
    const bool inside =
        found && isManagedKind(found->kind) && size != 0 && size <= found->end() - pointer;
    return inside ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/// The location that the older entry points name by an ordinal.
CUmemLocation locationOf(CUdevice ordinal) {
    if (ordinal == CU_DEVICE_CPU) return {CU_MEM_LOCATION_TYPE_HOST, 0};
    return {CU_MEM_LOCATION_TYPE_DEVICE, ordinal};
}

/// 101 for a device that is not there, 1 for what is no location.
CUresult checkLocation(const CUmemLocation& location) {
    switch (location.type) {
        case CU_MEM_LOCATION_TYPE_DEVICE:
            return deviceAt(location.id) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
        case CU_MEM_LOCATION_TYPE_HOST:
        case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
            return CUDA_SUCCESS;
        case CU_MEM_LOCATION_TYPE_HOST_NUMA:
            // To this driver the machine is one node.
            return location.id == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

/// As it is kept: the host has no id, and the current node is a node.
CUmemLocation normalised(CUmemLocation location) {
    if (location.type == CU_MEM_LOCATION_TYPE_HOST) return {location.type, 0};
    if (location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT) {
        return {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
    }
    return location;
}

CUresult advise(CUdeviceptr pointer, size_t size, CUmem_advise advice,
                const CUmemLocation& location) {
    return withContext([&](Context&) -> CUresult {
        if (const CUresult failed = checkManaged(pointer, size)) return failed;
        const bool accessedBy =
            advice == CU_MEM_ADVISE_SET_ACCESSED_BY || advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY;
        if (accessedBy || advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION) {
            if (const CUresult failed = checkLocation(location)) return failed;
        }
        const bool device = location.type == CU_MEM_LOCATION_TYPE_DEVICE;
        if (accessedBy && !device && location.type != CU_MEM_LOCATION_TYPE_HOST) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        const int who = device ? location.id : CU_DEVICE_CPU;
        std::function<void(Advice&)> how;
        switch (advice) {
            case CU_MEM_ADVISE_SET_READ_MOSTLY:
                how = [](Advice& a) { a.readMostly = true; };
                break;
            case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
                how = [](Advice& a) { a.readMostly = false; };
                break;
            case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
                how = [&](Advice& a) { a.preferred = normalised(location); };
                break;
            case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
                how = [](Advice& a) { a.preferred = {CU_MEM_LOCATION_TYPE_INVALID, 0}; };
                break;
            case CU_MEM_ADVISE_SET_ACCESSED_BY:
                how = [&](Advice& a) { a.accessedBy.insert(who); };
                break;
            case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
                how = [&](Advice& a) { a.accessedBy.erase(who); };
                break;
            default:
                return CUDA_ERROR_INVALID_VALUE;
        }
        AdviceMap::instance().change(pointer, pointer + size, how);
        return CUDA_SUCCESS;
    });
}

/// Ranges with the location that each goes to.
struct Prefetch {
    CUdeviceptr pointer;
    size_t size;
    CUmemLocation to;
};

CUresult prefetch(const std::vector<Prefetch>& all, CUstream stream, DefaultStream meaning) {
    return withStream(stream, meaning, [&](Stream& on) -> CUresult {
        for (const Prefetch& one : all) {
            if (const CUresult failed = checkManaged(one.pointer, one.size)) return failed;
            if (const CUresult failed = checkLocation(one.to)) return failed;
        }
        for (const Prefetch& one : all) {
            AdviceMap::instance().change(one.pointer, one.pointer + one.size, [&](Advice& advice) {
                advice.prefetched = normalised(one.to);
            });
        }
        on.submit({});
        return CUDA_SUCCESS;
    });
}

CUresult prefetch(CUdeviceptr pointer, size_t size, const CUmemLocation& to, unsigned flags,
                  CUstream stream, DefaultStream meaning) {
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    return prefetch({{pointer, size, to}}, stream, meaning);
}

/// What the batched entry points are given.
struct Batch {
    const CUdeviceptr* pointers;
    const size_t* sizes;
    size_t count;
    unsigned long long flags;
};

/// A batch has ranges, no flags and a stream that is not the legacy default one.
bool valid(const Batch& batch, CUstream stream, DefaultStream meaning) {
    const bool legacy =
        stream == CU_STREAM_LEGACY || (stream == nullptr && meaning == DefaultStream::legacy);
    return batch.pointers != nullptr && batch.sizes != nullptr && batch.count != 0 &&
           batch.flags == 0 && !legacy;
}

/// Each location is that of the ranges from its index on, until the next one's.
CUresult prefetchBatch(const Batch& batch, const CUmemLocation* locations, const size_t* indices,
                       size_t locationCount, CUstream stream, DefaultStream meaning) {
    const bool located = locations != nullptr && indices != nullptr && locationCount != 0 &&
                         locationCount <= batch.count;
    if (!valid(batch, stream, meaning) || !located || indices[0] != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 1; i < locationCount; ++i) {
        if (indices[i] <= indices[i - 1] || indices[i] >= batch.count) {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    std::vector<Prefetch> all;
    size_t where = 0;
    for (size_t i = 0; i < batch.count; ++i) {
        if (where + 1 < locationCount && indices[where + 1] == i) ++where;
        all.push_back({batch.pointers[i], batch.sizes[i], locations[where]});
    }
    return prefetch(all, stream, meaning);
}

/// Discarded memory may hold anything, so also what it held.
CUresult discardBatch(const Batch& batch, CUstream stream, DefaultStream meaning) {
    if (!valid(batch, stream, meaning)) return CUDA_ERROR_INVALID_VALUE;
    return withStream(stream, meaning, [&](Stream& on) -> CUresult {
        for (size_t i = 0; i < batch.count; ++i) {
            if (const CUresult failed = checkManaged(batch.pointers[i], batch.sizes[i])) {
                return failed;
            }
        }
        on.submit({});
        return CUDA_SUCCESS;
    });
}

/// Who may access it and when is for devices that cannot share it; here it is only checked.
CUresult attach(CUstream stream, DefaultStream meaning, CUdeviceptr pointer, size_t size,
                unsigned flags) {
    return withStream(stream, meaning, [&](Stream& on) -> CUresult {
        const bool single = flags == CU_MEM_ATTACH_SINGLE;
        if (!single && flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        if (single && on.kind() == StreamKind::legacy) return CUDA_ERROR_INVALID_VALUE;
        const auto found = AddressSpace::instance().find(pointer);
        const bool whole = found && isManagedKind(found->kind) && found->address == pointer &&
                           (size == 0 || size == found->size);
        if (!whole) return CUDA_ERROR_INVALID_VALUE;
        on.submit({});
        return CUDA_SUCCESS;
    });
}

// What is asked of a range: the common value of all of it.

constexpr CUmemLocation kNowhere{CU_MEM_LOCATION_TYPE_INVALID, 0};

CUmemLocation commonLocation(CUdeviceptr pointer, size_t size, CUmemLocation Advice::*which) {
    CUmemLocation common = kNowhere;
    bool first = true, same = true;
    AdviceMap::instance().visit(pointer, pointer + size, [&](const Advice& advice) {
        const CUmemLocation& one = advice.*which;
        if (first) common = one;
        same = same && one.type == common.type && one.id == common.id;
        first = false;
    });
    return same ? common : kNowhere;
}

/// A location as the older attributes say it.
int ordinalOf(const CUmemLocation& location) {
    if (location.type == CU_MEM_LOCATION_TYPE_INVALID) return CU_DEVICE_INVALID;
    return location.type == CU_MEM_LOCATION_TYPE_DEVICE ? location.id : CU_DEVICE_CPU;
}

std::set<int> commonAccessors(CUdeviceptr pointer, size_t size) {
    std::set<int> common;
    bool first = true;
    AdviceMap::instance().visit(pointer, pointer + size, [&](const Advice& advice) {
        if (first) common = advice.accessedBy;
        std::erase_if(common, [&](int who) { return !advice.accessedBy.contains(who); });
        first = false;
    });
    return common;
}

bool commonReadMostly(CUdeviceptr pointer, size_t size) {
    bool all = true;
    AdviceMap::instance().visit(pointer, pointer + size,
                                [&](const Advice& advice) { all = all && advice.readMostly; });
    return all;
}

CUresult rangeAttribute(void* data, size_t dataSize, CUmem_range_attribute attribute,
                        CUdeviceptr pointer, size_t size) {
    if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY) {
        if (dataSize == 0 || dataSize % sizeof(int) != 0) return CUDA_ERROR_INVALID_VALUE;
        std::vector<int> who(dataSize / sizeof(int), CU_DEVICE_INVALID);
        size_t at = 0;
        for (const int one : commonAccessors(pointer, size)) {
            if (at < who.size()) who[at++] = one;
        }
        std::memcpy(data, who.data(), dataSize);
        return CUDA_SUCCESS;
    }
    if (dataSize != sizeof(int)) return CUDA_ERROR_INVALID_VALUE;
    const auto answer = [&](int value) {
        std::memcpy(data, &value, sizeof(value));
        return CUDA_SUCCESS;
    };
    const auto preferred = [&] { return commonLocation(pointer, size, &Advice::preferred); };
    const auto prefetched = [&] { return commonLocation(pointer, size, &Advice::prefetched); };
    switch (attribute) {
        case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
            return answer(commonReadMostly(pointer, size) ? 1 : 0);
        case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
            return answer(ordinalOf(preferred()));
        case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
            return answer(ordinalOf(prefetched()));
        case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
            return answer(preferred().type);
        case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
            return answer(preferred().id);
        case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
            return answer(prefetched().type);
        case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
            return answer(prefetched().id);
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

}  // namespace

CUresult cuMemAllocManaged(CUdeviceptr* pointer, size_t size, unsigned int flags) {
    return withContextUncaptured([&](Context& context) {
        const bool known = flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST;
        if (pointer == nullptr || !known) return CUDA_ERROR_INVALID_VALUE;
        uint64_t address = 0;
        const CUresult result =
            AddressSpace::instance().allocate(context, size, MemoryKind::managed, flags, address);
        if (result == CUDA_SUCCESS) *pointer = address;
        return result;
    });
}

CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr pointer, size_t size,
                                unsigned int flags) {
    return attach(stream, kLegacy, pointer, size, flags);
}
CUresult cuStreamAttachMemAsync_ptsz(CUstream stream, CUdeviceptr pointer, size_t size,
                                     unsigned int flags) {
    return attach(stream, kPerThread, pointer, size, flags);
}

CUresult cuMemAdvise(CUdeviceptr pointer, size_t size, CUmem_advise advice, CUdevice device) {
    return advise(pointer, size, advice, locationOf(device));
}
CUresult cuMemAdvise_v2(CUdeviceptr pointer, size_t size, CUmem_advise advice,
                        CUmemLocation location) {
    return advise(pointer, size, advice, location);
}

CUresult cuMemPrefetchAsync(CUdeviceptr pointer, size_t size, CUdevice device, CUstream stream) {
    return prefetch(pointer, size, locationOf(device), 0, stream, kLegacy);
}
CUresult cuMemPrefetchAsync_ptsz(CUdeviceptr pointer, size_t size, CUdevice device,
                                 CUstream stream) {
    return prefetch(pointer, size, locationOf(device), 0, stream, kPerThread);
}
CUresult cuMemPrefetchAsync_v2(CUdeviceptr pointer, size_t size, CUmemLocation location,
                               unsigned int flags, CUstream stream) {
    return prefetch(pointer, size, location, flags, stream, kLegacy);
}
CUresult cuMemPrefetchAsync_v2_ptsz(CUdeviceptr pointer, size_t size, CUmemLocation location,
                                    unsigned int flags, CUstream stream) {
    return prefetch(pointer, size, location, flags, stream, kPerThread);
}

CUresult cuMemPrefetchBatchAsync(CUdeviceptr* pointers, size_t* sizes, size_t count,
                                 CUmemLocation* locations, size_t* indices, size_t locationCount,
                                 unsigned long long flags, CUstream stream) {
    return prefetchBatch({pointers, sizes, count, flags}, locations, indices, locationCount, stream,
                         kLegacy);
}
CUresult cuMemPrefetchBatchAsync_ptsz(CUdeviceptr* pointers, size_t* sizes, size_t count,
                                      CUmemLocation* locations, size_t* indices,
                                      size_t locationCount, unsigned long long flags,
                                      CUstream stream) {
    return prefetchBatch({pointers, sizes, count, flags}, locations, indices, locationCount, stream,
                         kPerThread);
}

CUresult cuMemDiscardBatchAsync(CUdeviceptr* pointers, size_t* sizes, size_t count,
                                unsigned long long flags, CUstream stream) {
    return discardBatch({pointers, sizes, count, flags}, stream, kLegacy);
}
CUresult cuMemDiscardBatchAsync_ptsz(CUdeviceptr* pointers, size_t* sizes, size_t count,
                                     unsigned long long flags, CUstream stream) {
    return discardBatch({pointers, sizes, count, flags}, stream, kPerThread);
}

CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr* pointers, size_t* sizes, size_t count,
                                           CUmemLocation* locations, size_t* indices,
                                           size_t locationCount, unsigned long long flags,
                                           CUstream stream) {
    return cuMemPrefetchBatchAsync(pointers, sizes, count, locations, indices, locationCount, flags,
                                   stream);
}
CUresult cuMemDiscardAndPrefetchBatchAsync_ptsz(CUdeviceptr* pointers, size_t* sizes, size_t count,
                                                CUmemLocation* locations, size_t* indices,
                                                size_t locationCount, unsigned long long flags,
                                                CUstream stream) {
    return cuMemPrefetchBatchAsync_ptsz(pointers, sizes, count, locations, indices, locationCount,
                                        flags, stream);
}

CUresult cuMemRangeGetAttribute(void* data, size_t dataSize, CUmem_range_attribute attribute,
                                CUdeviceptr pointer, size_t size) {
    return withContext([&](Context&) -> CUresult {
        if (const CUresult failed = checkManaged(pointer, size)) return failed;
        return rangeAttribute(data, dataSize, attribute, pointer, size);
    });
}

CUresult cuMemRangeGetAttributes(void** data, size_t* dataSizes, CUmem_range_attribute* attributes,
                                 size_t count, CUdeviceptr pointer, size_t size) {
    return withContext([&](Context&) -> CUresult {
        if (data == nullptr || dataSizes == nullptr || attributes == nullptr || count == 0) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        if (const CUresult failed = checkManaged(pointer, size)) return failed;
        for (size_t i = 0; i < count; ++i) {
            const CUresult failed =
                rangeAttribute(data[i], dataSizes[i], attributes[i], pointer, size);
            if (failed != CUDA_SUCCESS) return failed;
        }
        return CUDA_SUCCESS;
    });
}

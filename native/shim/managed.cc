#include "native/shim/managed.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "native/gen/cuda_api.h"
#include "native/shim/arena.h"
#include "native/shim/coherence.h"
#include "native/shim/say.h"

namespace juice::shim {
namespace {

/// What the program has said of a stretch of managed memory. Hints, which nothing here depends on;
/// kept because they can be asked for.
struct Advice {
    bool readMostly = false;
    CUmemLocation preferred{CU_MEM_LOCATION_TYPE_INVALID, CU_DEVICE_INVALID};
    CUmemLocation prefetched{CU_MEM_LOCATION_TYPE_INVALID, CU_DEVICE_INVALID};
    std::vector<int> accessedBy;  // devices, or CU_DEVICE_CPU
};

bool same(const CUmemLocation& a, const CUmemLocation& b) {
    return a.type == b.type && a.id == b.id;
}

/// By the address at which a stretch begins; it reaches to the next one's beginning.
class Advices {
  public:
    template <typename Change>
    void change(uint64_t begin, uint64_t end, Change change) {
        const std::lock_guard lock(mutex_);
        split(begin);
        split(end);
        for (auto one = stretches_.find(begin); one->first != end; ++one) change(one->second);
    }
    /// Every stretch of the range, in order.
    std::vector<Advice> of(uint64_t begin, uint64_t end) const {
        const std::lock_guard lock(mutex_);
        std::vector<Advice> out;
        auto one = stretches_.upper_bound(begin);
        out.push_back(one == stretches_.begin() ? Advice{} : std::prev(one)->second);
        for (; one != stretches_.end() && one->first < end; ++one) out.push_back(one->second);
        return out;
    }

  private:
    void split(uint64_t at) {
        const auto next = stretches_.upper_bound(at);
        Advice before;
        if (next != stretches_.begin()) before = std::prev(next)->second;
        stretches_.emplace(at, std::move(before));
    }
    mutable std::mutex mutex_;
    std::map<uint64_t, Advice> stretches_;
};
Advices& advices() {
    static auto& one = *new Advices;
    return one;
}

bool isManaged(uint64_t address, uint64_t size) {
    const auto range = ranges::find(address);
    return range && range->managed() && size != 0 && range->holds(address, size);
}

CUmemLocation locationOf(CUdevice device) {
    return {device == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE,
            device};
}
bool exists(const CUmemLocation& location) {
    if (location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        return session::device(location.id) != nullptr;
    return location.type == CU_MEM_LOCATION_TYPE_HOST ||
           location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
           location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}
int numberOf(const CUmemLocation& location) {
    return location.type == CU_MEM_LOCATION_TYPE_HOST ? int{CU_DEVICE_CPU} : location.id;
}

CUresult advise(uint64_t address, size_t size, CUmem_advise advice, CUmemLocation location) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    const bool nowhere = advice == CU_MEM_ADVISE_SET_READ_MOSTLY ||
                         advice == CU_MEM_ADVISE_UNSET_READ_MOSTLY ||
                         advice == CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION;
    if (advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY ||
        !isManaged(address, size))
        return CUDA_ERROR_INVALID_VALUE;
    if (!nowhere && !exists(location)) return CUDA_ERROR_INVALID_DEVICE;
    advices().change(address, address + size, [&](Advice& one) {
        std::erase(one.accessedBy,
                   advice >= CU_MEM_ADVISE_SET_ACCESSED_BY ? numberOf(location) : INT_MIN);
        switch (advice) {
            case CU_MEM_ADVISE_SET_READ_MOSTLY:
            case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
                one.readMostly = advice == CU_MEM_ADVISE_SET_READ_MOSTLY;
                break;
            case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
                one.preferred = location;
                break;
            case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
                one.preferred = Advice{}.preferred;
                break;
            case CU_MEM_ADVISE_SET_ACCESSED_BY:
                one.accessedBy.push_back(numberOf(location));
                break;
            default:
                break;
        }
    });
    return CUDA_SUCCESS;
}

/// Where the bytes are is the worker's affair: what the device needs is there when work begins.
CUresult prefetch(uint64_t address, size_t size, CUmemLocation location, unsigned flags,
                  CUstream stream, bool perThread) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    uint64_t wire = 0;
    if (const CUresult result = wireStream(stream, perThread, wire)) return result;
    if (flags != 0 || !isManaged(address, size)) return CUDA_ERROR_INVALID_VALUE;
    if (!exists(location)) return CUDA_ERROR_INVALID_DEVICE;
    advices().change(address, address + size, [&](Advice& one) { one.prefetched = location; });
    return CUDA_SUCCESS;
}

CUresult attach(CUstream stream, bool perThread, uint64_t address, size_t size, unsigned flags) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    uint64_t wire = 0;
    if (const CUresult result = wireStream(stream, perThread, wire)) return result;
    const auto range = ranges::find(address);
    const bool whole =
        range && range->managed() && range->begin == address && (size == 0 || size == range->size);
    const bool known = flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST ||
                       flags == CU_MEM_ATTACH_SINGLE;
    return whole && known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/// The location that all stretches name, or none.
CUmemLocation common(const std::vector<Advice>& all, CUmemLocation Advice::*member) {
    for (const Advice& one : all)
        if (!same(one.*member, all.front().*member)) return Advice{}.preferred;
    return all.front().*member;
}

CUresult rangeAttribute(void* data, size_t size, CUmem_range_attribute attribute, uint64_t address,
                        size_t count) {
    if (data == nullptr || size == 0 || size % sizeof(int) != 0 || !isManaged(address, count))
        return CUDA_ERROR_INVALID_VALUE;
    const std::vector<Advice> all = advices().of(address, address + count);
    int value = 0;
    switch (attribute) {
        case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
            value =
                std::all_of(all.begin(), all.end(), [](const Advice& a) { return a.readMostly; });
            break;
        case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
            value = numberOf(common(all, &Advice::preferred));
            break;
        case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
            value = numberOf(common(all, &Advice::prefetched));
            break;
        case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
            value = common(all, &Advice::preferred).type;
            break;
        case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
            value = common(all, &Advice::preferred).id;
            break;
        case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
            value = common(all, &Advice::prefetched).type;
            break;
        case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
            value = common(all, &Advice::prefetched).id;
            break;
        case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY: {
            // Those that all stretches name, then "invalid" to the end of the array.
            auto* const out = static_cast<int*>(data);
            size_t used = 0;
            for (const int device : all.front().accessedBy) {
                const bool everywhere = std::all_of(all.begin(), all.end(), [&](const Advice& a) {
                    return std::count(a.accessedBy.begin(), a.accessedBy.end(), device) != 0;
                });
                if (everywhere && used < size / sizeof(int)) out[used++] = device;
            }
            std::fill(out + used, out + size / sizeof(int), int{CU_DEVICE_INVALID});
            return CUDA_SUCCESS;
        }
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
    if (size != sizeof value) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(data, &value, sizeof value);
    return CUDA_SUCCESS;
}

}  // namespace

namespace managed {

CUresult share(const Context* context, const Range& variable) {
    if (!arena::populate(variable.begin, variable.size)) {
        say("cannot map the managed variable at 0x%llx, where the worker has it",
            static_cast<unsigned long long>(variable.begin));
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return coherence::touch(context, variable.begin);
}

void forget(const Range& range) {
    coherence::forget(range.begin);
    arena::depopulate(range.begin, range.size);
    advices().change(range.begin, range.end(), [](Advice& one) { one = {}; });
}

}  // namespace managed
}  // namespace juice::shim

using namespace juice::shim;  // NOLINT: every definition below is an entry point
namespace custom = juice::custom;
using juice::Op;
using juice::Reader;
using juice::Reply;

CUresult cuMemAllocManaged(CUdeviceptr* dptr, size_t bytesize, unsigned int flags) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    if (dptr == nullptr || bytesize == 0 ||
        (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    Reply reply;
    const CUresult result =
        call(Op::cuMemAllocManaged, context, bytesOfCall(custom::ManagedAlloc{bytesize}), reply,
             Deferred::keep);
    if (result != CUDA_SUCCESS) return result;
    Reader in = reply.reader();
    Range range;
    range.kind = Range::Kind::managed;
    range.begin = in.get<uint64_t>();
    range.size = bytesize;
    range.context = context;
    range.mirrored = range.coherent = true;
    if (!in.done()) return CUDA_ERROR_UNKNOWN;
    if (!juice::arena::populate(range.begin, range.size)) {
        juice::say("cannot map %zu bytes of managed memory at 0x%llx, where the worker has it",
                   bytesize, static_cast<unsigned long long>(range.begin));
        post(Op::cuMemFree_v2, context, bytesOfCall(custom::Free{range.begin}));
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (const CUresult shadowed = coherence::adopt(range)) return shadowed;
    ranges::add(range);
    *dptr = range.begin;
    return CUDA_SUCCESS;
}

CUresult cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device) {
    return advise(devPtr, count, advice, locationOf(device));
}
CUresult cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice,
                        CUmemLocation location) {
    return advise(devPtr, count, advice, location);
}

CUresult cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count, CUdevice dstDevice,
                            CUstream hStream) {
    return prefetch(devPtr, count, locationOf(dstDevice), 0, hStream, false);
}
CUresult cuMemPrefetchAsync_ptsz(CUdeviceptr devPtr, size_t count, CUdevice dstDevice,
                                 CUstream hStream) {
    return prefetch(devPtr, count, locationOf(dstDevice), 0, hStream, true);
}
CUresult cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count, CUmemLocation location,
                               unsigned int flags, CUstream hStream) {
    return prefetch(devPtr, count, location, flags, hStream, false);
}
CUresult cuMemPrefetchAsync_v2_ptsz(CUdeviceptr devPtr, size_t count, CUmemLocation location,
                                    unsigned int flags, CUstream hStream) {
    return prefetch(devPtr, count, location, flags, hStream, true);
}

CUresult cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, size_t length,
                                unsigned int flags) {
    return attach(hStream, false, dptr, length, flags);
}
CUresult cuStreamAttachMemAsync_ptsz(CUstream hStream, CUdeviceptr dptr, size_t length,
                                     unsigned int flags) {
    return attach(hStream, true, dptr, length, flags);
}

CUresult cuMemRangeGetAttribute(void* data, size_t dataSize, CUmem_range_attribute attribute,
                                CUdeviceptr devPtr, size_t count) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    return rangeAttribute(data, dataSize, attribute, devPtr, count);
}
CUresult cuMemRangeGetAttributes(void** data, size_t* dataSizes, CUmem_range_attribute* attributes,
                                 size_t numAttributes, CUdeviceptr devPtr, size_t count) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    if (data == nullptr || dataSizes == nullptr || attributes == nullptr || numAttributes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < numAttributes; ++i)
        if (const CUresult result =
                rangeAttribute(data[i], dataSizes[i], attributes[i], devPtr, count))
            return result;
    return CUDA_SUCCESS;
}

// Pinned memory: allocated, or registered by the program. See docs/architecture.md, Addresses.
#include "native/shim/host_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include "native/gen/cuda_api.h"
#include "native/shim/arena.h"
#include "native/shim/coherence.h"
#include "native/shim/deliveries.h"
#include "native/shim/managed.h"
#include "native/shim/ranges.h"
#include "native/shim/say.h"
#include "native/shim/send.h"
#include "native/shim/shadows.h"

namespace juice::shim {
namespace {

constexpr unsigned kPortable = 1, kDeviceMap = 2, kAllocFlags = 7;
constexpr unsigned kIoMemory = 4, kReadOnly = 8, kRegisterFlags = 15;

uint64_t addressOf(const void* pointer) {
    return reinterpret_cast<uint64_t>(pointer);
}

CUresult hostAlloc(void** pp, size_t size, unsigned flags) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    if (pp == nullptr || (flags & ~kAllocFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    if (size == 0) {
        *pp = nullptr;
        return CUDA_SUCCESS;
    }
    Reply reply;
    const CUresult result =
        call(Op::cuMemHostAlloc, context, bytesOfCall(custom::HostAlloc{size, flags, 0}), reply,
             Deferred::keep);
    if (result != CUDA_SUCCESS) return result;
    Reader in = reply.reader();
    Range range;
    range.kind = Range::Kind::pinned;
    range.begin = in.get<uint64_t>();
    range.size = size;
    range.context = context;
    range.mirrored = true;
    // With unified addresses pinned memory is always mapped into the device, asked for or not.
    range.flags = flags | kDeviceMap;
    if (!in.ok()) return CUDA_ERROR_UNKNOWN;
    if (!arena::populate(range.begin, range.size)) {
        say("cannot map %zu bytes of pinned memory at 0x%llx, where the worker has its mirror",
            size, static_cast<unsigned long long>(range.begin));
        post(Op::cuMemFreeHost, context, bytesOfCall(custom::HostFree{range.begin}));
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    ranges::add(range);
    *pp = reinterpret_cast<void*>(range.begin);
    return CUDA_SUCCESS;
}

/// Could the device write all of it? Registering pins pages, hence makes them present and, unless
/// it is for reading only, the program's own.
bool accessible(const void* p, size_t size, bool readOnly) {
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    const uint64_t begin = addressOf(p) & ~(page - 1);
    const uint64_t end = (addressOf(p) + size + page - 1) & ~(page - 1);
    constexpr int kPopulateRead = 22, kPopulateWrite = 23;  // MADV_POPULATE_*, Linux 5.14
    const int advice = readOnly ? kPopulateRead : kPopulateWrite;
    static char own[1];
    static const bool known =
        madvise(reinterpret_cast<void*>(addressOf(own) & ~(page - 1)), page, kPopulateRead) == 0;
    if (known) return madvise(reinterpret_cast<void*>(begin), end - begin, advice) == 0;
    // An older kernel: at least it must be mapped.
    return msync(reinterpret_cast<void*>(begin), end - begin, MS_ASYNC) == 0;
}

CUresult hostRegister(void* p, size_t size, unsigned flags) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    if (p == nullptr || size == 0 || (flags & ~kRegisterFlags) != 0 || (flags & kIoMemory) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (const auto other = ranges::overlapping(addressOf(p), size))
        return other->kind == Range::Kind::registered ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
                                                      : CUDA_ERROR_INVALID_VALUE;
    if (!accessible(p, size, (flags & kReadOnly) != 0)) return CUDA_ERROR_INVALID_VALUE;
    Reply reply;
    const custom::HostRegister ask{addressOf(p), size, flags, 0};
    const CUresult result =
        call(Op::cuMemHostRegister_v2, context, bytesOfCall(ask), reply, Deferred::keep);
    if (result != CUDA_SUCCESS) return result;
    Reader in = reply.reader();
    in.get<uint64_t>();  // the device address: the same
    in.get<uint32_t>();  // the flags
    Range range;
    range.kind = Range::Kind::registered;
    range.begin = ask.address;
    range.size = size;
    range.context = context;
    range.mirrored = in.get<uint32_t>() != 0;
    range.flags = flags | kDeviceMap;
    if (!in.done()) return CUDA_ERROR_UNKNOWN;
    if (!range.mirrored)
        whisper("registered memory at %p is for copies only: the worker has no room there", p);
    ranges::add(range);
    return CUDA_SUCCESS;
}

}  // namespace

void forgetHostRange(const Range& range) {
    deliveries::cancel(range.begin, range.size);
    coherence::forget(range.begin);
    shadows::forget(range.begin, range.size);
    if (range.kind == Range::Kind::pinned) arena::depopulate(range.begin, range.size);
    if (range.managed()) managed::forget(range);
}

}  // namespace juice::shim

using namespace juice::shim;  // NOLINT: every definition below is an entry point
namespace custom = juice::custom;
using juice::Op;
using juice::Reply;

CUresult cuMemHostAlloc(void** pp, size_t bytesize, unsigned int Flags) {
    return hostAlloc(pp, bytesize, Flags);
}

CUresult cuMemAllocHost_v2(void** pp, size_t bytesize) {
    return hostAlloc(pp, bytesize, kPortable);
}

CUresult cuMemFreeHost(void* p) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    if (p == nullptr) return CUDA_SUCCESS;
    const auto range = ranges::find(addressOf(p));
    if (!range || range->begin != addressOf(p) || range->kind != Range::Kind::pinned)
        return CUDA_ERROR_INVALID_VALUE;
    // Waited: copies to it that are still in flight land first.
    Reply reply;
    const CUresult result =
        call(Op::cuMemFreeHost, context, bytesOfCall(custom::HostFree{range->begin}), reply);
    if (!reply.broken && reply.head.result != CUDA_SUCCESS) return result;
    ranges::remove(range->begin);
    forgetHostRange(*range);
    return result;
}

CUresult cuMemHostRegister(void* p, size_t bytesize, unsigned int Flags) {
    return hostRegister(p, bytesize, Flags);
}

CUresult cuMemHostRegister_v2(void* p, size_t bytesize, unsigned int Flags) {
    return hostRegister(p, bytesize, Flags);
}

CUresult cuMemHostUnregister(void* p) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto range = ranges::find(addressOf(p));
    if (!range) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    if (range->begin != addressOf(p) || range->kind != Range::Kind::registered)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_SUCCESS;
    // Of a range for copies only the worker knows nothing.
    if (range->mirrored) {
        Reply reply;
        result = call(Op::cuMemHostUnregister, context, bytesOfCall(custom::HostFree{range->begin}),
                      reply);
        if (!reply.broken && reply.head.result != CUDA_SUCCESS) return result;
    }
    ranges::remove(range->begin);
    forgetHostRange(*range);
    return result;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* pdptr, void* p, unsigned int Flags) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    const auto range = ranges::find(addressOf(p));
    if (pdptr == nullptr || Flags != 0 || !range || !range->pinned())
        return CUDA_ERROR_INVALID_VALUE;
    // Whoever asks means to hand it to device code.
    if (const CUresult result = coherence::touch(context, addressOf(p))) return result;
    *pdptr = addressOf(p);
    return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned int* pFlags, void* p) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    const auto range = ranges::find(addressOf(p));
    if (pFlags == nullptr || !range || !range->pinned()) return CUDA_ERROR_INVALID_VALUE;
    *pFlags = range->flags;
    return CUDA_SUCCESS;
}

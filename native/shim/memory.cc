// Device memory.
#include "native/gen/cuda_api.h"
#include "native/shim/arena.h"
#include "native/shim/deliveries.h"
#include "native/shim/host_memory.h"
#include "native/shim/ranges.h"
#include "native/shim/say.h"
#include "native/shim/send.h"

namespace juice::shim {
namespace {

/// Reads the addresses from a successful answer and writes the allocation down.
CUresult allocated(const Reply& reply, Range range, CUdeviceptr* out, size_t* pitch) {
    Reader in = reply.reader();
    range.begin = in.get<uint64_t>();
    if (pitch != nullptr) {
        *pitch = in.get<uint64_t>();
        range.size *= *pitch;
    }
    if (!in.done()) return CUDA_ERROR_UNKNOWN;
    if (!arena::placehold(range.begin, range.size))
        whisper("device memory at 0x%llx lies where the program has memory of its own",
                static_cast<unsigned long long>(range.begin));
    ranges::add(range);
    *out = range.begin;
    return CUDA_SUCCESS;
}

Range deviceRange(Range::Kind kind, size_t size, Context* context) {
    Range range;
    range.kind = kind;
    range.size = size;
    range.context = context;
    return range;
}

/// Posted, unless the program could miss bytes: a free implies that earlier work is done.
CUresult postOrWait(Op op, const Context* context, Bytes payload) {
    if (!deliveries::any()) return post(op, context, payload);
    Reply reply;
    return call(op, context, payload, reply);
}

CUresult allocAsync(CUdeviceptr* dptr, size_t size, CUstream stream, bool perThread) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    if (dptr == nullptr) return CUDA_ERROR_INVALID_VALUE;
    custom::AllocAsync alloc{size, 0};
    if (const CUresult result = wireStream(stream, perThread, alloc.stream)) return result;
    if (size == 0) {
        *dptr = 0;
        return CUDA_SUCCESS;
    }
    Reply reply;
    const CUresult result =
        call(Op::cuMemAllocAsync, context, bytesOfCall(alloc), reply, Deferred::keep);
    if (result != CUDA_SUCCESS) return result;
    return allocated(reply, deviceRange(Range::Kind::pool, size, context), dptr, nullptr);
}

CUresult freeAsync(CUdeviceptr dptr, CUstream stream, bool perThread) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    custom::FreeAsync free{dptr, 0};
    if (const CUresult result = wireStream(stream, perThread, free.stream)) return result;
    if (dptr == 0) return CUDA_SUCCESS;
    const auto range = ranges::find(dptr);
    if (!range || range->begin != dptr || range->kind > Range::Kind::graph)
        return CUDA_ERROR_INVALID_VALUE;
    if (range->kind != Range::Kind::graph) ranges::remove(dptr);
    return post(Op::cuMemFreeAsync, context, bytesOfCall(free), free.stream);
}

}  // namespace
}  // namespace juice::shim

using namespace juice::shim;  // NOLINT: every definition below is an entry point
namespace custom = juice::custom;
using juice::Op;
using juice::Reply;

CUresult cuMemAlloc_v2(CUdeviceptr* dptr, size_t bytesize) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    if (dptr == nullptr || bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
    Reply reply;
    const CUresult result = call(Op::cuMemAlloc_v2, context, bytesOfCall(custom::Alloc{bytesize}),
                                 reply, Deferred::keep);
    if (result != CUDA_SUCCESS) return result;
    return allocated(reply, deviceRange(Range::Kind::device, bytesize, context), dptr, nullptr);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* dptr, size_t* pPitch, size_t WidthInBytes, size_t Height,
                            unsigned int ElementSizeBytes) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    const bool element = ElementSizeBytes == 4 || ElementSizeBytes == 8 || ElementSizeBytes == 16;
    if (dptr == nullptr || pPitch == nullptr || WidthInBytes == 0 || Height == 0 || !element)
        return CUDA_ERROR_INVALID_VALUE;
    const custom::AllocPitch alloc{WidthInBytes, Height, ElementSizeBytes, 0};
    Reply reply;
    const CUresult result =
        call(Op::cuMemAllocPitch_v2, context, bytesOfCall(alloc), reply, Deferred::keep);
    if (result != CUDA_SUCCESS) return result;
    // The size becomes pitch * height once the pitch is known.
    return allocated(reply, deviceRange(Range::Kind::device, Height, context), dptr, pPitch);
}

CUresult cuMemFree_v2(CUdeviceptr dptr) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    if (dptr == 0) return CUDA_SUCCESS;
    const auto range = ranges::find(dptr);
    const bool managed = range && range->kind == Range::Kind::managed;
    if (!range || range->begin != dptr || (range->kind > Range::Kind::graph && !managed))
        return CUDA_ERROR_INVALID_VALUE;
    if (managed) {
        // Waited: what the device still writes there has come when it is gone.
        Reply reply;
        const CUresult result =
            call(Op::cuMemFree_v2, context, bytesOfCall(custom::Free{dptr}), reply);
        ranges::remove(dptr);
        forgetHostRange(*range);
        return result;
    }
    if (range->kind != Range::Kind::graph) ranges::remove(dptr);
    return postOrWait(Op::cuMemFree_v2, context, bytesOfCall(custom::Free{dptr}));
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* pbase, size_t* psize, CUdeviceptr dptr) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    const auto range = ranges::find(dptr);
    if (!range) return CUDA_ERROR_NOT_FOUND;
    if (pbase != nullptr) *pbase = range->begin;
    if (psize != nullptr) *psize = range->size;
    return CUDA_SUCCESS;
}

CUresult cuMemAllocAsync(CUdeviceptr* dptr, size_t bytesize, CUstream hStream) {
    return allocAsync(dptr, bytesize, hStream, false);
}
CUresult cuMemAllocAsync_ptsz(CUdeviceptr* dptr, size_t bytesize, CUstream hStream) {
    return allocAsync(dptr, bytesize, hStream, true);
}
CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream) {
    return freeAsync(dptr, hStream, false);
}
CUresult cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream hStream) {
    return freeAsync(dptr, hStream, true);
}

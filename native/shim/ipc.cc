// Memory and events of one process in another one of the same session: their workers share a host,
// hence a GPU's driver, which does it all.
#include <cstring>

#include "native/gen/cuda_api.h"
#include "native/shim/arena.h"
#include "native/shim/event.h"
#include "native/shim/ranges.h"
#include "native/shim/say.h"
#include "native/shim/send.h"

namespace juice::shim {
namespace {

/// CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
constexpr unsigned kMemoryFlags = 1;
constexpr unsigned kInterprocessOnly = 4 | 2;  // CU_EVENT_INTERPROCESS, DISABLE_TIMING

template <typename Handle>
CUresult handleFrom(const Reply& reply, Handle& handle) {
    if (reply.payload.size() != sizeof handle) return CUDA_ERROR_UNKNOWN;
    std::memcpy(&handle, reply.payload.data(), sizeof handle);
    return CUDA_SUCCESS;
}

CUresult open(CUdeviceptr* out, const CUipcMemHandle& handle, unsigned flags) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    if (out == nullptr || (flags & ~kMemoryFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    Writer payload;
    payload.raw(&handle, sizeof handle);
    payload.put(flags);
    Reply reply;
    const CUresult result =
        call(Op::cuIpcOpenMemHandle_v2, context, payload.view(), reply, Deferred::keep);
    if (result != CUDA_SUCCESS) return result;
    Reader in = reply.reader();
    const auto address = in.get<uint64_t>();
    Range range;
    range.kind = Range::Kind::opened;
    range.begin = in.get<uint64_t>();
    range.size = in.get<uint64_t>();
    range.context = context;
    if (!in.done()) return CUDA_ERROR_UNKNOWN;
    if (!arena::placehold(range.begin, range.size))
        whisper("device memory at 0x%llx lies where the program has memory of its own",
                static_cast<unsigned long long>(range.begin));
    ranges::add(range);
    *out = address;
    return CUDA_SUCCESS;
}

}  // namespace
}  // namespace juice::shim

using namespace juice::shim;  // NOLINT: every definition below is an entry point
namespace session = juice::shim::session;
using juice::Op;
using juice::Reply;
using juice::Writer;

CUresult cuIpcGetMemHandle(CUipcMemHandle* pHandle, CUdeviceptr dptr) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    const auto range = ranges::find(dptr);
    if (pHandle == nullptr || !range || range->kind > Range::Kind::pool)
        return CUDA_ERROR_INVALID_VALUE;
    Reply reply;
    const CUresult result =
        call(Op::cuIpcGetMemHandle, context, bytesOfCall(uint64_t{dptr}), reply);
    return result == CUDA_SUCCESS ? handleFrom(reply, *pHandle) : result;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr* pdptr, CUipcMemHandle handle, unsigned int Flags) {
    return open(pdptr, handle, Flags);
}
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* pdptr, CUipcMemHandle handle, unsigned int Flags) {
    return open(pdptr, handle, Flags);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr dptr) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    const auto range = ranges::find(dptr);
    if (!range || range->kind != Range::Kind::opened) return CUDA_ERROR_INVALID_VALUE;
    Reply reply;
    const CUresult result =
        call(Op::cuIpcCloseMemHandle, context, bytesOfCall(uint64_t{dptr}), reply);
    // The driver counts how often it was opened; so does the worker, which says when it is gone.
    juice::Reader in = reply.reader();
    if (result == CUDA_SUCCESS && in.get<uint32_t>() != 0) ranges::remove(range->begin);
    return result;
}

CUresult cuIpcGetEventHandle(CUipcEventHandle* pHandle, CUevent event) {
    if (const CUresult result = session::initialised()) return result;
    if (const CUresult result = session::sticky()) return result;
    Event* const known = find<Event>(event);
    if (known == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (pHandle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Reply reply;
    const CUresult result =
        call(Op::cuIpcGetEventHandle, known->context, bytesOfCall(known->id), reply);
    return result == CUDA_SUCCESS ? handleFrom(reply, *pHandle) : result;
}

CUresult cuIpcOpenEventHandle(CUevent* phEvent, CUipcEventHandle handle) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    if (phEvent == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Event* const event = newEvent(*context, kInterprocessOnly);
    if (event == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    Writer payload;
    payload.put(event->id);
    payload.raw(&handle, sizeof handle);
    Reply reply;
    const CUresult result =
        call(Op::cuIpcOpenEventHandle, context, payload.view(), reply, Deferred::keep);
    if (result != CUDA_SUCCESS) {
        forgetEvent(*event);
        return result;
    }
    *phEvent = static_cast<CUevent>(handles::of(*event));
    return CUDA_SUCCESS;
}

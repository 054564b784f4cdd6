// Memory and events between processes.
#include <bit>

#include "native/softgpu/driver/door.h"
#include "native/softgpu/driver/event.h"
#include "native/softgpu/driver/guard.h"
#include "native/softgpu/driver/memory.h"
#include "native/softgpu/driver/shared_event.h"

using namespace juice::softgpu;

namespace {

/// Handles are tickets, as bytes.
template <typename Handle>
Ticket ticketOf(const Handle& handle) {
    return std::bit_cast<Ticket>(handle);
}

}  // namespace

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr pointer) {
    return withContext([&](Context&) -> CUresult {
        if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
        Ticket ticket;
        const CUresult failed = AddressSpace::instance().exportMemory(pointer, ticket);
        if (failed == CUDA_SUCCESS) *handle = std::bit_cast<CUipcMemHandle>(ticket);
        return failed;
    });
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* pointer, CUipcMemHandle handle, unsigned int flags) {
    return withContext([&](Context& context) -> CUresult {
        if (pointer == nullptr || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        uint64_t address = 0;
        const CUresult failed =
            AddressSpace::instance().importMemory(context, ticketOf(handle), address);
        if (failed == CUDA_SUCCESS) *pointer = address;
        return failed;
    });
}
CUresult cuIpcOpenMemHandle(CUdeviceptr* pointer, CUipcMemHandle handle, unsigned int flags) {
    return cuIpcOpenMemHandle_v2(pointer, handle, flags);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr pointer) {
    return withContext([&](Context&) -> CUresult {
        const auto found = AddressSpace::instance().find(pointer);
        if (!found || found->kind != MemoryKind::imported || found->address != pointer) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        found->context->synchronize();
        if (const CUresult failed = found->context->failure()) return failed;
        return AddressSpace::instance().closeImport(pointer) ? CUDA_SUCCESS
                                                             : CUDA_ERROR_INVALID_VALUE;
    });
}

CUresult cuIpcGetEventHandle(CUipcEventHandle* handle, CUevent which) {
    return withContext([&](Context&) -> CUresult {
        if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
        const auto event = find<Event>(which);
        if (!event || !event->shared()) return CUDA_ERROR_INVALID_HANDLE;
        const Ticket* const ticket = event->shared()->ticket();
        if (ticket == nullptr) return CUDA_ERROR_INVALID_HANDLE;
        *handle = std::bit_cast<CUipcEventHandle>(*ticket);
        return CUDA_SUCCESS;
    });
}

CUresult cuIpcOpenEventHandle(CUevent* out, CUipcEventHandle handle) {
    return withContext([&](Context& context) -> CUresult {
        if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
        std::shared_ptr<SharedEvent> shared;
        if (const CUresult failed = SharedEvent::open(ticketOf(handle), shared)) return failed;
        auto event = std::make_shared<Event>(
            context, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS, std::move(shared));
        *out = reinterpret_cast<CUevent>(Registry<Event>::instance().add(std::move(event)));
        return CUDA_SUCCESS;
    });
}

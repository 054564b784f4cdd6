// Memory and events that client processes of one session show each other.
#include "native/gen/custom_handlers.h"
#include "native/worker/worker.h"

namespace juice::worker {

CUresult custom_cuIpcGetMemHandle(Incoming& in) {
    const auto address = in.get<uint64_t>();
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    if (in.driver().cuIpcGetMemHandle == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    if (!in.worker().memory.accessible(address, 1)) return CUDA_ERROR_INVALID_VALUE;
    CUipcMemHandle handle{};
    const CUresult result = in.driver().cuIpcGetMemHandle(&handle, address);
    if (result == CUDA_SUCCESS) in.out().raw(&handle, sizeof handle);
    return result;
}

CUresult custom_cuIpcOpenMemHandle_v2(Incoming& in) {
    CUipcMemHandle handle{};
    in.reader().raw(&handle, sizeof handle);
    const auto flags = in.get<uint32_t>();
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    const DriverTable& driver = in.driver();
    if (driver.cuIpcOpenMemHandle_v2 == nullptr || driver.cuMemGetAddressRange_v2 == nullptr)
        return CUDA_ERROR_NOT_SUPPORTED;
    const Blocking blocking(in.worker());
    CUdeviceptr address = 0, base = 0;
    size_t size = 0;
    CUresult result = driver.cuIpcOpenMemHandle_v2(&address, handle, flags);
    if (result != CUDA_SUCCESS) return result;
    result = driver.cuMemGetAddressRange_v2(&base, &size, address);
    if (result != CUDA_SUCCESS) {
        driver.cuIpcCloseMemHandle(address);
        return result;
    }
    in.out().put(uint64_t{address}).put(uint64_t{base}).put(uint64_t{size});
    return CUDA_SUCCESS;
}

CUresult custom_cuIpcCloseMemHandle(Incoming& in) {
    const auto address = in.get<uint64_t>();
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    if (in.driver().cuIpcCloseMemHandle == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    const Blocking blocking(in.worker());
    const CUresult result = in.driver().cuIpcCloseMemHandle(address);
    if (result == CUDA_SUCCESS) in.out().put(uint32_t{!in.worker().memory.accessible(address, 1)});
    return result;
}

CUresult custom_cuIpcGetEventHandle(Incoming& in) {
    const auto event = static_cast<CUevent>(in.handle(ObjectKind::event));
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    if (in.driver().cuIpcGetEventHandle == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    CUipcEventHandle handle{};
    const CUresult result = in.driver().cuIpcGetEventHandle(&handle, event);
    if (result == CUDA_SUCCESS) in.out().raw(&handle, sizeof handle);
    return result;
}

CUresult custom_cuIpcOpenEventHandle(Incoming& in) {
    const uint64_t id = in.minted(ObjectKind::event);
    CUipcEventHandle handle{};
    in.reader().raw(&handle, sizeof handle);
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    if (in.driver().cuIpcOpenEventHandle == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    CUevent event = nullptr;
    const CUresult result = in.driver().cuIpcOpenEventHandle(&event, handle);
    if (result == CUDA_SUCCESS) in.made(ObjectKind::event, id, event);
    return result;
}

}  // namespace juice::worker

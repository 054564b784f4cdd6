// Device memory: allocated within the lease, freed, counted.
#include "native/gen/custom_handlers.h"
#include "native/worker/worker.h"

namespace juice::worker {

CUresult custom_cuMemAlloc_v2(Incoming& in) {
    const auto call = custom::get<custom::Alloc>(in.reader());
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    Worker& worker = in.worker();
    if (!worker.memory.fits(call.size)) return CUDA_ERROR_OUT_OF_MEMORY;
    CUdeviceptr address = 0;
    const CUresult result = in.driver().cuMemAlloc_v2(&address, call.size);
    if (result != CUDA_SUCCESS) return result;
    worker.memory.add(address, call.size, in.header().context);
    in.out().put(uint64_t{address});
    return CUDA_SUCCESS;
}

CUresult custom_cuMemAllocPitch_v2(Incoming& in) {
    const auto call = custom::get<custom::AllocPitch>(in.reader());
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    Worker& worker = in.worker();
    // The pitch is the driver's to choose; it is at least the width.
    if (call.height != 0 && call.width > UINT64_MAX / call.height) return CUDA_ERROR_INVALID_VALUE;
    if (!worker.memory.fits(call.width * call.height)) return CUDA_ERROR_OUT_OF_MEMORY;
    CUdeviceptr address = 0;
    size_t pitch = 0;
    const CUresult result = in.driver().cuMemAllocPitch_v2(&address, &pitch, call.width,
                                                           call.height, call.elementBytes);
    if (result != CUDA_SUCCESS) return result;
    if (!worker.memory.fits(pitch * call.height)) {
        in.driver().cuMemFree_v2(address);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    worker.memory.add(address, pitch * call.height, in.header().context);
    in.out().put(uint64_t{address}).put(uint64_t{pitch});
    return CUDA_SUCCESS;
}

CUresult custom_cuMemAllocManaged(Incoming& in) {
    const auto call = custom::get<custom::ManagedAlloc>(in.reader());
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    Worker& worker = in.worker();
    if (!worker.memory.fits(call.size)) return CUDA_ERROR_OUT_OF_MEMORY;
    const Blocking blocking(worker);
    Mirror* mirror = nullptr;
    CUresult result =
        worker.mirrors.allocateManaged(call.size, worker.link.arena(), in.header().context, mirror);
    if (result != CUDA_SUCCESS) return result;
    result = worker.cohere(*mirror);
    if (result != CUDA_SUCCESS) {
        worker.mirrors.release(*mirror);
        return result;
    }
    worker.memory.add(mirror->begin, mirror->size, in.header().context);
    in.out().put(mirror->begin);
    return CUDA_SUCCESS;
}

CUresult custom_cuMemFree_v2(Incoming& in) {
    const auto call = custom::get<custom::Free>(in.reader());
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    if (!in.worker().memory.remove(call.address)) return CUDA_ERROR_INVALID_VALUE;
    const Blocking blocking(in.worker(), Blocking::kForStreams);  // it waits for kernels first
    Mirror* const mirror = in.worker().mirrors.at(call.address);
    if (mirror != nullptr && mirror->kind == Mirror::Kind::managed) {
        in.driver().cuCtxSynchronize();
        in.worker().coherence.remove(mirror->begin);
        return in.worker().mirrors.release(*mirror);
    }
    return in.driver().cuMemFree_v2(call.address);
}

CUresult custom_cuMemAllocAsync(Incoming& in) {
    const auto call = custom::get<custom::AllocAsync>(in.reader());
    const CUstream stream = in.stream(call.stream);
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    Worker& worker = in.worker();
    if (in.driver().cuMemAllocAsync == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    if (!worker.memory.fits(call.size)) return CUDA_ERROR_OUT_OF_MEMORY;
    CUdeviceptr address = 0;
    const CUresult result = in.driver().cuMemAllocAsync(&address, call.size, stream);
    if (result != CUDA_SUCCESS) return result;
    worker.memory.add(address, call.size, in.header().context);
    in.out().put(uint64_t{address});
    return CUDA_SUCCESS;
}

CUresult custom_cuMemFreeAsync(Incoming& in) {
    const auto call = custom::get<custom::FreeAsync>(in.reader());
    const CUstream stream = in.stream(call.stream);
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    if (in.driver().cuMemFreeAsync == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    if (!in.worker().memory.remove(call.address)) return CUDA_ERROR_INVALID_VALUE;
    return in.driver().cuMemFreeAsync(call.address, stream);
}

CUresult custom_cuMemGetInfo_v2(Incoming& in) {
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    size_t free = 0, total = 0;
    const CUresult result = in.driver().cuMemGetInfo_v2(&free, &total);
    if (result != CUDA_SUCCESS) return result;
    uint64_t leaseFree = free, leaseTotal = total;
    in.worker().memory.limitInfo(leaseFree, leaseTotal);
    in.out().put(leaseFree).put(leaseTotal);
    return CUDA_SUCCESS;
}

}  // namespace juice::worker

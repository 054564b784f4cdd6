// Contexts: created, retained, released, and waited for.
#include "native/gen/custom_handlers.h"
#include "native/worker/worker.h"

namespace juice::worker {

CUresult custom_cuDevicePrimaryCtxRetain(Incoming& in) {
    const auto call = custom::get<custom::PrimaryRetain>(in.reader());
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    Worker& worker = in.worker();
    if (worker.contexts.primaryOf(call.device) != nullptr || worker.contexts.find(call.id)) {
        worker.violate("this context is live already");
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUcontext handle = worker.takeWarm(call.device);
    if (handle == nullptr) {
        const Blocking blocking(worker);
        const CUresult result = in.driver().cuDevicePrimaryCtxRetain(&handle, call.device);
        if (result != CUDA_SUCCESS) return result;
    }
    if (!worker.contexts.add(call.id, handle, call.device, true)) {
        in.driver().cuDevicePrimaryCtxRelease_v2(call.device);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUcontext before = nullptr;
    in.driver().cuCtxGetCurrent(&before);
    in.driver().cuCtxSetCurrent(handle);
    worker.staging.pin(in.driver(), handle);
    in.driver().cuCtxSetCurrent(before);
    return CUDA_SUCCESS;
}

CUresult custom_cuDevicePrimaryCtxRelease_v2(Incoming& in) {
    const auto call = custom::get<custom::PrimaryEnd>(in.reader());
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    const auto context = in.worker().contexts.primaryOf(call.device);
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    return in.worker().endContext(
        context, [&] { return in.driver().cuDevicePrimaryCtxRelease_v2(call.device); });
}

CUresult custom_cuDevicePrimaryCtxReset_v2(Incoming& in) {
    const auto call = custom::get<custom::PrimaryEnd>(in.reader());
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    const auto context = in.worker().contexts.primaryOf(call.device);
    // A reset of a context that nobody uses resets its flags, and that is all.
    if (context == nullptr) return in.driver().cuDevicePrimaryCtxReset_v2(call.device);
    return in.worker().endContext(context, [&] {
        const CUresult result = in.driver().cuDevicePrimaryCtxReset_v2(call.device);
        in.driver().cuDevicePrimaryCtxRelease_v2(call.device);
        return result;
    });
}

CUresult custom_cuDevicePrimaryCtxSetFlags_v2(Incoming& in) {
    const auto call = custom::get<custom::PrimaryFlags>(in.reader());
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    return in.driver().cuDevicePrimaryCtxSetFlags_v2(call.device, call.flags);
}

CUresult custom_cuCtxCreate_v2(Incoming& in) {
    const auto call = custom::get<custom::ContextCreate>(in.reader());
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    Worker& worker = in.worker();
    if (worker.contexts.find(call.id) != nullptr) {
        worker.violate("this context is live already");
        return CUDA_ERROR_INVALID_VALUE;
    }
    const Blocking blocking(worker);
    CUcontext handle = nullptr;
    const CUresult result = in.driver().cuCtxCreate_v2(&handle, call.flags, call.device);
    if (result != CUDA_SUCCESS) return result;
    // Creating pushed it; which context is current is for each call to say.
    CUcontext popped = nullptr;
    in.driver().cuCtxPopCurrent_v2(&popped);
    if (worker.contexts.add(call.id, handle, call.device, false)) return CUDA_SUCCESS;
    in.driver().cuCtxDestroy_v2(handle);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult custom_cuCtxDestroy_v2(Incoming& in) {
    const auto call = custom::get<custom::ContextDestroy>(in.reader());
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    const auto context = in.worker().contexts.find(call.id);
    if (context == nullptr || context->primary) return CUDA_ERROR_INVALID_CONTEXT;
    return in.worker().endContext(context,
                                  [&] { return in.driver().cuCtxDestroy_v2(context->handle); });
}

CUresult custom_cuCtxSynchronize(Incoming& in) {
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    return in.worker().runBlocking(
        in, [&driver = in.driver()](Writer&) { return driver.cuCtxSynchronize(); });
}

CUresult custom_cuStreamSynchronize(Incoming& in) {
    const CUstream stream = in.stream();
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    return in.worker().awaitStream(in, stream, [](CUresult result, Writer&) { return result; });
}

CUresult custom_cuStreamQuery(Incoming& in) {
    const CUstream stream = in.stream();
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    return in.driver().cuStreamQuery(stream);
}

CUresult custom_cuEventQuery(Incoming& in) {
    const auto event = static_cast<CUevent>(in.handle(ObjectKind::event));
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    return in.driver().cuEventQuery(event);
}

CUresult custom_cuEventSynchronize(Incoming& in) {
    const auto event = static_cast<CUevent>(in.handle(ObjectKind::event));
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    Worker& worker = in.worker();
    const CUresult polled = worker.poll([&] { return in.driver().cuEventQuery(event); });
    // As in Worker::awaitStream: for what kernels have printed.
    if (polled == CUDA_SUCCESS) return in.driver().cuEventSynchronize(event);
    if (polled != CUDA_ERROR_NOT_READY) return polled;
    return worker.runBlocking(
        in, [&driver = in.driver(), event](Writer&) { return driver.cuEventSynchronize(event); });
}

}  // namespace juice::worker

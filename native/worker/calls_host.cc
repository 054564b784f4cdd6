// Functions of the program in the order of a stream.
#include "native/gen/custom_handlers.h"
#include "native/worker/worker.h"

namespace juice::worker {

CUresult custom_cuLaunchHostFunc(Incoming& in) {
    const auto call = custom::get<custom::HostCall>(in.reader());
    const CUstream stream = in.stream(call.stream);
    CUresult result = in.done();
    Worker& worker = in.worker();
    if (result == CUDA_SUCCESS && worker.captures.capturing(stream))
        return in.driver().cuLaunchHostFunc(stream, graphFunction,
                                            reinterpret_cast<void*>(call.id));
    // The client was told, or will be, what has become of the capture.
    if (call.captured != 0) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (worker.gates.isOpen(call.id)) {
        worker.violate("this function is due already");
        return CUDA_ERROR_INVALID_VALUE;
    }
    // The client is told in any case, so that it knows what has become of the function.
    const auto tell = [&worker, id = call.id](CUresult result) {
        worker.coherence.sendNow();
        worker.link.callback(id, result, static_cast<uint32_t>(custom::Called::function));
    };
    if (worker.context() == nullptr) result = CUDA_ERROR_INVALID_CONTEXT;
    const CUcontext context = worker.context() == nullptr ? nullptr : worker.context()->handle;
    if (result == CUDA_SUCCESS) result = worker.gates.open(call.id, context);
    if (result != CUDA_SUCCESS) {
        tell(result);
        return result;
    }
    const auto stopped = std::make_shared<std::atomic<int>>(CUDA_SUCCESS);
    worker.completions.tell(context, stream, [tell, stopped](CUresult reached) {
        const auto failed = static_cast<CUresult>(stopped->load());
        tell(failed != CUDA_SUCCESS ? failed : reached);
    });
    result = worker.gates.stop(call.id, stream);
    *stopped = result;
    return result;
}

}  // namespace juice::worker

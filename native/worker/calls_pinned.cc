// Pinned host memory and its mirrors.
#include <chrono>
#include <thread>

#include "native/gen/custom_handlers.h"
#include "native/worker/transfer.h"
#include "native/worker/worker.h"

namespace juice::worker {
namespace {

CUresult release(Incoming& in, Mirror::Kind kind) {
    const auto call = custom::get<custom::HostFree>(in.reader());
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    Worker& worker = in.worker();
    Mirror* mirror = worker.mirrors.at(call.address);
    if (mirror == nullptr || mirror->kind != kind)
        return kind == Mirror::Kind::pinned ? CUDA_ERROR_INVALID_VALUE
                                            : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    const Blocking blocking(worker, Blocking::kForStreams);
    // What the link still reads from must stay; and freeing waits for the GPU in any case.
    while (mirror->leaving.load() != 0) {
        worker.completions.poll();
        std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    if (worker.coherence.holds(mirror->begin)) {
        // What the device has written so far is the client's to see.
        in.driver().cuCtxSynchronize();
        worker.coherence.remove(mirror->begin);
    }
    return worker.mirrors.release(*mirror);
}

CUresult devicePointer(Incoming& in, const Mirror& mirror, CUdeviceptr& device, unsigned& flags) {
    void* const host = reinterpret_cast<void*>(mirror.begin);
    CUresult result = in.driver().cuMemHostGetDevicePointer_v2(&device, host, 0);
    if (result == CUDA_SUCCESS) result = in.driver().cuMemHostGetFlags(&flags, host);
    return result;
}

}  // namespace

CUresult custom_cuMemHostAlloc(Incoming& in) {
    const auto call = custom::get<custom::HostAlloc>(in.reader());
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    Worker& worker = in.worker();
    const Blocking blocking(worker);
    Mirror* mirror = nullptr;
    CUresult result = worker.mirrors.allocate(call.size, call.flags, worker.link.arena(),
                                              in.header().context, mirror);
    if (result != CUDA_SUCCESS) return result;
    CUdeviceptr device = 0;
    unsigned flags = 0;
    result = devicePointer(in, *mirror, device, flags);
    if (result != CUDA_SUCCESS) {
        worker.mirrors.release(*mirror);
        return result;
    }
    flags |= call.flags & CU_MEMHOSTALLOC_WRITECOMBINED;
    in.out().put(mirror->begin).put(uint64_t{device}).put(uint32_t{flags}).put(uint32_t{0});
    return CUDA_SUCCESS;
}

CUresult custom_cuMemHostRegister_v2(Incoming& in) {
    const auto call = custom::get<custom::HostRegister>(in.reader());
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    Worker& worker = in.worker();
    const Blocking blocking(worker);
    Mirror* mirror = nullptr;
    CUresult result =
        worker.mirrors.attach(call.address, call.size, call.flags, in.header().context, mirror);
    if (result != CUDA_SUCCESS) return result;
    CUdeviceptr device = 0;
    unsigned flags = call.flags;
    if (mirror != nullptr) {
        result = devicePointer(in, *mirror, device, flags);
        // Device code finds the memory under the client's own address, or not at all.
        if (result != CUDA_SUCCESS || device != call.address) {
            worker.mirrors.release(*mirror);
            mirror = nullptr;
            device = 0;
            flags = call.flags;
        }
    }
    in.out().put(uint64_t{device}).put(uint32_t{flags}).put(uint32_t{mirror != nullptr});
    return CUDA_SUCCESS;
}

CUresult custom_cuMemFreeHost(Incoming& in) {
    return release(in, Mirror::Kind::pinned);
}

CUresult custom_cuMemHostUnregister(Incoming& in) {
    return release(in, Mirror::Kind::registered);
}

CUresult custom_juiceMirrorPush(Incoming& in) {
    const auto call = custom::get<custom::MirrorPush>(in.reader());
    if (call.transfer == 0 && call.size > wire::kInlineLimit) in.reader().fail();
    const Bytes inlined = call.transfer == 0 ? in.reader().take(call.size) : Bytes{};
    const CUresult bad = in.done();
    Worker& worker = in.worker();
    const bool here = bad == CUDA_SUCCESS && worker.mirrors.holding(call.address, call.size);
    auto* const destination = here ? reinterpret_cast<uint8_t*>(call.address) : nullptr;
    if (call.transfer != 0) {
        const Blocking blocking(worker);
        receiveInto(worker, call.transfer, call.size, destination);
    } else if (destination != nullptr && !inlined.empty()) {
        std::memcpy(destination, inlined.data(), inlined.size());
    }
    if (bad != CUDA_SUCCESS) return bad;
    return here ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult custom_juiceMirrorCohere(Incoming& in) {
    const auto call = custom::get<custom::MirrorCohere>(in.reader());
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    Worker& worker = in.worker();
    const Mirror* const mirror = worker.mirrors.at(call.address);
    if (mirror == nullptr || worker.coherence.holds(call.address)) return CUDA_ERROR_INVALID_VALUE;
    return worker.cohere(*mirror);
}

CUresult custom_juiceWatch(Incoming& in) {
    const auto call = custom::get<custom::Watch>(in.reader());
    const CUstream stream = in.stream(call.stream);
    const CUresult bad = in.done();
    Worker& worker = in.worker();
    worker.coherence.watch();
    // The client counts on the end of every watch. One that cannot begin is over at once; so is one
    // in a stream that captures, where nothing runs yet.
    const bool runs =
        bad == CUDA_SUCCESS && worker.context() != nullptr && !worker.captures.capturing(stream);
    if (!runs)
        worker.coherence.watched();
    else
        worker.completions.after(worker.context()->handle, stream, true,
                                 [&worker](CUresult) { worker.coherence.watched(); });
    return bad;
}

}  // namespace juice::worker

// Copies of linear memory. Streams are explicit, and the client has said how host bytes travel.
#include "native/gen/custom_handlers.h"
#include "native/worker/transfer.h"
#include "native/worker/worker.h"

namespace juice::worker {
namespace {

CUresult copyIn(Incoming& in, const custom::CopyIn& call, CUstream stream, Bytes inlined) {
    Worker& worker = in.worker();
    const void* source = inlined.data();
    // Inlined bytes are pageable to the driver, which has taken them when it returns.
    std::shared_ptr<Mirror> mirror;
    if (static_cast<custom::Host>(call.host) == custom::Host::mirror) {
        mirror = worker.mirrors.holding(call.where, call.size);
        if (mirror == nullptr) return CUDA_ERROR_INVALID_VALUE;
        source = reinterpret_cast<const void*>(call.where);
    }
    if (!worker.memory.accessible(call.destination, call.size)) return CUDA_ERROR_INVALID_VALUE;
    return in.driver().cuMemcpyHtoDAsync_v2(call.destination, source, call.size, stream);
}

CUresult copyOutInlined(Incoming& in, const custom::CopyOut& call, CUstream stream) {
    Worker& worker = in.worker();
    Staging::Pool& smalls = worker.staging.smalls;
    void* piece = smalls.take();
    while (piece == nullptr) piece = smalls.take(1000);
    const CUresult result = in.driver().cuMemcpyDtoHAsync_v2(piece, call.source, call.size, stream);
    if (result != CUDA_SUCCESS) {
        smalls.give(piece);
        return result;
    }
    return worker.awaitStream(in, stream,
                              [&smalls, piece, size = call.size](CUresult waited, Writer& out) {
                                  if (waited == CUDA_SUCCESS) out.raw(piece, size);
                                  smalls.give(piece);
                                  return waited;
                              });
}

CUresult copyOutToMirror(Incoming& in, const custom::CopyOut& call, CUstream stream) {
    Worker& worker = in.worker();
    auto mirror = worker.mirrors.holding(call.address, call.size);
    if (mirror == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = in.driver().cuMemcpyDtoHAsync_v2(reinterpret_cast<void*>(call.address),
                                                             call.source, call.size, stream);
    if (result != CUDA_SUCCESS) return result;
    // In a captured stream nothing has been copied: the graph's launches see to what it writes.
    if (worker.captures.capturing(stream)) return CUDA_SUCCESS;
    if (call.transfer != 0)
        sendFromMirror(worker, stream, std::move(mirror), call.address, call.size, call.transfer);
    if (call.wait == 0) return CUDA_SUCCESS;
    return worker.awaitStream(in, stream, [](CUresult waited, Writer&) { return waited; });
}

}  // namespace

CUresult custom_cuMemcpyHtoDAsync_v2(Incoming& in) {
    const auto call = custom::get<custom::CopyIn>(in.reader());
    const auto host = static_cast<custom::Host>(call.host);
    if (host > custom::Host::mirror ||
        (host == custom::Host::inlined && call.size > wire::kInlineLimit))
        in.reader().fail();
    const Bytes inlined = host == custom::Host::inlined ? in.reader().take(call.size) : Bytes{};
    const CUstream stream = in.stream(call.stream);
    const CUresult bad = in.done();
    Worker& worker = in.worker();
    if (host != custom::Host::transfer)
        return bad != CUDA_SUCCESS ? bad : copyIn(in, call, stream, inlined);
    // The client sends it whatever becomes of the call, so it is taken in any case.
    const Blocking blocking(worker);
    if (bad == CUDA_SUCCESS)
        return receiveToDevice(worker, stream, call.destination, call.where, call.size);
    receiveInto(worker, call.where, call.size, nullptr);
    return bad;
}

CUresult custom_cuMemcpyDtoHAsync_v2(Incoming& in) {
    const auto call = custom::get<custom::CopyOut>(in.reader());
    const auto host = static_cast<custom::Host>(call.host);
    if (host > custom::Host::mirror ||
        (host == custom::Host::inlined && call.size > wire::kInlineLimit))
        in.reader().fail();
    const CUstream stream = in.stream(call.stream);
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    Worker& worker = in.worker();
    if (worker.context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (!worker.memory.accessible(call.source, call.size)) return CUDA_ERROR_INVALID_VALUE;
    if (host == custom::Host::inlined) return copyOutInlined(in, call, stream);
    if (host == custom::Host::mirror) return copyOutToMirror(in, call, stream);
    return worker.runBlocking(
        in, [&worker, call, stream, context = worker.context()->handle](Writer&) {
            return sendFromDevice(worker, context, stream, call.source, call.transfer, call.size);
        });
}

CUresult custom_cuMemcpyDtoDAsync_v2(Incoming& in) {
    const auto call = custom::get<custom::CopyDevice>(in.reader());
    const CUstream stream = in.stream(call.stream);
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    const Memory& memory = in.worker().memory;
    if (!memory.accessible(call.destination, call.size) ||
        !memory.accessible(call.source, call.size))
        return CUDA_ERROR_INVALID_VALUE;
    return in.driver().cuMemcpyDtoDAsync_v2(call.destination, call.source, call.size, stream);
}

CUresult custom_cuMemcpyPeerAsync(Incoming& in) {
    const auto call = custom::get<custom::CopyPeer>(in.reader());
    const CUstream stream = in.stream(call.stream);
    const auto to = static_cast<CUcontext>(in.object(ObjectKind::context, call.destinationContext));
    const auto from = static_cast<CUcontext>(in.object(ObjectKind::context, call.sourceContext));
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    const Memory& memory = in.worker().memory;
    if (!memory.accessible(call.destination, call.size) ||
        !memory.accessible(call.source, call.size))
        return CUDA_ERROR_INVALID_VALUE;
    return in.driver().cuMemcpyPeerAsync(call.destination, to, call.source, from, call.size,
                                         stream);
}

}  // namespace juice::worker

#include "native/shim/copy.h"

#include <cstring>

#include "native/gen/cuda_api.h"
#include "native/gen/symbols.h"
#include "native/shim/capture.h"
#include "native/shim/coherence.h"
#include "native/shim/deliveries.h"
#include "native/shim/host_functions.h"
#include "native/shim/ranges.h"
#include "native/shim/shadows.h"

namespace juice::shim {
namespace {

constexpr uint64_t kMost = uint64_t{1} << 47;  // no copy is larger: it is a mistake

enum class Kind { device, coherent, pinned, plain, invalid };

Kind kindOf(uint64_t address, uint64_t size) {
    if (address == 0) return Kind::invalid;
    const auto range = ranges::find(address);
    if (!range) return Kind::plain;
    const bool inside = range->holds(address, size);
    if (range->onDevice()) return inside ? Kind::device : Kind::invalid;
    // Pinned at its beginning only: as memory that is not pinned.
    if (!inside || !range->mirrored) return Kind::plain;
    return range->coherent ? Kind::coherent : Kind::pinned;
}

/// May an entry's device side be this? Pinned memory is the device's too.
bool deviceSide(uint64_t address, uint64_t size) {
    const auto range = ranges::find(address);
    return range && range->holds(address, size);
}

void* host(uint64_t address) {
    return reinterpret_cast<void*>(address);
}

/// The call's struct and the bytes that ride with it.
Writer withBytes(const custom::CopyIn& call, const void* bytes) {
    Writer payload;
    custom::put(payload, call);
    payload.raw(bytes, call.size);
    return payload;
}

CUresult synchronise(const Context* context, uint64_t stream) {
    Reply reply;
    return call(Op::cuStreamSynchronize, context, bytesOfCall(stream), reply);
}

/// Between the device and coherent memory: from mirror to device or back, in stream order.
CUresult copyCoherent(const Context* context, const Copy& what, bool in) {
    const uint64_t host = in ? what.source : what.target;
    constexpr auto kMirror = static_cast<uint32_t>(custom::Host::mirror);
    if (const CUresult result = coherence::beforeCopy(context, host, what.size)) return result;
    CUresult result = CUDA_SUCCESS;
    if (in) {
        const custom::CopyIn call{what.stream, what.target, what.size, kMirror, 0, host};
        result = post(Op::cuMemcpyHtoDAsync_v2, context, bytesOfCall(call), what.stream);
    } else {
        const custom::CopyOut call{what.stream, what.source, what.size, kMirror, 0, host, 0};
        result = post(Op::cuMemcpyDtoHAsync_v2, context, bytesOfCall(call), what.stream);
        if (result == CUDA_SUCCESS) result = coherence::afterWork(context, what.stream);
    }
    return result != CUDA_SUCCESS || what.async ? result : synchronise(context, what.stream);
}

CUresult copyIn(const Context* context, const Copy& what, Kind source) {
    if (source == Kind::coherent) return copyCoherent(context, what, true);
    // What is copied may name memory for device code; in more than this nobody keeps pointers.
    constexpr uint64_t kMostWithPointers = wire::kInlineLimit;
    if (what.size <= kMostWithPointers)
        if (const CUresult result = coherence::see(context, host(what.source), what.size))
            return result;
    custom::CopyIn call{what.stream, what.target, what.size, 0, 0, 0};
    // Only while the newest bytes are in the mirror, or a function of the program may yet write
    // newer ones, must the copy read there; otherwise what the program has now is what the copy
    // would read, and it goes straight to the device.
    const bool later = source == Kind::pinned && host_functions::outstanding();
    if (later) shadows::watch(what.source, what.size);
    if (later || (source == Kind::pinned && deliveries::touch(what.source, what.size))) {
        if (!later)
            if (const CUresult result = pushMirror(context, what.source, what.size)) return result;
        call.host = static_cast<uint32_t>(custom::Host::mirror);
        call.where = what.source;
        return post(Op::cuMemcpyHtoDAsync_v2, context, bytesOfCall(call), what.stream);
    }
    if (what.size <= wire::kInlineLimit) {
        call.host = static_cast<uint32_t>(custom::Host::inlined);
        return post(Op::cuMemcpyHtoDAsync_v2, context, withBytes(call, host(what.source)).view(),
                    what.stream);
    }
    call.host = static_cast<uint32_t>(custom::Host::transfer);
    call.where = session::link()->mintTransfer();
    return postWithData(Op::cuMemcpyHtoDAsync_v2, context, bytesOfCall(call), call.where,
                        host(what.source), what.size, what.stream);
}

CUresult copyOutWaiting(const Context* context, const Copy& what, custom::CopyOut call) {
    ClientLink* const link = session::link();
    const bool inlined = what.size <= wire::kInlineLimit;
    call.host = static_cast<uint32_t>(inlined ? custom::Host::inlined : custom::Host::transfer);
    if (!inlined) call.transfer = link->expect(host(what.target), what.size);
    Reply reply;
    const CUresult result = shim::call(Op::cuMemcpyDtoHAsync_v2, context, bytesOfCall(call), reply);
    if (inlined) {
        if (result != CUDA_SUCCESS) return result;
        if (reply.payload.size() != what.size) return CUDA_ERROR_UNKNOWN;
        std::memcpy(host(what.target), reply.payload.data(), what.size);
    } else if (!reply.broken && reply.head.result != CUDA_SUCCESS) {
        link->cancel(call.transfer);
    }
    return result;
}

CUresult copyOut(const Context* context, const Copy& what, Kind target) {
    if (target == Kind::coherent) return copyCoherent(context, what, false);
    custom::CopyOut call{what.stream, what.source, what.size, 0, 0, 0, 0};
    // Two deliveries to one place could overtake each other.
    if (target == Kind::pinned)
        if (const CUresult result = deliveries::settle(what.target, what.size)) return result;
    if (target != Kind::pinned || !what.async) return copyOutWaiting(context, what, call);
    call.host = static_cast<uint32_t>(custom::Host::mirror);
    call.wait = strict() ? 1 : 0;
    call.address = what.target;
    call.transfer = session::link()->expect(host(what.target), what.size);
    shadows::aboutToReceive(what.target, what.size, call.transfer);
    deliveries::add(what.target, what.size, call.transfer, context);
    const CUresult result = post(Op::cuMemcpyDtoHAsync_v2, context, bytesOfCall(call), what.stream);
    if (result != CUDA_SUCCESS) deliveries::cancel(what.target, what.size);
    return result;
}

/// Between the device and memory of the program, in a captured stream: each launch of the graph
/// reads or writes the mirror.
CUresult copyCaptured(const Context* context, const Copy& what, Kind target, Kind source) {
    if (!what.async) {  // cannot be captured: the driver there says how
        Reply reply;
        return call(Op::cuStreamSynchronize, context, bytesOfCall(what.stream), reply);
    }
    const auto mirrored = [](Kind kind) { return kind == Kind::pinned || kind == Kind::coherent; };
    if (target == Kind::device && mirrored(source)) {
        const custom::CopyIn call{what.stream, what.target,
                                  what.size,   static_cast<uint32_t>(custom::Host::mirror),
                                  0,           what.source};
        return post(Op::cuMemcpyHtoDAsync_v2, context, bytesOfCall(call), what.stream);
    }
    if (mirrored(target) && source == Kind::device) {
        const custom::CopyOut call{
            what.stream, what.source, what.size, static_cast<uint32_t>(custom::Host::mirror),
            0,           what.target, 0};
        return post(Op::cuMemcpyDtoHAsync_v2, context, bytesOfCall(call), what.stream);
    }
    return juice_unsupported("the capture of a copy from or to memory that is not pinned");
}

/// Both ends are the program's own memory: the stream's earlier work first, then here.
CUresult copyHere(const Context* context, const Copy& what) {
    if (const CUresult result = synchronise(context, what.stream)) return result;
    for (const uint64_t end : {what.source, what.target})
        if (const CUresult result = deliveries::settle(end, what.size)) return result;
    std::memmove(host(what.target), host(what.source), what.size);
    return CUDA_SUCCESS;
}

CUresult copyPeer(CUdeviceptr target, CUcontext targetContext, CUdeviceptr source,
                  CUcontext sourceContext, size_t size, CUstream stream, bool perThread) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    custom::CopyPeer call{0, target, 0, source, 0, size};
    if (const CUresult result = wireStream(stream, perThread, call.stream)) return result;
    const Context* const to = targetContext == nullptr ? context : find<Context>(targetContext);
    const Context* const from = sourceContext == nullptr ? context : find<Context>(sourceContext);
    if (to == nullptr || from == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (size == 0) return CUDA_SUCCESS;
    const bool onDevices =
        kindOf(target, size) == Kind::device && kindOf(source, size) == Kind::device;
    if (!onDevices || to->device == from->device)
        return copy(context, {target, source, size, call.stream, true}, kDtoD);
    call.destinationContext = to->id;
    call.sourceContext = from->id;
    return post(Op::cuMemcpyPeerAsync, context, bytesOfCall(call));
}

/// An entry: its checks in the driver's order, then the copy.
CUresult copyEntry(uint64_t target, uint64_t source, uint64_t size, CopyEnds ends, CUstream stream,
                   bool perThread, bool async) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    Copy what{target, source, size, 0, async};
    if (const CUresult result = wireStream(stream, perThread, what.stream)) return result;
    return copy(context, what, ends);
}

uint64_t addressOf(const void* pointer) {
    return reinterpret_cast<uint64_t>(pointer);
}

}  // namespace

CUresult pushMirror(const Context* context, uint64_t address, uint64_t size) {
    for (const deliveries::Span& part : deliveries::settledParts(address, size)) {
        custom::MirrorPush push{part.begin, part.end - part.begin, 0};
        CUresult result = CUDA_SUCCESS;
        if (push.size <= wire::kInlineLimit) {
            Writer payload;
            custom::put(payload, push);
            payload.raw(host(push.address), push.size);
            result = post(Op::juiceMirrorPush, context, payload.view(), kWirePerThread);
        } else {
            push.transfer = session::link()->mintTransfer();
            result = postWithData(Op::juiceMirrorPush, context, bytesOfCall(push), push.transfer,
                                  host(push.address), push.size, kWirePerThread);
        }
        if (result != CUDA_SUCCESS) return result;
    }
    return CUDA_SUCCESS;
}

CUresult postWithData(Op op, const Context* context, Bytes payload, uint64_t transfer,
                      const void* source, uint64_t size, uint64_t stream) {
    ClientLink* const link = session::link();
    if (!mustWait(stream)) {
        const CUresult result = post(op, context, payload, stream);
        if (result == CUDA_SUCCESS) link->send(transfer, source, size);
        return result;
    }
    if (link->broken()) return session::lost();
    const uint64_t request = link->ask(static_cast<uint16_t>(op), thread().number,
                                       static_cast<uint32_t>(context->id), payload);
    link->send(transfer, source, size);
    return settle(link->take(request), op);
}

CUresult copy(const Context* context, const Copy& what, CopyEnds ends) {
    if (what.size == 0) return CUDA_SUCCESS;
    if (what.size > kMost) return CUDA_ERROR_INVALID_VALUE;
    const Kind target = kindOf(what.target, what.size), source = kindOf(what.source, what.size);
    if (target == Kind::invalid || source == Kind::invalid) return CUDA_ERROR_INVALID_VALUE;
    if ((ends.targetOnDevice && !deviceSide(what.target, what.size)) ||
        (ends.sourceOnDevice && !deviceSide(what.source, what.size)))
        return CUDA_ERROR_INVALID_VALUE;
    if (target == Kind::device && source == Kind::device) {
        const custom::CopyDevice call{what.stream, what.target, what.source, what.size};
        return post(Op::cuMemcpyDtoDAsync_v2, context, bytesOfCall(call), what.stream);
    }
    if (capture::of(what.stream) != 0) return copyCaptured(context, what, target, source);
    if (target == Kind::device) return copyIn(context, what, source);
    if (source == Kind::device) return copyOut(context, what, target);
    return copyHere(context, what);
}

}  // namespace juice::shim

using namespace juice::shim;  // NOLINT: every definition below is an entry point

// Each entry twice: with the legacy default stream, and with the thread's own.
#define JUICE_COPY(name, suffix, parameters, target, source, size, ends)     \
    CUresult name parameters {                                               \
        return copyEntry(target, source, size, ends, nullptr, false, false); \
    }                                                                        \
    CUresult name##suffix parameters {                                       \
        return copyEntry(target, source, size, ends, nullptr, true, false);  \
    }
#define JUICE_COPY_ASYNC(name, suffix, parameters, target, source, size, ends) \
    CUresult name parameters {                                                 \
        return copyEntry(target, source, size, ends, hStream, false, true);    \
    }                                                                          \
    CUresult name##suffix parameters {                                         \
        return copyEntry(target, source, size, ends, hStream, true, true);     \
    }

JUICE_COPY(cuMemcpy, _ptds, (CUdeviceptr dst, CUdeviceptr src, size_t ByteCount), dst, src,
           ByteCount, kAnyToAny)
JUICE_COPY(cuMemcpyHtoD_v2, _ptds, (CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount),
           dstDevice, addressOf(srcHost), ByteCount, kHtoD)
JUICE_COPY(cuMemcpyDtoH_v2, _ptds, (void* dstHost, CUdeviceptr srcDevice, size_t ByteCount),
           addressOf(dstHost), srcDevice, ByteCount, kDtoH)
JUICE_COPY(cuMemcpyDtoD_v2, _ptds, (CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount),
           dstDevice, srcDevice, ByteCount, kDtoD)
JUICE_COPY_ASYNC(cuMemcpyAsync, _ptsz,
                 (CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream), dst, src,
                 ByteCount, kAnyToAny)
JUICE_COPY_ASYNC(cuMemcpyHtoDAsync_v2, _ptsz,
                 (CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount, CUstream hStream),
                 dstDevice, addressOf(srcHost), ByteCount, kHtoD)
JUICE_COPY_ASYNC(cuMemcpyDtoHAsync_v2, _ptsz,
                 (void* dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream),
                 addressOf(dstHost), srcDevice, ByteCount, kDtoH)
JUICE_COPY_ASYNC(cuMemcpyDtoDAsync_v2, _ptsz,
                 (CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream),
                 dstDevice, srcDevice, ByteCount, kDtoD)

#define JUICE_PEER(name, perThread)                                                       \
    CUresult name(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,     \
                  CUcontext srcContext, size_t ByteCount) {                               \
        return copyPeer(dstDevice, dstContext, srcDevice, srcContext, ByteCount, nullptr, \
                        perThread);                                                       \
    }
#define JUICE_PEER_ASYNC(name, perThread)                                                 \
    CUresult name(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,     \
                  CUcontext srcContext, size_t ByteCount, CUstream hStream) {             \
        return copyPeer(dstDevice, dstContext, srcDevice, srcContext, ByteCount, hStream, \
                        perThread);                                                       \
    }

JUICE_PEER(cuMemcpyPeer, false)
JUICE_PEER(cuMemcpyPeer_ptds, true)
JUICE_PEER_ASYNC(cuMemcpyPeerAsync, false)
JUICE_PEER_ASYNC(cuMemcpyPeerAsync_ptsz, true)

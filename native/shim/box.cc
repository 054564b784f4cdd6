// Copies of two and three dimensions between linear memories. Rows of the program's own memory
// travel packed: gathered here before they leave, scattered here when they arrive.
#include <cstring>
#include <vector>

#include "native/gen/cuda_api.h"
#include "native/gen/symbols.h"
#include "native/shim/capture.h"
#include "native/shim/coherence.h"
#include "native/shim/copy.h"
#include "native/shim/deliveries.h"
#include "native/shim/host_functions.h"
#include "native/shim/ranges.h"
#include "native/shim/shadows.h"

namespace juice::shim {
namespace {

constexpr uint64_t kMost = uint64_t{1} << 47;

/// One end: the address of the first byte, and the steps from row to row and slice to slice.
struct End {
    uint64_t first = 0, pitch = 0, height = 0;
    bool array = false, onDevice = false;
};

struct Box {
    End source, target;
    uint64_t width = 0, height = 0, depth = 0;
    uint64_t bytes() const { return width * height * depth; }
};

/// Both CUDA_MEMCPY2D and CUDA_MEMCPY3D name their ends alike.
template <typename Parameters>
End sourceOf(const Parameters& p, uint64_t z, uint64_t height) {
    End end{0, p.srcPitch, height, p.srcMemoryType == CU_MEMORYTYPE_ARRAY,
            p.srcMemoryType == CU_MEMORYTYPE_DEVICE};
    end.first =
        p.srcMemoryType == CU_MEMORYTYPE_HOST ? reinterpret_cast<uint64_t>(p.srcHost) : p.srcDevice;
    end.first += (z * height + p.srcY) * p.srcPitch + p.srcXInBytes;
    return end;
}
template <typename Parameters>
End targetOf(const Parameters& p, uint64_t z, uint64_t height) {
    End end{0, p.dstPitch, height, p.dstMemoryType == CU_MEMORYTYPE_ARRAY,
            p.dstMemoryType == CU_MEMORYTYPE_DEVICE};
    end.first =
        p.dstMemoryType == CU_MEMORYTYPE_HOST ? reinterpret_cast<uint64_t>(p.dstHost) : p.dstDevice;
    end.first += (z * height + p.dstY) * p.dstPitch + p.dstXInBytes;
    return end;
}

Box boxOf(const CUDA_MEMCPY2D& p) {
    return {sourceOf(p, 0, 0), targetOf(p, 0, 0), p.WidthInBytes, p.Height, 1};
}
Box boxOf(const CUDA_MEMCPY3D& p) {
    return {sourceOf(p, p.srcZ, p.srcHeight), targetOf(p, p.dstZ, p.dstHeight), p.WidthInBytes,
            p.Height, p.Depth};
}

uint64_t extent(const Box& box, const End& end) {
    return ((box.depth - 1) * end.height + box.height - 1) * end.pitch + box.width;
}

bool sound(const Box& box, const End& end) {
    if (end.first == 0 || (box.height > 1 && end.pitch < box.width) ||
        (box.depth > 1 && (end.height < box.height || end.pitch < box.width)))
        return false;
    return end.pitch < kMost && end.height < kMost / (end.pitch + 1) &&
           box.depth < kMost / (end.pitch * end.height + 1);
}

/// Are the rows back to back?
bool packed(const Box& box, const End& end) {
    const bool rows = box.height == 1 || end.pitch == box.width;
    const bool slices = box.depth == 1 || (end.pitch == box.width && end.height == box.height);
    return rows && slices;
}

uint8_t* rowOf(const End& end, uint64_t y, uint64_t z) {
    return reinterpret_cast<uint8_t*>(end.first + (z * end.height + y) * end.pitch);
}

template <typename Move>
void eachRow(const Box& box, Move move) {
    uint64_t at = 0;
    for (uint64_t z = 0; z < box.depth; ++z)
        for (uint64_t y = 0; y < box.height; ++y, at += box.width) move(y, z, at);
}

std::vector<uint8_t> gather(const Box& box) {
    std::vector<uint8_t> rows(box.bytes());
    eachRow(box, [&](uint64_t y, uint64_t z, uint64_t at) {
        std::memcpy(rows.data() + at, rowOf(box.source, y, z), box.width);
    });
    return rows;
}

void scatter(const Box& box, const uint8_t* rows) {
    eachRow(box, [&](uint64_t y, uint64_t z, uint64_t at) {
        std::memcpy(rowOf(box.target, y, z), rows + at, box.width);
    });
}

custom::BoxSide deviceSide(const End& end) {
    return {static_cast<uint32_t>(custom::Place::device), 0, end.first, end.pitch, end.height};
}
custom::BoxSide hostSide(uint64_t transfer) {
    const auto place = transfer == 0 ? custom::Place::inlined : custom::Place::transfer;
    return {static_cast<uint32_t>(place), 0, transfer, 0, 0};
}

CUresult send(const Context* context, custom::CopyBox call, const Box& box) {
    const std::vector<uint8_t> rows = gather(box);
    if (rows.size() <= wire::kInlineLimit) {
        call.source = hostSide(0);
        Writer payload;
        custom::put(payload, call);
        payload.raw(rows.data(), rows.size());
        return post(Op::cuMemcpy3DAsync_v2, context, payload.view(), call.stream);
    }
    const uint64_t transfer = session::link()->mintTransfer();
    call.source = hostSide(transfer);
    return postWithData(Op::cuMemcpy3DAsync_v2, context, bytesOfCall(call), transfer, rows.data(),
                        rows.size(), call.stream);
}

/// In a captured stream: each launch of the graph reads or writes the mirror.
CUresult copyCaptured(const Context* context, custom::CopyBox call, bool fromDevice, bool toDevice,
                      bool mirrored) {
    if (!mirrored)
        return juice_unsupported("the capture of a copy from or to memory that is not pinned");
    if (!fromDevice) call.source.place = static_cast<uint32_t>(custom::Place::mirror);
    if (!toDevice) call.target.place = static_cast<uint32_t>(custom::Place::mirror);
    return post(Op::cuMemcpy3DAsync_v2, context, bytesOfCall(call), call.stream);
}

/// From pinned memory, where a function of the program may write before the stream gets here.
CUresult sendFromMirror(const Context* context, custom::CopyBox call, const Box& box) {
    shadows::watch(box.source.first, extent(box, box.source));
    call.source.place = static_cast<uint32_t>(custom::Place::mirror);
    return post(Op::cuMemcpy3DAsync_v2, context, bytesOfCall(call), call.stream);
}

CUresult receive(const Context* context, custom::CopyBox call, const Box& box) {
    ClientLink* const link = session::link();
    std::vector<uint8_t> rows;
    uint64_t transfer = 0;
    if (box.bytes() > wire::kInlineLimit) {
        rows.resize(box.bytes());
        transfer = link->expect(rows.data(), rows.size());
    }
    call.target = hostSide(transfer);
    Reply reply;
    const CUresult result = shim::call(Op::cuMemcpy3DAsync_v2, context, bytesOfCall(call), reply);
    if (transfer != 0 && !reply.broken && reply.head.result != CUDA_SUCCESS) link->cancel(transfer);
    if (result != CUDA_SUCCESS) return result;
    const std::vector<uint8_t>& arrived = transfer != 0 ? rows : reply.payload;
    if (arrived.size() != box.bytes()) return CUDA_ERROR_UNKNOWN;
    scatter(box, arrived.data());
    return CUDA_SUCCESS;
}

/// Between the device and coherent memory: from mirror to device or back, in stream order.
CUresult copyCoherent(const Context* context, custom::CopyBox call, const Box& box, bool in,
                      bool async) {
    const End& host = in ? box.source : box.target;
    (in ? call.source : call.target).place = static_cast<uint32_t>(custom::Place::mirror);
    CUresult result = coherence::beforeCopy(context, host.first, extent(box, host));
    if (result == CUDA_SUCCESS) result = post(Op::cuMemcpy3DAsync_v2, context, bytesOfCall(call));
    if (result == CUDA_SUCCESS && !in) result = coherence::afterWork(context, call.stream);
    if (result != CUDA_SUCCESS || async) return result;
    Reply reply;
    return shim::call(Op::cuStreamSynchronize, context, bytesOfCall(call.stream), reply);
}

CUresult copyBox(const Context* context, const Box& box, uint64_t stream, bool async) {
    if (box.width == 0 || box.height == 0 || box.depth == 0) return CUDA_SUCCESS;
    if (box.source.array || box.target.array)
        return juice_unsupported("a copy from or to an array");
    if (box.width > kMost || box.height > kMost || !sound(box, box.source) ||
        !sound(box, box.target))
        return CUDA_ERROR_INVALID_VALUE;
    if (packed(box, box.source) && packed(box, box.target))
        return copy(context, {box.target.first, box.source.first, box.bytes(), stream, async},
                    {box.target.onDevice, box.source.onDevice});
    struct Found {
        bool device, host, coherent, mirrored;
    };
    const auto look = [&](const End& end) -> Found {
        const auto range = ranges::find(end.first);
        if (!range) return {false, !end.onDevice, false, false};
        const bool inside = range->holds(end.first, extent(box, end));
        return {range->onDevice() && inside, range->onHost(), range->coherent && inside,
                range->mirrored && inside};
    };
    const Found source = look(box.source), target = look(box.target);
    if ((!source.device && !source.host) || (!target.device && !target.host))
        return CUDA_ERROR_INVALID_VALUE;
    custom::CopyBox call{};
    call.stream = stream;
    call.width = box.width;
    call.height = box.height;
    call.depth = box.depth;
    call.source = deviceSide(box.source);
    call.target = deviceSide(box.target);
    if (capture::of(stream) != 0 && !(source.device && target.device))
        return copyCaptured(context, call, source.device, target.device,
                            source.device ? target.mirrored : source.mirrored && target.device);
    // What is on its way to the program's memory comes before, or beneath, this copy.
    if (source.host)
        if (const CUresult result = deliveries::settle(box.source.first, extent(box, box.source)))
            return result;
    if (target.host)
        if (const CUresult result = deliveries::settle(box.target.first, extent(box, box.target)))
            return result;
    if ((source.device && target.coherent) || (source.coherent && target.device))
        return copyCoherent(context, call, box, source.coherent, async);
    if (source.device && target.device)
        return post(Op::cuMemcpy3DAsync_v2, context, bytesOfCall(call), stream);
    if (target.device && source.mirrored && host_functions::outstanding())
        return sendFromMirror(context, call, box);
    if (target.device) return send(context, call, box);
    if (source.device) return receive(context, call, box);
    Reply reply;
    if (const CUresult result =
            shim::call(Op::cuStreamSynchronize, context, bytesOfCall(stream), reply))
        return result;
    scatter(box, gather(box).data());
    return CUDA_SUCCESS;
}

template <typename Parameters>
CUresult entry(const Parameters* parameters, CUstream stream, bool perThread, bool async) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    uint64_t wire = 0;
    if (const CUresult result = wireStream(stream, perThread, wire)) return result;
    return copyBox(context, boxOf(*parameters), wire, async);
}

}  // namespace
}  // namespace juice::shim

using namespace juice::shim;  // NOLINT: every definition below is an entry point

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* pCopy) {
    return entry(pCopy, nullptr, false, false);
}
CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D* pCopy) {
    return entry(pCopy, nullptr, true, false);
}
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* pCopy) {
    return entry(pCopy, nullptr, false, false);
}
CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D* pCopy) {
    return entry(pCopy, nullptr, true, false);
}
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* pCopy) {
    return entry(pCopy, nullptr, false, false);
}
CUresult cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D* pCopy) {
    return entry(pCopy, nullptr, true, false);
}
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* pCopy, CUstream hStream) {
    return entry(pCopy, hStream, false, true);
}
CUresult cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D* pCopy, CUstream hStream) {
    return entry(pCopy, hStream, true, true);
}
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* pCopy, CUstream hStream) {
    return entry(pCopy, hStream, false, true);
}
CUresult cuMemcpy3DAsync_v2_ptsz(const CUDA_MEMCPY3D* pCopy, CUstream hStream) {
    return entry(pCopy, hStream, true, true);
}

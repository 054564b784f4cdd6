// Copies in two and three dimensions.
#include "native/gen/symbols.h"
#include "native/softgpu/driver/copy.h"
#include "native/softgpu/driver/guard.h"

using namespace juice::softgpu;

namespace {

constexpr DefaultStream kLegacy = DefaultStream::legacy;
constexpr DefaultStream kPerThread = DefaultStream::perThread;

/// One side as CUDA_MEMCPY2D and CUDA_MEMCPY3D describe it.
struct Described {
    CUmemorytype type;
    const void* host;
    CUdeviceptr device;
    size_t x, y, z;        // where the copy begins: bytes, rows, slices
    size_t pitch, height;  // of the whole: bytes a row, rows a slice; 0: as wide as the copy
};

/// 1 for an impossible description, 801 for arrays, which the software GPU lacks.
CUresult resolve(const Described& described, const Extent& extent, Side& side) {
    uint64_t base = described.device;
    switch (described.type) {
        case CU_MEMORYTYPE_HOST:
            base = reinterpret_cast<uint64_t>(described.host);
            break;
        case CU_MEMORYTYPE_DEVICE:
        case CU_MEMORYTYPE_UNIFIED:
            break;
        case CU_MEMORYTYPE_ARRAY:
            return juice_unsupported("a copy with an array");
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
    const size_t pitch = described.pitch == 0 ? described.x + extent.width : described.pitch;
    const size_t height = described.height == 0 ? described.y + extent.height : described.height;
    const bool rows = extent.height > 1 || extent.depth > 1;
    if (rows && pitch < described.x + extent.width) return CUDA_ERROR_INVALID_VALUE;
    if (extent.depth > 1 && height < described.y + extent.height) return CUDA_ERROR_INVALID_VALUE;
    side.pitch = pitch;
    if (__builtin_mul_overflow(pitch, height, &side.slice)) return CUDA_ERROR_INVALID_VALUE;
    side.address = base + described.z * side.slice + described.y * pitch + described.x;
    side.device = described.type == CU_MEMORYTYPE_DEVICE;
    return CUDA_SUCCESS;
}

CUresult shaped(const Described& to, const Described& from, const Extent& extent, CUstream stream,
                DefaultStream meaning, Wait wait) {
    return withStream(stream, meaning, [&](Stream& on) -> CUresult {
        Side target, source;
        if (const CUresult failed = resolve(to, extent, target)) return failed;
        if (const CUresult failed = resolve(from, extent, source)) return failed;
        return copy(on, target, source, extent, wait);
    });
}

CUresult copy2D(const CUDA_MEMCPY2D* c, CUstream stream, DefaultStream meaning, Wait wait) {
    if (c == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return shaped(
        {c->dstMemoryType, c->dstHost, c->dstDevice, c->dstXInBytes, c->dstY, 0, c->dstPitch, 0},
        {c->srcMemoryType, c->srcHost, c->srcDevice, c->srcXInBytes, c->srcY, 0, c->srcPitch, 0},
        {c->WidthInBytes, c->Height, 1}, stream, meaning, wait);
}

/// For CUDA_MEMCPY3D and CUDA_MEMCPY3D_PEER, which name their fields alike.
template <typename Copy3D>
CUresult copy3D(const Copy3D* c, CUstream stream, DefaultStream meaning, Wait wait) {
    if (c == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (c->srcLOD != 0 || c->dstLOD != 0) return CUDA_ERROR_INVALID_VALUE;
    return shaped({c->dstMemoryType, c->dstHost, c->dstDevice, c->dstXInBytes, c->dstY, c->dstZ,
                   c->dstPitch, c->dstHeight},
                  {c->srcMemoryType, c->srcHost, c->srcDevice, c->srcXInBytes, c->srcY, c->srcZ,
                   c->srcPitch, c->srcHeight},
                  {c->WidthInBytes, c->Height, c->Depth}, stream, meaning, wait);
}

}  // namespace

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy) {
    return copy2D(copy, nullptr, kLegacy, Wait::yes);
}
CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D* copy) {
    return copy2D(copy, nullptr, kPerThread, Wait::yes);
}
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy) {
    return copy2D(copy, nullptr, kLegacy, Wait::yes);
}
CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D* copy) {
    return copy2D(copy, nullptr, kPerThread, Wait::yes);
}
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
    return copy2D(copy, stream, kLegacy, Wait::no);
}
CUresult cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D* copy, CUstream stream) {
    return copy2D(copy, stream, kPerThread, Wait::no);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* copy) {
    return copy3D(copy, nullptr, kLegacy, Wait::yes);
}
CUresult cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D* copy) {
    return copy3D(copy, nullptr, kPerThread, Wait::yes);
}
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* copy, CUstream stream) {
    return copy3D(copy, stream, kLegacy, Wait::no);
}
CUresult cuMemcpy3DAsync_v2_ptsz(const CUDA_MEMCPY3D* copy, CUstream stream) {
    return copy3D(copy, stream, kPerThread, Wait::no);
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* copy) {
    return copy3D(copy, nullptr, kLegacy, Wait::yes);
}
CUresult cuMemcpy3DPeer_ptds(const CUDA_MEMCPY3D_PEER* copy) {
    return copy3D(copy, nullptr, kPerThread, Wait::yes);
}
CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
    return copy3D(copy, stream, kLegacy, Wait::no);
}
CUresult cuMemcpy3DPeerAsync_ptsz(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
    return copy3D(copy, stream, kPerThread, Wait::no);
}

// Copies in two and three dimensions.
#include <cstddef>
#include <cstring>

#include "native/softgpu/driver/copy.h"
#include "native/softgpu/driver/guard.h"

using namespace juice::softgpu;

namespace {

constexpr DefaultStream kLegacy = DefaultStream::legacy;
constexpr DefaultStream kPerThread = DefaultStream::perThread;

CUresult shaped(const CUDA_MEMCPY3D& described, CUstream stream, DefaultStream meaning, Wait wait) {
    return withCapturable(stream, meaning, [&](Stream& on) { return copy(on, described, wait); });
}

CUresult copy2D(const CUDA_MEMCPY2D* c, CUstream stream, DefaultStream meaning, Wait wait) {
    if (c == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY3D described{};
    described.srcXInBytes = c->srcXInBytes;
    described.srcY = c->srcY;
    described.srcMemoryType = c->srcMemoryType;
    described.srcHost = c->srcHost;
    described.srcDevice = c->srcDevice;
    described.srcArray = c->srcArray;
    described.srcPitch = c->srcPitch;
    described.dstXInBytes = c->dstXInBytes;
    described.dstY = c->dstY;
    described.dstMemoryType = c->dstMemoryType;
    described.dstHost = c->dstHost;
    described.dstDevice = c->dstDevice;
    described.dstArray = c->dstArray;
    described.dstPitch = c->dstPitch;
    described.WidthInBytes = c->WidthInBytes;
    described.Height = c->Height;
    described.Depth = 1;
    return shaped(described, stream, meaning, wait);
}

CUresult copy3D(const CUDA_MEMCPY3D* c, CUstream stream, DefaultStream meaning, Wait wait) {
    return c == nullptr ? CUDA_ERROR_INVALID_VALUE : shaped(*c, stream, meaning, wait);
}

/// Laid out like the other one, with contexts where that has reserved words. They say nothing new:
/// addresses are unique in the process.
CUresult copy3D(const CUDA_MEMCPY3D_PEER* c, CUstream stream, DefaultStream meaning, Wait wait) {
    if (c == nullptr) return CUDA_ERROR_INVALID_VALUE;
    static_assert(sizeof(CUDA_MEMCPY3D_PEER) == sizeof(CUDA_MEMCPY3D) &&
                  offsetof(CUDA_MEMCPY3D_PEER, dstContext) == offsetof(CUDA_MEMCPY3D, reserved1));
    CUDA_MEMCPY3D described;
    std::memcpy(&described, c, sizeof(described));
    described.reserved0 = nullptr;
    described.reserved1 = nullptr;
    return shaped(described, stream, meaning, wait);
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

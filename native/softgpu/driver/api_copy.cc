// Copies in one dimension. Each comes four times: waiting or not, and with either meaning of the
// null stream.
#include "native/softgpu/driver/copy.h"
#include "native/softgpu/driver/guard.h"

using namespace juice::softgpu;

namespace {

Side deviceSide(CUdeviceptr address) {
    return {address, 0, 0, true};
}
Side hostSide(const void* address) {
    return {reinterpret_cast<uint64_t>(address), 0, 0, false};
}
/// Of the generic copies, which find out.
Side anySide(CUdeviceptr address) {
    return {address, 0, 0, false};
}

struct Order {
    CUstream stream = nullptr;
    DefaultStream meaning = DefaultStream::legacy;
    Wait wait = Wait::yes;
};

constexpr DefaultStream kLegacy = DefaultStream::legacy;
constexpr DefaultStream kPerThread = DefaultStream::perThread;

CUresult linear(const Order& order, Side to, Side from, size_t size) {
    return withStream(order.stream, order.meaning, [&](Stream& stream) {
        return copy(stream, to, from, {size, 1, 1}, order.wait);
    });
}

/// Between contexts; they must be real, or null for the current one. Their memory is reachable
/// anyhow.
CUresult peer(const Order& order, CUdeviceptr to, CUcontext toContext, CUdeviceptr from,
              CUcontext fromContext, size_t size) {
    for (const CUcontext context : {toContext, fromContext}) {
        if (context != nullptr && !find<Context>(context)) return CUDA_ERROR_INVALID_CONTEXT;
    }
    return linear(order, deviceSide(to), deviceSide(from), size);
}

}  // namespace

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size) {
    return linear({}, anySide(to), anySide(from), size);
}
CUresult cuMemcpy_ptds(CUdeviceptr to, CUdeviceptr from, size_t size) {
    return linear({nullptr, kPerThread}, anySide(to), anySide(from), size);
}
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    return linear({stream, kLegacy, Wait::no}, anySide(to), anySide(from), size);
}
CUresult cuMemcpyAsync_ptsz(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    return linear({stream, kPerThread, Wait::no}, anySide(to), anySide(from), size);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t size) {
    return linear({}, deviceSide(to), hostSide(from), size);
}
CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr to, const void* from, size_t size) {
    return linear({nullptr, kPerThread}, deviceSide(to), hostSide(from), size);
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t size, CUstream stream) {
    return linear({stream, kLegacy, Wait::no}, deviceSide(to), hostSide(from), size);
}
CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr to, const void* from, size_t size, CUstream stream) {
    return linear({stream, kPerThread, Wait::no}, deviceSide(to), hostSide(from), size);
}

CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t size) {
    return linear({}, hostSide(to), deviceSide(from), size);
}
CUresult cuMemcpyDtoH_v2_ptds(void* to, CUdeviceptr from, size_t size) {
    return linear({nullptr, kPerThread}, hostSide(to), deviceSide(from), size);
}
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t size, CUstream stream) {
    return linear({stream, kLegacy, Wait::no}, hostSide(to), deviceSide(from), size);
}
CUresult cuMemcpyDtoHAsync_v2_ptsz(void* to, CUdeviceptr from, size_t size, CUstream stream) {
    return linear({stream, kPerThread, Wait::no}, hostSide(to), deviceSide(from), size);
}

// Inside the device nothing needs waiting for, as on a real driver.

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t size) {
    return linear({nullptr, kLegacy, Wait::no}, deviceSide(to), deviceSide(from), size);
}
CUresult cuMemcpyDtoD_v2_ptds(CUdeviceptr to, CUdeviceptr from, size_t size) {
    return linear({nullptr, kPerThread, Wait::no}, deviceSide(to), deviceSide(from), size);
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    return linear({stream, kLegacy, Wait::no}, deviceSide(to), deviceSide(from), size);
}
CUresult cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    return linear({stream, kPerThread, Wait::no}, deviceSide(to), deviceSide(from), size);
}

CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext toContext, CUdeviceptr from, CUcontext fromContext,
                      size_t size) {
    return peer({nullptr, kLegacy, Wait::no}, to, toContext, from, fromContext, size);
}
CUresult cuMemcpyPeer_ptds(CUdeviceptr to, CUcontext toContext, CUdeviceptr from,
                           CUcontext fromContext, size_t size) {
    return peer({nullptr, kPerThread, Wait::no}, to, toContext, from, fromContext, size);
}
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext toContext, CUdeviceptr from,
                           CUcontext fromContext, size_t size, CUstream stream) {
    return peer({stream, kLegacy, Wait::no}, to, toContext, from, fromContext, size);
}
CUresult cuMemcpyPeerAsync_ptsz(CUdeviceptr to, CUcontext toContext, CUdeviceptr from,
                                CUcontext fromContext, size_t size, CUstream stream) {
    return peer({stream, kPerThread, Wait::no}, to, toContext, from, fromContext, size);
}

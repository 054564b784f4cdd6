// Copies in one dimension. Each comes four times: waiting or not, and with either meaning of the
// null stream.
#include "native/softgpu/driver/copy.h"
#include "native/softgpu/driver/guard.h"

using namespace juice::softgpu;

namespace {

/// One side of a copy: what the entry point says of it.
struct Operand {
    CUmemorytype type;
    uint64_t address;
};

Operand deviceSide(CUdeviceptr address) {
    return {CU_MEMORYTYPE_DEVICE, address};
}
Operand hostSide(const void* address) {
    return {CU_MEMORYTYPE_HOST, reinterpret_cast<uint64_t>(address)};
}
/// Of the generic copies, which find out.
Operand anySide(CUdeviceptr address) {
    return {CU_MEMORYTYPE_UNIFIED, address};
}

struct Order {
    CUstream stream = nullptr;
    DefaultStream meaning = DefaultStream::legacy;
    Wait wait = Wait::yes;
};

constexpr DefaultStream kLegacy = DefaultStream::legacy;
constexpr DefaultStream kPerThread = DefaultStream::perThread;

CUresult linear(const Order& order, const Operand& to, const Operand& from, size_t size) {
    return withCapturable(order.stream, order.meaning, [&](Stream& stream) {
        CUDA_MEMCPY3D described{};
        described.dstMemoryType = to.type;
        described.srcMemoryType = from.type;
        if (to.type == CU_MEMORYTYPE_HOST) {
            described.dstHost = reinterpret_cast<void*>(to.address);
        } else {
            described.dstDevice = to.address;
        }
        if (from.type == CU_MEMORYTYPE_HOST) {
            described.srcHost = reinterpret_cast<const void*>(from.address);
        } else {
            described.srcDevice = from.address;
        }
        described.WidthInBytes = size;
        described.Height = 1;
        described.Depth = 1;
        return copy(stream, described, order.wait);
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

// What programs ask about captures although they make none: every runtime library does. To begin a
// capture is not supported.
#include "native/softgpu/driver/guard.h"

using namespace juice::softgpu;

namespace {

constexpr DefaultStream kLegacy = DefaultStream::legacy;
constexpr DefaultStream kPerThread = DefaultStream::perThread;

CUresult notCapturing(CUstream handle, DefaultStream meaning, CUstreamCaptureStatus* status) {
    return askStream(handle, meaning, [&](Stream&) {
        if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
        *status = CU_STREAM_CAPTURE_STATUS_NONE;
        return CUDA_SUCCESS;
    });
}

}  // namespace

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
    return notCapturing(handle, kLegacy, status);
}
CUresult cuStreamIsCapturing_ptsz(CUstream handle, CUstreamCaptureStatus* status) {
    return notCapturing(handle, kPerThread, status);
}

// Of a stream that captures nothing only the status is told; the other outputs stay as they are.

CUresult cuStreamGetCaptureInfo(CUstream handle, CUstreamCaptureStatus* status,
                                unsigned long long*) {
    return notCapturing(handle, kLegacy, status);
}
CUresult cuStreamGetCaptureInfo_ptsz(CUstream handle, CUstreamCaptureStatus* status,
                                     unsigned long long*) {
    return notCapturing(handle, kPerThread, status);
}
CUresult cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus* status,
                                   unsigned long long*, CUgraph*, const CUgraphNode**, size_t*) {
    return notCapturing(handle, kLegacy, status);
}
CUresult cuStreamGetCaptureInfo_v2_ptsz(CUstream handle, CUstreamCaptureStatus* status,
                                        unsigned long long*, CUgraph*, const CUgraphNode**,
                                        size_t*) {
    return notCapturing(handle, kPerThread, status);
}
CUresult cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus* status,
                                   unsigned long long*, CUgraph*, const CUgraphNode**,
                                   const CUgraphEdgeData**, size_t*) {
    return notCapturing(handle, kLegacy, status);
}
CUresult cuStreamGetCaptureInfo_v3_ptsz(CUstream handle, CUstreamCaptureStatus* status,
                                        unsigned long long*, CUgraph*, const CUgraphNode**,
                                        const CUgraphEdgeData**, size_t*) {
    return notCapturing(handle, kPerThread, status);
}

/// The mode matters to captures only, and there are none; but it is the thread's, and is kept. A
/// real driver takes any number for one.
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
    return withDriver([&] {
        thread_local CUstreamCaptureMode current = CU_STREAM_CAPTURE_MODE_GLOBAL;
        if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
        std::swap(current, *mode);
        return CUDA_SUCCESS;
    });
}

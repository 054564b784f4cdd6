// Stream capture: there is none in this release, so every question has one answer. Beginning one is
// an unsupported call.
#include "native/gen/cuda_api.h"
#include "native/shim/send.h"

namespace juice::shim {
namespace {

CUresult notCapturing(CUstream handle, bool perThread, CUstreamCaptureStatus* status) {
    if (const CUresult result = session::initialised()) return result;
    uint64_t wire = 0;
    if (const CUresult result = wireStream(handle, perThread, wire)) return result;
    if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

}  // namespace
}  // namespace juice::shim

using namespace juice::shim;  // NOLINT: every definition below is an entry point
namespace session = juice::shim::session;

CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus* captureStatus) {
    return notCapturing(hStream, false, captureStatus);
}
CUresult cuStreamIsCapturing_ptsz(CUstream hStream, CUstreamCaptureStatus* captureStatus) {
    return notCapturing(hStream, true, captureStatus);
}

// The other outputs are left alone, as a driver leaves them for a stream that does not capture.

CUresult cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                                unsigned long long* id_out) {
    return notCapturing(hStream, false, captureStatus_out);
}
CUresult cuStreamGetCaptureInfo_ptsz(CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                                     unsigned long long* id_out) {
    return notCapturing(hStream, true, captureStatus_out);
}
CUresult cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                                   unsigned long long* id_out, CUgraph* graph_out,
                                   const CUgraphNode** dependencies_out,
                                   size_t* numDependencies_out) {
    return notCapturing(hStream, false, captureStatus_out);
}
CUresult cuStreamGetCaptureInfo_v2_ptsz(CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                                        unsigned long long* id_out, CUgraph* graph_out,
                                        const CUgraphNode** dependencies_out,
                                        size_t* numDependencies_out) {
    return notCapturing(hStream, true, captureStatus_out);
}
CUresult cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                                   unsigned long long* id_out, CUgraph* graph_out,
                                   const CUgraphNode** dependencies_out,
                                   const CUgraphEdgeData** edgeData_out,
                                   size_t* numDependencies_out) {
    return notCapturing(hStream, false, captureStatus_out);
}
CUresult cuStreamGetCaptureInfo_v3_ptsz(CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                                        unsigned long long* id_out, CUgraph* graph_out,
                                        const CUgraphNode** dependencies_out,
                                        const CUgraphEdgeData** edgeData_out,
                                        size_t* numDependencies_out) {
    return notCapturing(hStream, true, captureStatus_out);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
    if (const CUresult result = session::initialised()) return result;
    if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const int before = thread().captureMode;
    thread().captureMode = static_cast<int>(*mode);
    *mode = static_cast<CUstreamCaptureMode>(before);
    return CUDA_SUCCESS;
}

// Profilers are told when to start and stop; here there is none to tell.

CUresult cuProfilerInitialize(const char* configFile, const char* outputFile,
                              CUoutput_mode outputMode) {
    return CUDA_ERROR_PROFILER_DISABLED;
}
CUresult cuProfilerStart() {
    return session::initialised();
}
CUresult cuProfilerStop() {
    return session::initialised();
}
